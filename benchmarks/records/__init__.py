"""Benchmarks of kwire.records."""
