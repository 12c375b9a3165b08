"""Parquet files of streams, with Spark's log of committed files."""
