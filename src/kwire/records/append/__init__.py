"""What a broker does to batches before it appends them: checks, offsets, timestamps."""
