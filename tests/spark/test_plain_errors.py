"""Errors of kwire in Spark's exceptions."""

from __future__ import annotations

import importlib
import io
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql import datasource
from pyspark.sql.functions import lit
from pyspark.util import handle_worker_exception
from tests.waiting import HANG_S

import kwire.spark
from kwire.errors import LogError
from kwire.spark.functions import from_kafka
from kwire.spark.plain_errors import SPARK_METHODS, plain_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def shown(call: Callable[[], object]) -> list[str]:
    """Return the lines of Spark's exception."""
    with pytest.raises(Exception, match="kwire") as caught:
        call()
    return str(caught.value).splitlines()


@pytest.mark.slow
def test_the_sentence_that_helps_stands_at_the_top_of_sparks_exception(spark: SparkSession, tmp_path: Path) -> None:
    # It stood after 8 to 50 lines of traceback.
    def stream(**options: str) -> None:
        found = spark.readStream.format("kafka-log").options(**options).load(str(empty))
        query = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination(int(HANG_S))

    empty = tmp_path / "empty"
    empty.mkdir()
    broken = tmp_path / "broken" / "t-0"
    broken.mkdir(parents=True)
    (broken / f"{0:020}.log").write_bytes(bytes(8) + (100).to_bytes(4, "big") + bytes(4) + b"\2" + bytes(95))
    read = spark.read.format("kafka-log")
    wrong = spark.range(1).select(from_kafka(lit(b"wrong"), "FetchRequest", version=12))
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "Unknown option 'subscrbe'": (lambda: spark.read.format("kafka-log").option("subscrbe", "t").load("/"), 1),
        "expected e.g.": (lambda: spark.read.format("kafka-log").option("assign", '{"t":[').load("/"), 1),
        "no such file or directory": (lambda: spark.read.format("kafka-log").load(str(tmp_path / "none")).count(), 1),
        "ending offset not valid": (lambda: stream(endingOffsets="latest"), 1),
        "no Kafka logs": (lambda: stream(subscribe="t"), 1),
        "stored CRC 0": (lambda: read.load(str(tmp_path / "broken")).collect(), 2),  # the first one is Spark's
    }
    calls["in row 0 of FetchRequest"] = (wrong.collect, 2)
    for sentence, (call, most) in calls.items():
        lines = shown(call)
        assert any(sentence in line for line in lines[:most]), lines[:9]
        assert not any("Traceback" in line for line in lines[:9]), lines[:9]


@plain_errors
class Reader(datasource.DataSourceReader):
    """Raises an error in partitions() and while rows are read."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def partitions(self) -> Any:
        raise self.error

    def read(self, partition: Any) -> Any:
        yield 1
        raise self.error


def reported(monkeypatch: pytest.MonkeyPatch, error: Exception, **variables: str) -> list[str]:
    """Return what PySpark's worker reports for an error of partitions() and of read()."""
    found = []
    for call in (lambda: Reader(error).partitions(), lambda: list(Reader(error).read(None))):
        with monkeypatch.context() as patch:
            patch.setenv("SPARK_HIDE_TRACEBACK", "")
            for name, value in variables.items():
                patch.setenv(name, value)
            output = io.BytesIO()
            with pytest.raises(type(error)) as caught:
                call()
            try:
                raise caught.value
            except Exception as raised:
                handle_worker_exception(raised, output)
            found.append(output.getvalue()[8:].decode())
    return found


def test_workers_report_errors_of_kwire_without_traceback_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = {"PYTHON_WORKER_FACTORY_PORT": "1"}
    error = LogError("/data: no Kafka logs")
    error.__cause__ = ValueError("why")
    assert reported(monkeypatch, error, **worker) == ["kwire.errors.LogError: /data: no Kafka logs\n"] * 2
    others = [
        *reported(monkeypatch, error, **worker, KWIRE_TRACEBACK="1"),
        *reported(monkeypatch, error),  # not a worker of Spark
        *reported(monkeypatch, ValueError("a bug"), **worker),
    ]
    assert all(text.startswith("Traceback") or "ValueError: why" in text for text in others)


def test_every_method_that_spark_calls_is_covered() -> None:
    bases = tuple(
        found
        for name, found in vars(datasource).items()
        if isinstance(found, type) and name.startswith("DataSource") and found.__module__ == datasource.__name__
    )
    covered = 0
    for module in pkgutil.walk_packages(kwire.spark.__path__, "kwire.spark."):
        if module.name.startswith("kwire.spark.jobs") or module.name == "kwire.spark.process.daemon":
            continue
        for found in vars(importlib.import_module(module.name)).values():
            if isinstance(found, type) and issubclass(found, bases) and found.__module__.startswith("kwire."):
                for name in SPARK_METHODS:
                    method = getattr(found, name, None)
                    if method is not None and method.__module__.startswith("kwire.") and "Sail" not in found.__name__:
                        assert method.__globals__["__name__"] == "kwire.spark.plain_errors", (found, name)
                        covered += 1
    assert covered > 40
