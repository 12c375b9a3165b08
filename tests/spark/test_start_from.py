"""Option startFrom of copy_stream: where a new query begins, without Spark."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.lake.avro_values import write_values
from tests.lake.tables import FORMATS, Tables, write
from tests.spark.lake.test_sink import options

import kwire.spark
import kwire.spark.lake.sink
from kwire.errors import OptionError, TableError
from kwire.lake import Chosen, Layout, append_logs
from kwire.log import LogDirectory
from kwire.spark.copying import Copy, CopyWriter
from kwire.spark.lake.source import DeltaSink, IcebergSink
from kwire.spark.live.source import KafkaLiveSource
from kwire.spark.log.source import KafkaLogSource
from kwire.spark.offsets import SpecificOffsets
from kwire.spark.sail import struct_type

KEY = ("avro", 0)


def start(tables: Tables, source: Path, **more: str) -> Any:
    """Return where a query begins."""
    given = {"path": str(source), "subscribe": "avro", "startFrom": "table", **more}
    sink = IcebergSink if tables.format == "iceberg" else DeltaSink
    made = Copy.of(KafkaLogSource, given, sink, options(tables), None).reader.options.start
    assert isinstance(made, SpecificOffsets)
    return dict(made.offsets)


def append(tables: Tables, source: Path, *ranges: tuple[int, int]) -> None:
    chosen = Chosen(offsets={KEY: ranges})
    list(append_logs(tables.open(), [LogDirectory(source)[KEY]], layout=Layout(), chosen=chosen))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = write_values(tmp_path / "logs", [b"value"] * 30, topic_id=uuid.UUID(int=1))
    return write_values(folder, [b"value"] * 5, partition=1, topic_id=uuid.UUID(int=1))


@pytest.mark.parametrize("format", FORMATS)
def test_a_query_begins_at_the_end_of_the_table(format: str, tmp_path: Path, source: Path) -> None:
    tables = Tables(format, tmp_path)
    assert start(tables, source) == {KEY: -2, ("avro", 1): -2}
    append(tables, source, (0, 10))
    assert start(tables, source) == {KEY: 10, ("avro", 1): -2}
    append(tables, source, (10, 30))
    assert start(tables, source) == {KEY: 30, ("avro", 1): -2}


def test_a_table_with_a_hole_is_refused(tmp_path: Path, source: Path) -> None:
    tables = Tables("delta", tmp_path)
    append(tables, source, (0, 10), (12, 20))
    with pytest.raises(TableError, match=r"it lacks offsets 10 to 11 of avro-0, .*kwire lake append --fill"):
        start(tables, source)


@pytest.mark.parametrize(("end", "is_refused"), [(29, True), (30, False), (31, False)])
def test_a_source_that_ends_before_the_table(tmp_path: Path, source: Path, end: int, is_refused: bool) -> None:
    tables = Tables("delta", tmp_path)
    append(tables, source, (0, 30))
    other = write_values(tmp_path / "other", [b"value"] * end, topic_id=uuid.UUID(int=1))
    if is_refused:
        with pytest.raises(TableError, match="it has offsets of avro-0 to 29, and the source ends at 29: another"):
            start(tables, other)
    else:
        assert start(tables, other) == {KEY: 30}


@pytest.mark.parametrize(("first", "is_refused"), [(9, False), (10, False), (11, True)])
def test_a_source_that_begins_after_the_table(tmp_path: Path, source: Path, first: int, is_refused: bool) -> None:
    tables = Tables("delta", tmp_path)
    append(tables, source, (0, 10))
    other = write_values(tmp_path / "other", [b"value"] * 20, first=first, topic_id=uuid.UUID(int=1))
    if is_refused:
        with pytest.raises(TableError, match="it ends before offset 10 of avro-0, and the source begins at 11"):
            start(tables, other)
    else:
        assert start(tables, other) == {KEY: 10}


def test_another_topic_is_refused(tmp_path: Path, source: Path) -> None:
    tables = Tables("delta", tmp_path)
    append(tables, source, (0, 10))
    again = write_values(tmp_path / "again", [b"value"] * 30, topic_id=uuid.UUID(int=2))
    with pytest.raises(TableError, match="the topic was deleted and created again"):
        start(tables, again)
    foreign = Tables("delta", tmp_path / "foreign")
    rows = pa.table({"topic": ["orders"], "partition": pa.array([0], pa.int32()), "offset": [0]})
    write(foreign.open(), rows)
    with pytest.raises(TableError, match="it has offsets of orders, and the query reads avro: another topic"):
        start(foreign, source)
    unknown = Tables("delta", tmp_path / "unknown")
    write(unknown.open(), pa.table({"id": [1]}))
    with pytest.raises(TableError, match="it has rows and no offsets of kwire"):
        start(unknown, source)


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_stores_the_topic_id(
    format: str, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, a new query would begin at the old end of a topic that was created again, and lose its first rows."""
    tables = Tables(format, tmp_path)
    given = {"path": str(source), "subscribe": "avro", "startingOffsets": "earliest"}
    copy = Copy.of(KafkaLogSource, given, IcebergSink if format == "iceberg" else DeltaSink, options(tables), None)
    monkeypatch.setattr(kwire.spark.lake.sink, "micro_batch_of_task", lambda: ("q", 0))
    monkeypatch.setattr(kwire.spark.lake.sink, "task_number", lambda: 0)
    reader, writer = copy.planner(), CopyWriter(copy)
    planned = reader.partitions(reader.initialOffset(), reader.latestOffset(reader.initialOffset()))
    writer.commit([writer.write(reader.read(each)) for each in planned], 0)
    assert start(tables, source) == {KEY: 30, ("avro", 1): 5}
    again = write_values(tmp_path / "again", [b"value"] * 40, topic_id=uuid.UUID(int=2))
    with pytest.raises(TableError, match="the topic was deleted and created again"):
        start(tables, again)


