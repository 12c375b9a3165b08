"""Registers the source `kafka-internal` with Spark; see pyspark_kwire_log."""

from kwire.spark_formats import are_registered

if are_registered():
    from kwire.spark.releases import is_supported, unsupported_source

    if is_supported():
        from kwire.spark.internal.source import KafkaInternalSource as DefaultSource
    else:
        DefaultSource = unsupported_source("kafka-internal")  # type: ignore[assignment, misc]

    __all__ = ["DefaultSource"]
