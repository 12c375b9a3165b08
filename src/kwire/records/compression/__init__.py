"""Codecs: what reads and writes the compressed payload of a batch."""
