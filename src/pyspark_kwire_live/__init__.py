"""Makes Spark find the source `kafka-live` by name; see pyspark_kwire_log."""

from kwire.spark.releases import is_supported, refused_source

if is_supported():
    from kwire.spark.live.source import KafkaLiveSource as DefaultSource
else:
    DefaultSource = refused_source("kafka-live")  # type: ignore[assignment, misc]

__all__ = ["DefaultSource"]
