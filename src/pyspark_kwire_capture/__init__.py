"""Makes Spark find the source `kafka-capture` by name; see pyspark_kwire_log."""

from kwire.spark.capture_source import KafkaCaptureSource as DefaultSource

__all__ = ["DefaultSource"]
