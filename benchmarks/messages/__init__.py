"""Benchmarks of messages: codec, frames, blobs, columns, start-up."""
