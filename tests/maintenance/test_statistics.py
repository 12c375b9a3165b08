"""Statistics of topics, compared with Kafka's consumer, within memory limits."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.log import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.runs import PinnedRange
from kwire.maintenance import statistics
from kwire.maintenance.statistics import KeyCount, PartitionStatistics, Timeline, TopicStatistics, count_topics
from kwire.records import ControlRecordType, write_transaction_marker
from kwire.storage.checkpoints import render_offset_checkpoint
from tests.log.writing import NOW, batch, with_times
from tests.records import building


def counted(data: Path, *topics: str) -> dict[str, TopicStatistics]:
    logs = [log for (topic, _), log in LogDirectory(data).items() if not topics or topic in topics]
    return {each.topic: each for each in count_topics(logs, lambda n: None)}


def consumed(folder: Path, topic: str, isolation: str = "read_uncommitted") -> list[dict]:
    """Return the records of Kafka's consumer from all partitions of a topic."""
    return [
        json.loads(line)
        for file in sorted(folder.glob(f"{topic}-[0-9]*.{isolation}.jsonl.gz"))
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]


def size(text: str | None) -> int:
    return 0 if text is None else len(base64.b64decode(text))


@pytest.mark.parametrize(
    ("archive", "topic"),
    [
        ("modern", "orders"),
        ("modern", "txn"),
        ("modern", "compacted"),
        ("modern44", "events44"),
        ("legacy", "mixed-format"),
        ("legacy", "append-v1"),
    ],
)
def test_statistics_equal_those_of_kafkas_records(archive: str, topic: str, kafka_logs: dict[str, Path]) -> None:
    found = counted(kafka_logs[archive] / "data", topic)[topic]
    records = consumed(kafka_logs[archive] / "expected" / "consumed", topic)
    keys = Counter(record["key"] for record in records)
    types = Counter({"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}[r["timestampType"]] for r in records)
    header_bytes = sum(len(name.encode()) + size(value) for r in records for name, value in r["headers"])

    assert found.records == len(records)
    assert found.tombstones == sum(record["value"] is None for record in records)
    assert found.empty_values == sum(record["value"] == "" for record in records)
    assert found.with_headers == sum(bool(record["headers"]) for record in records)
    assert found.timestamp_types == types
    assert found.keys.null == keys.pop(None, 0)
    assert found.keys.empty == keys.get("", 0)
    assert found.keys.complete
    assert {base64.b64encode(key).decode(): n for (key, _), n in found.keys.counts.items()} == keys
    assert found.key_bytes == sum(size(record["key"]) for record in records)
    assert found.value_bytes == sum(size(record["value"]) for record in records)
    assert found.header_bytes == header_bytes
    assert sum(codec.payload_bytes for codec in found.codecs.values()) == found.payload_bytes
    assert sum(codec.records for codec in found.codecs.values()) == len(records)
    assert sum(found.magics.values()) == len(records)
    timed = [record["timestamp"] for record in records if record["timestamp"] != -1]
    assert found.timeline.untimed == len(records) - len(timed)
    assert (found.timeline.first_ms, found.timeline.last_ms) == (min(timed, default=None), max(timed, default=None))
    assert sum(n for n, _ in found.timeline.buckets.values()) == len(timed)


def test_committed_aborted_and_open_records_sum_to_the_total(kafka_logs: dict[str, Path]) -> None:
    found = counted(kafka_logs["modern"] / "data", "txn")["txn"]
    expected = kafka_logs["modern"] / "expected" / "consumed"
    offsets = json.loads((expected / "offsets.json").read_text())
    stable = {p: offsets[f"txn-{p}" + " read_committed"]["end"] for p in (0, 1)}
    everything = consumed(expected, "txn")
    assert found.committed_records == len(consumed(expected, "txn", "read_committed"))
    assert found.undecided_records == sum(record["offset"] >= stable[record["partition"]] for record in everything)
    assert found.commits > found.aborts > 0
    assert {p.partition: p.last_stable_offset for p in found.partitions} == stable


def test_offsets_are_data_control_or_gaps(kafka_logs: dict[str, Path]) -> None:
    topics = counted(kafka_logs["modern"] / "data", "orders", "txn", "compacted", "compacted-txn", "trimmed")
    for topic in topics.values():
        for partition in topic.partitions:
            assert partition.records + partition.control_records + partition.holes == partition.span
            assert sum(partition.density) == partition.records + partition.control_records
            assert sum(n for _, _, n in partition.bins()) == sum(partition.density)
            assert all(n <= end - start for start, end, n in partition.bins())
    assert topics["orders"].holes == topics["txn"].holes == topics["trimmed"].holes == 0
    assert topics["compacted"].holes > 4000
    assert topics["trimmed"].partitions[0].log_start_offset == 555


def test_unreadable_logs_are_listed_and_the_others_counted(kafka_logs: dict[str, Path]) -> None:
    found = counted(kafka_logs["unclean"] / "damaged" / "data", "u-plain")["u-plain"]
    assert [line.rsplit("/", 2)[1] for line in found.unread] == ["u-plain-1", "u-plain-4"]
    assert found.records == sum(p.span - p.holes for p in found.partitions)
    assert found.holes == 8  # seven records of one batch, one of the other


def test_progress_reports_every_byte_read(kafka_logs: dict[str, Path]) -> None:
    logs = [log for (topic, _), log in LogDirectory(kafka_logs["modern"] / "data").items() if topic == "ids"]
    reported: list[int] = []
    count_topics(logs, reported.append)
    assert sum(reported) == sum(log.size_bytes for log in logs)


# ---- memory limits


def test_counting_distinct_keys_stops_at_the_limit_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_KEYS", 100)
    keys = KeyCount()
    for _ in range(2):
        keys.add(pa.array([b"k%d" % i for i in range(250)], pa.binary()))
    assert keys.distinct == 100
    assert not keys.complete
    assert keys.uncounted == 2 * 150
    assert sum(keys.counts.values()) == 2 * 100


def test_long_keys_are_distinguished_by_hash() -> None:
    head = b"x" * 1000
    keys = KeyCount()
    keys.add(pa.array([head + b"a", head + b"b", head + b"a", None, b""], pa.binary()))
    assert keys.distinct == 3
    assert (keys.null, keys.empty) == (1, 1)
    assert keys.top(1) == [(b"x" * statistics.SHORT_KEY_BYTES, True, 2)]
    assert sum(len(a) + len(b) for a, b in keys.counts) < 200


TIMES = st.integers(-(2**63) // 1000 + 1, 2**63 // 1000 - 1)


@given(st.lists(TIMES | st.integers(1_700_000_000_000, 1_700_000_100_000), min_size=1, max_size=60))
def test_a_timeline_counts_every_record_once_in_few_bins(times: list[int]) -> None:
    timeline = Timeline()
    timeline.add(np.array(times, dtype=np.int64), np.ones(len(times), dtype=np.int64))
    stretches, outside = timeline.stretches(50)
    drawn = sum(n for stretch in stretches for _, n, _ in stretch.bars)
    assert drawn + outside + timeline.untimed == len(times)
    assert all(1 <= len(stretch.bars) <= 50 for stretch in stretches)
    assert len(stretches) <= statistics.MAX_STRETCHES
    for stretch in stretches:
        starts = [start for start, _, _ in stretch.bars]
        assert all(b - a == stretch.width_ms for a, b in itertools.pairwise(starts))


def test_a_timeline_coarsens_instead_of_growing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_BUCKETS", 50)
    timeline = Timeline()
    for start in range(0, 10_000_000, 1_000_000):
        times = np.arange(start, start + 1_000_000, 997, dtype=np.int64)
        timeline.add(times, np.ones(len(times), dtype=np.int64))
        assert len(timeline.buckets) <= 50
    assert sum(n for n, _ in timeline.buckets.values()) == sum(-(-1_000_000 // 997) for _ in range(10))
    assert timeline.width_ms in statistics.BUCKET_LADDER_MS


def test_long_gaps_split_a_timeline() -> None:
    timeline = Timeline()
    for start in (1_700_000_000_000, 1_800_000_000_000):
        timeline.add(np.arange(start, start + 60_000, 100, dtype=np.int64), np.ones(600, dtype=np.int64))
    stretches, outside = timeline.stretches(60)
    assert [sum(n for _, n, _ in stretch.bars) for stretch in stretches] == [600, 600]
    assert outside == 0
    assert all(stretch.width_ms == 1000 for stretch in stretches)


@given(st.integers(0, 2**62), st.integers(1, 2**62), st.lists(st.integers(0, 2**62), max_size=30))
def test_density_accepts_any_offsets(start: int, span: int, more: list[int]) -> None:
    partition = PartitionStatistics(0, start, min(start + span, 2**63 - 1))
    offsets = np.unique(np.array([start, *more], dtype=np.int64))
    partition.add_offsets(offsets)
    inside = sum(start <= offset < partition.log_end_offset for offset in offsets.tolist())
    assert sum(partition.density) == inside
    bins = partition.bins()
    assert bins[0][0] == start
    assert bins[-1][1] == partition.log_end_offset
    assert len(bins) <= statistics.DENSITY_BINS


def test_batches_appended_during_the_count_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither their records nor their bytes."""
    data = with_times(tmp_path / "data", [NOW, NOW])
    path = data / "t-0" / f"{0:020}.log"
    size, pin = path.stat().st_size, PartitionLog.pin

    def pinned(log: PartitionLog) -> PinnedRange:
        found = pin(log)
        path.write_bytes(path.read_bytes() + batch(b"later", base_offset=2))
        return found

    monkeypatch.setattr(PartitionLog, "pin", pinned)
    found = counted(data)["t"]
    assert (found.records, found.batches, found.stored_bytes) == (2, 2, size)


@pytest.mark.parametrize(("start", "markers"), [(1, 1), (2, 0)])
def test_a_marker_at_the_log_start_offset_is_counted(start: int, markers: int, tmp_path: Path) -> None:
    data = with_times(tmp_path / "data", [NOW])
    marker = write_transaction_marker(
        ControlRecordType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW, base_offset=1
    )
    path = data / "t-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + marker + batch(b"behind", base_offset=2))
    (data / "log-start-offset-checkpoint").write_bytes(render_offset_checkpoint({("t", 0): start}))
    (partition,) = counted(data)["t"].partitions
    assert (partition.log_start_offset, partition.records, partition.control_records) == (start, 1, markers)


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
def test_a_key_is_cut_above_a_length(more: int, is_cut: bool) -> None:
    keys, key = KeyCount(), b"x" * (statistics.SHORT_KEY_BYTES + more)
    keys.add(pa.array([key, key], pa.binary()))
    assert keys.top(1) == [(key[: statistics.SHORT_KEY_BYTES], is_cut, 2)]


def test_a_timeline_may_have_as_many_buckets_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_BUCKETS", 5)
    widths = []
    for count in (5, 6):
        timeline = Timeline()
        width = timeline.width_ms
        timeline.add(np.arange(count, dtype=np.int64) * width, np.ones(count, dtype=np.int64))
        widths.append(timeline.width_ms == width)
    assert widths == [True, False]


@pytest.mark.parametrize(("records", "stretches"), [(99, 2), (100, 1)])
def test_records_far_from_others_are_drawn_from_1_percent_on(records: int, stretches: int) -> None:
    timeline = Timeline()
    start = 1_700_000_000_000
    timeline.add(np.arange(start, start + records * 1000, 1000, dtype=np.int64), np.ones(records, dtype=np.int64))
    timeline.add(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    found, outside = timeline.stretches(50)
    assert (len(found), outside) == (stretches, 2 - stretches)


def test_producers_are_counted_up_to_a_limit_and_unknown_codecs_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MAX_PRODUCERS", 2)
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = [building.batch(base_offset=i, producer_id=i, producer_epoch=0, base_sequence=0) for i in range(3)]
    unknown = building.batch(base_offset=3, attributes=5)
    (folder / f"{0:020}.log").write_bytes(b"".join([*batches, unknown]))
    found = counted(tmp_path)["t"]
    assert found.producers == {0, 1}
    assert {name: each.batches for name, each in found.codecs.items()} == {"none": 3, "unknown (5)": 1}
