"""Makes Spark find the source `kafka-internal` by name; see pyspark_kwire_log."""

from kwire.spark.releases import is_supported, refused_source

if is_supported():
    from kwire.spark.internal.source import KafkaInternalSource as DefaultSource
else:
    DefaultSource = refused_source("kafka-internal")  # type: ignore[assignment, misc]

__all__ = ["DefaultSource"]
