"""Benchmarks of values with schemas: Avro."""
