"""Makes Spark find the source `kafka-live` by name; see pyspark_kwire_log."""

from kwire.spark.live_source import KafkaLiveSource as DefaultSource

__all__ = ["DefaultSource"]
