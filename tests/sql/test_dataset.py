"""Topics as datasets: snapshots, columns, values, every public method, engines that read parts, errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import kwire
from kwire.broker import Broker
from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.log import LogDirectory
from kwire.log.reading import partition_log
from kwire.sql import TopicDataset, dataset
from kwire.sql.parallel import run_parallel
from kwire.sql.values import SAMPLE, ValueColumns, infer_json_column, registry_columns, text_column
from tests.cli.crafted import segment
from tests.records.building import batch, record

duckdb = pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def orders(kafka_logs: dict[str, Path]) -> Iterator[TopicDataset]:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        yield logs.topic("orders")


def test_every_public_method_of_arrows_classes_is_overridden() -> None:
    """Those of Arrow would use a C++ object that is missing, and end the process."""
    from kwire.sql.dataset import TopicScanner

    for ours, theirs, kept in (
        (TopicDataset, ds.Dataset, set()),
        (TopicScanner, ds.Scanner, {"from_batches", "from_dataset", "from_fragment"}),  # they make another scanner
    ):
        public = {name for name in dir(theirs) if not name.startswith("_")} | {"__reduce__"}
        assert public - kept <= set(vars(ours)), public - kept - set(vars(ours))


def test_batches_are_small_in_memory(orders: TopicDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = orders.to_table(columns=["partition", "offset", "value"])
    monkeypatch.setattr(dataset, "BATCH_BYTES", 20_000)
    batches = list(orders.to_batches(columns=["partition", "offset", "value"]))
    assert all(batch.num_rows == 1 or batch.get_total_buffer_size() < 50_000 for batch in batches)
    order = [("partition", "ascending"), ("offset", "ascending")]
    assert pa.Table.from_batches(batches).sort_by(order).equals(expected.sort_by(order))


def test_methods_agree_with_the_table(orders: TopicDataset) -> None:
    table = orders.to_table()
    assert table.schema == orders.schema
    assert orders.count_rows() == table.num_rows == 20001
    assert orders.head(7).num_rows == 7
    few = pc.field("offset") < 3
    assert orders.count_rows(filter=few) == 9
    assert orders.filter(few).count_rows() == 9
    assert orders.to_table(columns=["offset"], filter=few).column_names == ["offset"]
    assert orders.take([0, 5], columns=["offset"]).num_rows == 2
    newest = orders.filter(few).sort_by([("offset", "descending")])
    assert newest.to_table().column("offset").to_pylist() == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    parts = list(orders.get_fragments(filter=pc.field("partition") != 1))
    assert [each.count_rows(filter=few) for each in parts] == [3, 3]
    with pytest.raises(OptionError, match=r"unknown column 'ofset' \(did you mean 'offset'\?\)"):
        orders.to_table(columns=["ofset"])
    for refused in (lambda: orders.replace_schema(orders.schema), orders.__reduce__, orders.scanner().__reduce__):
        with pytest.raises(OptionError):
            refused()


def test_the_last_stable_offset_is_found_once_until_the_log_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a snapshot of producers, finding it walks the whole log."""
    walks = []
    real = partition_log.open_transactions
    monkeypatch.setattr(partition_log, "open_transactions", lambda *given: walks.append(given) or real(*given))
    segment(tmp_path / "events-0", batch(record(0, 0, None, b"v"), count=1))
    log = LogDirectory(tmp_path)["events", 0]
    assert [log.last_stable_offset for _ in range(3)] == [1, 1, 1]
    assert len(walks) == 1
    segment(tmp_path / "events-0", batch(record(0, 0, None, b"v") + record(1, 0, None, b"w"), count=2))
    assert [log.last_stable_offset for _ in range(3)] == [2, 2, 2]
    assert len(walks) == 2
    topic = TopicDataset("events", [log], threads=1)
    assert topic.count_rows(filter=pc.field("offset") >= 1) == 1
    assert len(walks) == 2


