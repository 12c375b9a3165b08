"""Preparation of batches before a broker appends them: checks, offsets, timestamps."""