def test_wrong_usage(tmp_path: Path, source: Path) -> None:
    tables = Tables("delta", tmp_path)
    with pytest.raises(OptionError, match="Option 'startFrom': expected 'table', got 'end'"):
        start(tables, source, startFrom="end")
    with pytest.raises(OptionError, match="Options 'startFrom' and 'startingOffsets' exclude each other"):
        start(tables, source, startingOffsets=json.dumps({"avro": {"0": 1}}))
    with pytest.raises(OptionError, match="Option 'startFrom': the sink is no table"):
        Copy.of(KafkaLogSource, {"path": str(source), "startFrom": "table"}, KafkaLiveSource, {}, None)


def test_other_queries_get_the_offsets_as_text(tmp_path: Path, source: Path) -> None:
    tables = Tables("delta", tmp_path)
    append(tables, source, (0, 10))
    given = {"path": str(source), "subscribe": "avro"}
    text = kwire.spark.starting_offsets("kafka-log", given, "kwire-delta", options(tables))
    assert json.loads(text) == {"avro": {"0": 10, "1": -2}}
    start = KafkaLogSource({**given, "startingOffsets": text})
    start.streamReader(struct_type(pa.schema(start.schema())))
    append(tables, source, (12, 20))
    with pytest.raises(TableError, match=r"it lacks offsets 10 to 11 of avro-0"):
        kwire.spark.starting_offsets("kafka-log", given, "kwire-delta", options(tables))
    with pytest.raises(OptionError, match="source: expected one of kafka-live, kafka-log, got 'kafka'"):
        kwire.spark.starting_offsets("kafka", given, "kwire-delta", options(tables))
    with pytest.raises(OptionError, match=r"'startFrom'.*kwire\.spark\.starting_offsets"):
        KafkaLogSource({**given, "startFrom": "table"}).schema()
