"""Conversion between magic 0, 1 and 2."""
