"""offset_for_time against Kafka's ListOffsets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.log import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, LogDirectory
from kwire.log.files.segment import Segment
from kwire.storage.store import Entry, LocalStore
from tests.log.expected import ARCHIVES, offsets


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("without", [(), ("timeindex",), ("index", "timeindex")], ids=str)
@pytest.mark.requirement("D-08", "F-20", "F-21", "F-22", "F-64")
def test_offsets_by_timestamp_equal_kafkas_with_and_without_indexes(
    kafka_logs: dict[str, Path], archive: str, without: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = LocalStore.list

    def list_without(self: LocalStore, path: str) -> list[Entry]:
        return [entry for entry in listed(self, path) if entry.name.rpartition(".")[2] not in without]

    monkeypatch.setattr(LocalStore, "list", list_without)
    directory = LogDirectory(kafka_logs[archive] / "data")
    asked = 0
    for topic, partition, isolation, entry in offsets(kafka_logs[archive] / "expected"):
        log = directory[topic, partition]
        for timestamp, offset, found in entry["offsetsForTimes"]:
            response = log.offset_for_time(timestamp, isolation=isolation)
            got = (None, None) if response is None else (response.offset, response.timestamp)
            assert got == (offset, found), (topic, partition, isolation, timestamp)
            asked += 1
    assert asked > 100


@pytest.mark.requirement("D-08")
def test_special_timestamps_return_the_ends_and_the_largest_timestamp(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    assert log.offset_for_time(EARLIEST_TIMESTAMP) == (0, -1, None)
    assert log.offset_for_time(LATEST_TIMESTAMP) == (log.log_end_offset, -1, None)
    assert log.offset_for_time(LATEST_TIMESTAMP, isolation="read_committed") == (log.last_stable_offset, -1, None)
    ids = LogDirectory(kafka_logs["modern"] / "data")["ids", 0]
    records = list(ids.read())
    latest = max(record.timestamp for record in records)
    first = next(record for record in records if record.timestamp == latest)
    assert ids.offset_for_time(MAX_TIMESTAMP) == (first.offset, latest, first.leader_epoch)
    assert LogDirectory(kafka_logs["legacy"] / "data")["v0", 0].offset_for_time(MAX_TIMESTAMP) is None


@pytest.mark.requirement("F-23", "F-22")
def test_a_wrong_time_index_does_not_change_lookups(copied: Callable[[str, str], Path]) -> None:
    log = LogDirectory(copied("modern", "ids-0"))["ids", 0]
    targets = sorted({record.timestamp + d for record in log.read() for d in (0, 1)})[::7]
    truth = [log.offset_for_time(target) for target in targets]
    path = Path(log.segments[0].url).with_suffix(".timeindex")
    honest = path.read_bytes()
    assert len(honest) > 60
    for with_field in (
        honest[:-5],
        honest[:-12],  # such as in a copy whose `.log` is newer
        honest[:24],
        honest[:12],
        b"",
        bytes(1200),
        honest + bytes(1200),
        b"\xff" * 120,
        honest[12:] + honest[:12],
        b"".join(honest[i : i + 8] + honest[12 * 20 + 8 : 12 * 20 + 12] for i in range(0, len(honest), 12)),
        b"".join(
            (int.from_bytes(honest[i : i + 8]) - 5000).to_bytes(8) + honest[i + 8 : i + 12]
            for i in range(0, len(honest), 12)
        ),
    ):
        path.write_bytes(with_field)
        assert [log.offset_for_time(target) for target in targets] == truth
    path.write_bytes(honest)


def test_the_largest_timestamp_includes_records_after_the_last_index_entry(
    kafka_logs: dict[str, Path],
) -> None:
    killed = LogDirectory(kafka_logs["unclean"] / "killed" / "data")
    for (topic, _), log in killed.items():
        if topic != "u-plain":
            continue
        active = log.segments[-1]
        assert isinstance(active, Segment)
        with active.open() as file:
            largest = active.largest_timestamp(file)
        assert largest == max(record.timestamp for record in log.read(active.base_offset))
