"""Streaming queries: positions, micro-batches, lag."""
