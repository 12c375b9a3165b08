"""Makes Spark find the source `kafka-internal` by name; see pyspark_kwire_log."""

from kwire.spark.internal_source import KafkaInternalSource as DefaultSource

__all__ = ["DefaultSource"]
