"""Makes Spark find the source `kafka-capture` by name; see pyspark_kwire_log."""

from kwire.spark.releases import is_supported, refused_source

if is_supported():
    from kwire.spark.capture.source import KafkaCaptureSource as DefaultSource
else:
    DefaultSource = refused_source("kafka-capture")  # type: ignore[assignment, misc]

__all__ = ["DefaultSource"]
