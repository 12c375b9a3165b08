"""Registers the source `kafka-log` with Spark.

PySpark imports every top-level package called pyspark_* at the first look-up of any Python data source, and registers
its DefaultSource. These packages must therefore import quickly: pyspark.sql.datasource and nothing larger.
"""

from kwire.spark_formats import are_registered

if are_registered():
    from kwire.spark.releases import is_supported, unsupported_source

    if is_supported():
        from kwire.spark.log.source import KafkaLogSource as DefaultSource
    else:
        DefaultSource = unsupported_source("kafka-log")  # type: ignore[assignment, misc]

    __all__ = ["DefaultSource"]