def test_filters_of_nothing_but_null_match_no_row(orders: TopicDataset) -> None:
    assert orders.to_table(columns=["offset"], filter=pc.scalar(None)).num_rows == 0
    assert orders.count_rows(filter=pc.field("offset") > pc.scalar(None)) == 0
    assert orders.count_rows(filter=pa.scalar(True)) == 20001
    assert list(orders.get_fragments(filter=pa.scalar(False))) == []
    with pytest.raises(OptionError, match="Arrow cannot evaluate it: Function 'invert'"):
        orders.count_rows(filter=~pc.scalar(None))


def test_rows_of_a_partition_are_in_order_without_threads(kafka_logs: dict[str, Path]) -> None:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        table = logs.topic("orders", threads=1).to_table(columns=["partition", "offset"])
        assert table.equals(table.sort_by([("partition", "ascending"), ("offset", "ascending")]))


def test_an_unknown_topic_names_a_similar_one(kafka_logs: dict[str, Path]) -> None:
    with (
        kwire.open(kafka_logs["modern"] / "data") as logs,
        pytest.raises(LogError, match=r"no topic 'ordrs' \(did you mean 'orders'\?\)"),
    ):
        logs.topic("ordrs")


def test_offsets_are_those_of_the_beginning() -> None:
    with Broker() as broker:
        broker.create_topic("events", 2)
        produce(broker, 10)
        with kwire.open(f"kafka://{broker.bootstrap_servers}") as logs:
            before = logs.topic("events")
            produce(broker, 5)
            assert before.count_rows() == 10
            assert logs.topic("events").count_rows() == before.reopened().count_rows() == 15
            assert not broker.requests.of("JoinGroup")
            assert not broker.requests.of("OffsetCommit")


def produce(broker: Broker, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for i in range(count):
        producer.produce("events", b"value %d" % i, partition=i % 2)
    producer.flush()


@pytest.mark.parametrize("ms", [-1, -2, -3, -4, -5])
def test_a_time_before_1970_is_none_of_the_special_ones_of_kafka(ms: int, tmp_path: Path) -> None:
    """ListOffsets takes -1 for the end of the log, -2 for its beginning, and so on."""
    segment(tmp_path / "events-0", *(batch(record(0), base_offset=offset) for offset in range(3)))
    filter = pc.field("timestamp") >= pa.scalar(1000 * ms, pa.timestamp("us", "UTC"))
    assert TopicDataset("events", LogDirectory(tmp_path).of_topic("events")).to_table(filter=filter).num_rows == 3


def test_partitions_without_values_leave_their_share_of_the_sample_to_later_ones(tmp_path: Path) -> None:
    values = [b'{"id": 1}'] * (SAMPLE - 1) + [b'{"id": 1, "late": 2}', b'{"id": 1, "later": 2}']
    payload = b"".join(record(offset, value=value) for offset, value in enumerate(values))
    for partition in range(4):
        segment(tmp_path / f"events-{partition}", *([batch(payload, count=len(values))] if partition == 3 else []))
    column = infer_json_column(LogDirectory(tmp_path).of_topic("events"))
    assert column.type.field(1).name == "late"
    assert column.type.num_fields == 2


def test_schema_ids_in_headers_are_read_where_headers_are_not_asked_for(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "events-value.1.5.avsc").write_text(json.dumps(schema))
    headers: list[tuple[bytes, bytes | None]] = [(b"__value_schema_id", b"\0\0\0\0\5")]
    segment(tmp_path / "logs" / "events-0", batch(record(0, value=b"\x0e", headers=headers)))
    columns = registry_columns(str(tmp_path / "schemas"), "events")
    topic = TopicDataset("events", LogDirectory(tmp_path / "logs").of_topic("events"), values=columns)
    assert topic.to_table(columns=["value"]).to_pylist() == [{"value": {"id": 7}}]


def test_values_that_are_not_text_are_null_with_the_reason() -> None:
    columns = ValueColumns({"value": text_column()})
    stored = pa.schema(
        [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())]
    )
    rows = pa.RecordBatch.from_pylist(
        [
            {"topic": "t", "partition": 0, "offset": i, "value": value}
            for i, value in enumerate([b"good", b"\xff", None])
        ],
        stored,
    )
    (decoded,) = columns.decode([rows], ["value", "value_error", "offset"])
    assert decoded.column("value").to_pylist() == ["good", None, None]
    assert decoded.column("value_error").to_pylist() == [None, "not UTF-8: invalid start byte, at byte 0", None]
    assert "value_error" in columns.schema_of(stored).names
    with pytest.raises(OptionError, match="column 'topic' cannot be decoded"):
        ValueColumns({"topic": text_column()})


