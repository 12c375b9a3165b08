"""Makes Spark find the source `kafka-log` by name.

PySpark imports every top-level package called pyspark_* at the first look-up of any Python data source and registers
its DefaultSource. So this must import nothing heavy: with it comes pyspark.sql.datasource and no more.
"""

from kwire.spark.releases import is_supported, refused_source

if is_supported():
    from kwire.spark.log.source import KafkaLogSource as DefaultSource
else:
    DefaultSource = refused_source("kafka-log")  # type: ignore[assignment, misc]

__all__ = ["DefaultSource"]
