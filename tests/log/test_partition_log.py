"""PartitionLog, compared with Kafka's own consumer on the same directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kwire
from kwire.broker import Broker
from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.log import LogDirectory
from kwire.records.columns import parallel_decoder
from tests.log.expected import ARCHIVES, ISOLATIONS, consumed, offsets, read_arrow, read_objects
from tests.sampling import mostly_slow

Copied = Callable[[str, str], Path]


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.requirement(
    "D-01", "D-02", "D-03", "D-04", "D-05", "D-06", "R-23", "R-24", "R-27", "R-30", "X-27", "X-31", "X-32",
    "S31-10", "S31-11", "S31-12", "S31-37", "SDEF-48", "S482-02",
)  # fmt: skip
def test_read_returns_the_records_of_kafkas_consumer(kafka_logs: dict[str, Path], archive: str) -> None:
    directory, expected = LogDirectory(kafka_logs[archive] / "data"), kafka_logs[archive] / "expected"
    entries = list(offsets(expected))
    assert len(entries) > 20
    for topic, partition, isolation, _ in entries:
        rows, leader_epochs = consumed(expected, topic, partition, isolation)
        records = list(directory[topic, partition].read(isolation=isolation))
        assert [record.leader_epoch for record in records] == leader_epochs, (topic, partition, isolation)
        assert read_objects(directory[topic, partition], isolation=isolation) == rows, (topic, partition, isolation)


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.requirement("D-01", "D-03", "D-04", "D-05", "D-06", "R-23", "R-24", "S31-12")
@pytest.mark.parametrize("threads", mostly_slow([3, 1]))
def test_read_arrow_returns_the_records_of_kafkas_consumer(
    kafka_logs: dict[str, Path], archive: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_decoder, "PIECE_BYTES", 1000)
    directory, expected = LogDirectory(kafka_logs[archive] / "data"), kafka_logs[archive] / "expected"
    for topic, partition, isolation, _ in offsets(expected):
        rows, _ = consumed(expected, topic, partition, isolation)
        found = read_arrow(directory[topic, partition], isolation=isolation, threads=threads)
        assert found == rows, (topic, partition, isolation)


def test_read_arrow_keeps_batches_below_max_bytes(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["orders", 1]
    batches = list(log.read_arrow(columns=["offset", "value"], max_bytes=50_000))
    assert pa.Table.from_batches(batches).equals(log.read_arrow(columns=["offset", "value"]).read_all())
    assert all(batch.num_rows == 1 or batch.column("value").nbytes < 100_000 for batch in batches)
    with pytest.raises(OptionError, match="max_bytes 0 is out of range"):
        log.read_arrow(max_bytes=0).read_all()


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.requirement("P-06", "F-40", "R-38", "G-12")
def test_log_start_end_and_last_stable_offset_equal_the_brokers(kafka_logs: dict[str, Path], archive: str) -> None:
    directory = LogDirectory(kafka_logs[archive] / "data")
    for topic, partition, isolation, entry in offsets(kafka_logs[archive] / "expected"):
        log = directory[topic, partition]
        assert log.log_start_offset == entry["beginning"]
        end = log.last_stable_offset if isolation == "read_committed" else log.log_end_offset
        assert end == entry["end"] == entry["position_after_read"], (topic, partition, isolation)
        assert log.high_watermark == log.log_end_offset
        assert log.damage is None
        epochs = log.leader_epochs
        assert all(log.log_start_offset <= each.start_offset <= log.log_end_offset for each in epochs)


def test_an_open_transaction_bounds_read_committed(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    assert log.last_stable_offset < log.log_end_offset
    behind = list(log.read(log.last_stable_offset))
    assert behind
    assert not list(log.read(log.last_stable_offset, isolation="read_committed"))


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_any_offset_range_is_a_slice_of_the_whole(kafka_logs: dict[str, Path], archive: str, isolation: str) -> None:
    directory = LogDirectory(kafka_logs[archive] / "data")
    for (topic, _), log in directory.items():
        whole = read_objects(log, isolation=isolation)
        if topic.startswith("__") or len(whole) < 3:
            continue
        end = log.log_end_offset
        for start, stop in [
            (end // 3, end // 3 * 2),
            (1, 2),
            (end - 1, end),
            (end // 2, None),
            (end, None),
            (end + 9, None),
        ]:
            expected = [each for each in whole if start <= each.offset < (end if stop is None else stop)]
            assert read_objects(log, start_offset=start, end_offset=stop, isolation=isolation) == expected
            assert read_arrow(log, start_offset=start, end_offset=stop, isolation=isolation) == expected


@pytest.mark.requirement("F-62")
def test_records_below_the_log_start_are_not_returned(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["trimmed", 0]
    assert log.log_start_offset == 555
    assert log.segments[0].base_offset < 555  # they are still in the file
    assert next(log.read()).offset == 555
    assert next(iter(log.read_arrow(columns=["offset"]))).column(0)[0].as_py() == 555


def test_a_log_directory_a_partition_and_a_file_read_the_same(kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern"] / "data"
    whole = LogDirectory(data)["orders", 0]
    alone = LogDirectory(data / "orders-0")
    assert list(alone) == [("orders", 0)]
    assert read_objects(alone["orders", 0]) == read_objects(whole)
    segment = whole.segments[1]
    one = LogDirectory(segment.url)["orders", 0]
    assert [each.base_offset for each in one.segments] == [segment.base_offset]
    expected = list(whole.read(segment.base_offset, segment.next_base))
    assert list(one.read()) == expected
    assert LogDirectory(data / "trimmed-0")["trimmed", 0].log_start_offset == 555  # from the checkpoint above


@pytest.mark.requirement("G-09", "G-10", "F-03")
def test_a_log_that_ends_below_its_start_offset_is_empty(copied: Copied) -> None:
    data = copied("modern", "trimmed-0")
    (data / "log-start-offset-checkpoint").write_text("0\n1\ntrimmed 0 5000\n")
    log = LogDirectory(data)["trimmed", 0]
    assert (log.log_start_offset, log.log_end_offset, list(log.read())) == (5000, 5000, [])
    (data / "log-start-offset-checkpoint").write_text("0\nbroken\n")
    directory = LogDirectory(data)
    assert directory["trimmed", 0].log_start_offset == directory["trimmed", 0].segments[0].base_offset
    assert any("log-start-offset-checkpoint" in each.name for each in directory.ignored)


def test_a_partition_without_segments_is_an_empty_log(copied: Copied) -> None:
    data = copied("modern", "empty-0")
    for file in (data / "empty-0").iterdir():
        file.unlink()
    log = LogDirectory(data)["empty", 0]
    assert (log.segments, log.log_start_offset, log.log_end_offset, log.last_stable_offset) == ([], 0, 0, 0)
    assert (list(log.read()), log.read_arrow().read_all().num_rows, log.offset_for_time(0)) == ([], 0, None)
    assert (log.topic_id, log.leader_epochs, log.damage) == (None, [], None)


def test_invalid_arguments_are_rejected(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    with pytest.raises(OptionError, match="isolation 'committed': expected one of read_uncommitted"):
        log.read(isolation="committed")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="negative"):
        log.read(-1)
    with pytest.raises(OptionError, match="no column 'ofset'; columns are key, value"):
        log.read_arrow(columns=["ofset"])
    with pytest.raises(OptionError, match="columns: expected at least one name"):
        log.read_arrow(columns=[])


@pytest.mark.parametrize("source", ["directory", "cluster"])
def test_what_is_no_offset_or_timestamp_is_an_error_of_each_source(kafka_logs: dict[str, Path], source: str) -> None:
    """A log directory raised TypeError or read from the start, a cluster EncodeError."""
    if source == "directory":
        check_arguments(LogDirectory(kafka_logs["modern"] / "data")["txn", 0])
        return
    with Broker() as broker:
        broker.create_topic("txn")
        with kwire.open(f"kafka://{broker.bootstrap_servers}") as logs:
            check_arguments(logs["txn", 0])


def check_arguments(log: Any) -> None:
    for wrong in ("1", 1.5, None, True):
        with pytest.raises(OptionError, match=r"start_offset .*: expected a number"):
            log.read(wrong)
    for wrong in ("1", 1.5, True):
        with pytest.raises(OptionError, match=r"end_offset .*: expected a number"):
            log.read_arrow(0, wrong)
    for wrong in ("1", 1.5, None, True, 2**63, -(2**63) - 1):
        with pytest.raises(OptionError, match=r"timestamp .*: expected milliseconds since 1970"):
            log.offset_for_time(wrong)
    with pytest.raises(OptionError, match="start_offset -1: offsets are not negative"):
        list(log.batches(-1))
    assert log.offset_for_time(2**63 - 1) is None
    assert next(iter(log.read(np.int64(0))), None) == next(iter(log.read()), None)


def test_a_missing_segment_is_reported(copied: Copied) -> None:
    log = LogDirectory(copied("modern", "orders-0"))["orders", 0]
    victim = Path(log.segments[2].url)
    victim.unlink()
    with pytest.raises(LogError, match="No such file") as caught:
        list(log.read())
    assert caught.value.file == str(victim)
    with pytest.raises(LogError, match="No such file"):
        log.read_arrow().read_all()


def test_an_arrow_reader_raises_the_kwire_error(copied: Copied) -> None:
    log = LogDirectory(copied("modern", "orders-0"))["orders", 0]
    path = Path(log.segments[0].url)
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatch) as caught:
        log.read_arrow().read_all()
    assert caught.value.file == str(path)


def test_batches_include_control_batches(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    batches = [batch for _, batch in log.batches()]
    assert sum(batch.is_control for batch in batches) > 10
    assert batches[0].base_offset == 0
    assert batches[-1].next_offset == log.log_end_offset
    later = [batch for _, batch in log.batches(300)]
    assert [batch.base_offset for batch in later] == [b.base_offset for b in batches if b.last_offset >= 300]
    for batch in batches:
        batch.check()  # each is a view of separate bytes