def test_damage_ends_a_query_with_its_file_and_position(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    import shutil

    shutil.copytree(kafka_logs["modern"] / "data" / "orders-0", tmp_path / "orders-0")
    segment = next((tmp_path / "orders-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    with kwire.open(tmp_path) as logs:
        damaged = logs.topic("orders")
        with pytest.raises(CorruptBatch) as error:
            damaged.to_table()
        assert error.value.file == str(segment)
        with pytest.raises(duckdb.Error, match="leaves it out"):
            duckdb.connect().sql("SELECT count(*) FROM damaged").fetchall()
        first, last = error.value.offsets or (0, 0)
        assert f'"offset" < {first} OR "offset" > {last} leaves it out' in error.value.what
        offset, partition = pc.field("offset"), pc.field("partition")
        with kwire.open(kafka_logs["modern"] / "data") as whole:
            rest = (partition == 0) & ((offset < first) | (offset > last))
            one, other = (each.to_table(filter=rest) for each in (damaged, whole.topic("orders")))
            assert one.sort_by("offset").equals(other.sort_by("offset"))


def test_a_batch_above_the_limit_says_how_to_leave_it_out(tmp_path: Path) -> None:
    """The error named a setting that SQL does not have."""
    small, large = (batch(record(0), base_offset=offset) for offset in (0, 500_000))
    size = (130 << 20) + 1
    length = (len(large) - 12 + size).to_bytes(4, "big")
    file = segment(tmp_path / "events-0", small, large[:8] + length + large[12:])
    with file.open("r+b") as out:  # sparse
        out.truncate(len(small) + len(large) + size)
        out.seek(0, 2)
        out.write(batch(record(0), base_offset=1_000_000))
    topic = TopicDataset("events", LogDirectory(tmp_path).of_topic("events"), threads=1)
    condition = '"offset" < 500000 OR "offset" > 500000'
    what = rf"a batch of .*, the limit of one batch; the condition {condition} leaves it out, .* 500000\)$"
    with pytest.raises(CorruptBatch, match=what):
        topic.to_table()
    offset = pc.field("offset")
    without = (offset < 500_000) | (offset > 500_000)
    assert topic.to_table(filter=without).column("offset").to_pylist() == [0, 1_000_000]


def test_threads_raise_the_error_of_a_source_and_end() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise LogError("broken")

    def endless() -> Iterator[int]:
        while True:
            yield 2

    before = threading.active_count()
    with pytest.raises(LogError, match="broken"):
        list(run_parallel(iter([failing(), iter(range(5))]), 3))
    items = run_parallel(iter([endless(), endless()]), 2)
    assert [next(items) for _ in range(10)] == [2] * 10
    items.close()
    assert threading.active_count() == before


def test_threads_read_each_item_once() -> None:
    sources = (iter(range(start, start + 100)) for start in range(0, 1000, 100))
    assert sorted(run_parallel(sources, 4)) == list(range(1000))
    assert list(run_parallel(iter([]), 4)) == []
    assert list(run_parallel(iter([iter([]), iter([])]), 4)) == []


def test_a_log_that_became_shorter_ends_queries(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    """Queries of a dataset see the same records, or an error: not the ones that are left."""
    import shutil

    shutil.copytree(kafka_logs["modern"] / "data" / "orders-0", tmp_path / "orders-0")
    with kwire.open(tmp_path) as logs:
        shorter = logs.topic("orders")
        rows = shorter.count_rows()
        last = max((tmp_path / "orders-0").glob("*.log"))
        for file in last.parent.glob(f"{last.stem}.*"):
            file.unlink()
        with pytest.raises(LogError, match=rf"ended at {rows} (or above )?when the (query|read) began"):
            shorter.count_rows()
        assert logs.topic("orders").count_rows() < rows
