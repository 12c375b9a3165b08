"""Spark data sources for Kafka's formats.

    kafka-log          log directories                        docs/spark.md
    kafka-live         topics of a running cluster            docs/live.md
    kafka-capture      packet captures                        docs/capture.md
    kafka-internal     Kafka's internal topics                docs/internal.md
    kwire-iceberg, kwire-delta    sinks: tables               docs/tables.md

Spark finds the formats by name through the packages pyspark_kwire_*. Importing kwire.spark before Spark starts makes
Spark run the Python of this program (kwire.spark.process.python_choice).

functions          columns of Kafka messages                  docs/functions.md
jobs               jobs on whole log directories              docs/jobs.md
copy_stream        streams whose rows stay in Arrow           docs/table-streams.md
starting_offsets   where a new query continues a table        docs/table-streams.md
lag, LagListener   lag of streaming queries
Kafka*Source       the data sources, for spark.dataSource.register

Everything here is imported on first use: the planner and the workers of Spark import PySpark in an order of their own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kwire.extras import needing
from kwire.spark.process.python_choice import choose_python

if TYPE_CHECKING:
    from kwire.spark.capture.source import KafkaCaptureSource
    from kwire.spark.copying import copy_stream, starting_offsets
    from kwire.spark.internal.source import KafkaInternalSource
    from kwire.spark.live.source import KafkaLiveSource
    from kwire.spark.log.source import KafkaLogSource
    from kwire.spark.streaming.lag import LagListener, lag

__all__ = [
    "KafkaCaptureSource",
    "KafkaInternalSource",
    "KafkaLiveSource",
    "KafkaLogSource",
    "LagListener",
    "copy_stream",
    "lag",
    "starting_offsets",
]

_MODULES = {
    "KafkaCaptureSource": "kwire.spark.capture.source",
    "KafkaInternalSource": "kwire.spark.internal.source",
    "KafkaLiveSource": "kwire.spark.live.source",
    "KafkaLogSource": "kwire.spark.log.source",
    "LagListener": "kwire.spark.streaming.lag",
    "copy_stream": "kwire.spark.copying",
    "lag": "kwire.spark.streaming.lag",
    "starting_offsets": "kwire.spark.copying",
}

choose_python()


def __getattr__(name: str) -> object:
    if name in _MODULES:
        with needing(f"kwire.spark.{name}"):
            module = import_module(_MODULES[name])
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
