"""Features of Spark Connect: sources registered by the client, errors, a client without Java."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from given import Given, of_log, rows

from kwire.spark.capture.source import KafkaCaptureSource
from kwire.spark.internal.source import KafkaInternalSource
from kwire.spark.live.source import KafkaLiveSource
from kwire.spark.log.source import KafkaLogSource


def the_client(given: Given) -> None:
    assert type(given.spark).__module__ == "pyspark.sql.connect.session"
    assert shutil.which("java") is None


def registered_by_the_client(given: Given) -> None:
    for source in (KafkaCaptureSource, KafkaInternalSource, KafkaLiveSource, KafkaLogSource):
        given.spark.dataSource.register(source)
    reader = given.spark.read.format("kafka-log").option("subscribe", "orders").option("includeHeaders", True)
    assert rows(reader.load(str(given.logs))) == of_log(given.logs, "orders")


def errors_arrive(given: Given) -> None:
    for options, message in (
        ({"subscribed": "orders"}, "Unknown option 'subscribed' (did you mean 'subscribe'?)"),
        ({"subscribe": "nowhere"}, "nowhere"),
    ):
        reader = given.spark.read.format("kafka-log").options(**options)
        assert message in error_of(lambda reader=reader: reader.load(str(given.logs)).collect())


def error_of(query: Callable[[], Any]) -> str:
    """Return the error of a failing query."""
    try:
        query()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")
