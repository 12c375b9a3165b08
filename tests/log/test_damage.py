"""Damaged logs: readable records are returned, damage is reported, and no wrong record is returned."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.errors import CorruptBatch, KwireError
from kwire.log import LogDirectory, PartitionLog, plan_splits, read_split
from kwire.records.columns.reader import COLUMNS
from tests.log.expected import ISOLATIONS, Row, consumed, offsets, read_arrow, row, rows_of

Copied = Callable[[str, str], Path]


def read_until_damage(log: PartitionLog, how: str, **options: Any) -> tuple[list[Row], CorruptBatch | None]:
    """Return (rows, the CorruptBatch that ended the read)."""
    rows: list[Row] = []
    try:
        if how == "read":
            rows.extend(row(record) for record in log.read(**options))
        else:
            for batch in log.read_arrow(columns=COLUMNS, **options):
                rows.extend(rows_of([batch]))
    except CorruptBatch as error:
        return rows, error
    return rows, None


WAYS = pytest.mark.parametrize("how", ["read", "read_arrow"])


@WAYS
@pytest.mark.requirement("G-01", "G-08", "F-14", "R-02")
def test_a_killed_brokers_log_reads_like_the_recovered_one(kafka_logs: dict[str, Path], how: str) -> None:
    directory = LogDirectory(kafka_logs["unclean"] / "killed" / "data")
    for topic, partition, isolation, entry in offsets(kafka_logs["unclean"] / "expected" / "killed-recovered"):
        log = directory[topic, partition]
        rows, _ = consumed(kafka_logs["unclean"] / "expected" / "killed-recovered", topic, partition, isolation)
        if isolation == "read_committed" and topic == "u-txn":
            # the transaction that was open is closed by the broker after its recovery
            assert log.last_stable_offset < entry["end"]
            rows = [each for each in rows if each.offset < log.last_stable_offset]
        assert read_until_damage(log, how, isolation=isolation) == (rows, None), (topic, partition, isolation)
        if topic == "u-plain":
            assert log.log_end_offset == entry["end"]


@WAYS
@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.requirement("D-05", "D-07", "G-07", "G-08")
def test_damage_ends_a_read_at_the_offset_of_kafkas_consumer(
    kafka_logs: dict[str, Path], how: str, isolation: str
) -> None:
    """Partitions: tests/data/logs/README.md and expected/damage.json."""
    unclean = kafka_logs["unclean"]
    directory = LogDirectory(unclean / "damaged" / "data")
    damages = {}
    for partition in range(6):
        log = directory["u-plain", partition]
        expected, _ = consumed(unclean / "expected" / "damaged-recovered", "u-plain", partition, isolation)
        rows, damages[partition] = read_until_damage(log, how, isolation=isolation)
        assert rows == expected, partition  # recovery truncated the rest; the consumer stopped at partition 4's batch
    assert {partition for partition, damage in damages.items() if damage} == {1, 4}
    folder = unclean / "damaged" / "data"
    one, four = damages[1], damages[4]
    assert one is not None
    assert four is not None
    assert (one.file, one.position) == (str(folder / "u-plain-1/00000000000000000550.log"), 0)
    assert one.offsets == (550, 556)
    assert (four.file, four.position) == (str(folder / "u-plain-4/00000000000000000000.log"), 29993)
    assert four.offsets == (203, 203)


@WAYS
@pytest.mark.requirement("F-31", "F-42", "F-14")
def test_damaged_transaction_files_and_zero_tails_do_not_matter(kafka_logs: dict[str, Path], how: str) -> None:
    unclean = kafka_logs["unclean"]
    for partition in (0, 1):
        killed = LogDirectory(unclean / "killed" / "data")["u-txn", partition]
        damaged = LogDirectory(unclean / "damaged" / "data")["u-txn", partition]
        assert damaged.last_stable_offset == killed.last_stable_offset
        for isolation in ISOLATIONS:
            rows, damage = read_until_damage(damaged, how, isolation=isolation)
            assert rows == read_until_damage(killed, how, isolation=isolation)[0]
            assert damage is None
            assert rows


@WAYS
@pytest.mark.requirement("G-07")
def test_a_recovered_log_reads_without_errors(kafka_logs: dict[str, Path], how: str) -> None:
    unclean = kafka_logs["unclean"]
    directory = LogDirectory(unclean / "recovered" / "data")
    for topic, partition, isolation, entry in offsets(unclean / "expected" / "damaged-recovered"):
        rows, _ = consumed(unclean / "expected" / "damaged-recovered", topic, partition, isolation)
        log = directory[topic, partition]
        assert log.bounds(0, None, isolation) == (entry["beginning"], entry["end"])
        got, damage = read_until_damage(log, how, isolation=isolation)
        assert got == rows
        assert (damage is None) == ((topic, partition) != ("u-plain", 4))  # below the recovery point: not looked at


@WAYS
def test_a_truncated_closed_segment_is_damage(copied: Copied, how: str) -> None:
    data = copied("modern", "orders-0")
    log = LogDirectory(data)["orders", 0]
    path = Path(log.segments[1].url)
    whole = path.read_bytes()
    last = list(log.segments[1].headers())[-1]
    before = [each for each in read_arrow(log) if each.offset < last.stored_offset]
    for cut in (last.position + 1, last.position + 11, last.position + 16, last.position + 60, len(whole) - 1):
        path.write_bytes(whole[:cut])
        rows, damage = read_until_damage(LogDirectory(data)["orders", 0], how)
        assert rows == before
        assert damage is not None
        assert (damage.file, damage.position) == (str(path), last.position)
        assert "the segment ends inside this batch" in str(damage)
    path.write_bytes(whole[: last.position] + bytes(len(whole) - last.position))
    rows, damage = read_until_damage(LogDirectory(data)["orders", 0], how)
    assert (rows, damage and damage.position) == (before, last.position)


@WAYS
@pytest.mark.requirement("R-03")
def test_an_absurd_length_is_damage_and_not_the_end_of_the_log(copied: Copied, how: str) -> None:
    data = copied("modern", "ids-0")
    log = LogDirectory(data)["ids", 0]
    segment = log.segments[-1]
    path, whole = Path(segment.url), Path(segment.url).read_bytes()
    headers = list(segment.headers())
    middle = headers[len(headers) // 2]
    before = [each for each in read_arrow(log) if each.offset < middle.stored_offset]
    for size in (0x7FFF_FFFF, 0x7FFF_FFF3, 0x0FFF_FFFF, 0, 13, -1, -(2**31)):
        broken = bytearray(whole)
        broken[middle.position + 8 : middle.position + 12] = size.to_bytes(4, signed=True)
        path.write_bytes(broken)
        rows, damage = read_until_damage(LogDirectory(data)["ids", 0], how)
        assert rows == before, size
        assert damage is not None
        assert damage.position == middle.position, size


@WAYS
def test_a_batch_above_the_size_limit_is_rejected_with_the_option(kafka_logs: dict[str, Path], how: str) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["orders", 1]  # one value of 260 kB under zstd
    _, damage = read_until_damage(log, how, max_decompressed_bytes=100_000)
    assert "max_decompressed_bytes=100000" in str(damage)


@pytest.mark.sampled
@WAYS
@pytest.mark.parametrize(("archive", "partition"), [("modern", "ids-0"), ("legacy", "v1-1"), ("modern", "compacted-0")])
def test_an_out_of_order_offset_is_damage(copied: Copied, how: str, archive: str, partition: str) -> None:
    """Offsets are outside the checksum, so without comparing adjacent batches rows would silently be wrong."""
    data = copied(archive, partition)
    (key, log), *_ = LogDirectory(data).items()
    whole = read_arrow(log)
    segment = log.segments[0]
    path, honest = Path(segment.url), Path(segment.url).read_bytes()
    headers = list(segment.headers())
    for at in (0, 1, len(headers) // 2):
        position = headers[at].position
        for bit in range(64):
            broken = bytearray(honest)
            broken[position + bit // 8] ^= 0x80 >> bit % 8
            path.write_bytes(broken)
            rows, damage = read_until_damage(LogDirectory(data)[key], how)
            if damage is None:  # a small step into a hole that compaction left: nobody can tell
                first = headers[at].stored_offset
                moved = int.from_bytes(broken[position : position + 8])
                assert abs(moved - first) < 128
                floor = headers[at - 1].last_offset if at else segment.base_offset - 1
                assert floor < moved
                assert moved + headers[at].last_offset - first < headers[at + 1].stored_offset
            else:
                assert rows == whole[: len(rows)]
                assert damage.position in {headers[at].position, headers[at + 1].position, headers[at - 1].position}


MODES = pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])


def by_splits(data: Path, mode: str, split_bytes: int = 1 << 27, isolation: Any = "read_uncommitted") -> Any:
    """Return (rows, (offset, text) of corrupt rows) by splits, with the `_corrupt` column."""
    rows, lost = [], []
    for split in plan_splits(LogDirectory(data), split_bytes=split_bytes, isolation=isolation):
        for batch in read_split(split, [*COLUMNS, "_corrupt"], mode=mode):  # type: ignore[arg-type]
            texts = batch.column("_corrupt").to_pylist()
            good = batch.filter([text is None for text in texts])
            rows += rows_of([good.drop_columns(["_corrupt"])])
            lost += [(each["offset"], each["_corrupt"]) for each in batch.to_pylist() if each["_corrupt"] is not None]
            for each in batch.to_pylist():
                assert (each["topic"], each["partition"]) == (split.topic, split.partition)
                if each["_corrupt"] is not None:
                    assert (each["key"], each["value"], each["headers"], each["timestamp"]) == (None,) * 4
    return rows, lost


@MODES
@pytest.mark.parametrize("split_bytes", [4000, 1 << 27])
@pytest.mark.requirement("D-07")
def test_a_wrong_checksum_loses_one_batch(copied: Copied, mode: str, split_bytes: int) -> None:
    data = copied("unclean/damaged", "u-plain-4")
    good = LogDirectory(copied("unclean/killed", "u-plain-5"))["u-plain", 5]
    shutil.rmtree(good.url)
    rows, lost = by_splits(data, mode, split_bytes)
    assert [each.offset for each in rows] == [*range(203), *range(204, 623)]
    if mode == "DROPMALFORMED":
        assert lost == []
    else:
        ((offset, text),) = lost
        assert offset == 203
        assert f"{data}/u-plain-4/00000000000000000000.log: stored CRC" in text
        assert "byte 29993 (offset 203)" in text


@MODES
def test_reading_continues_at_the_next_indexed_batch_after_a_corrupt_header(copied: Copied, mode: str) -> None:
    data = copied("modern", "ids-0")
    log = LogDirectory(data)["ids", 0]
    segment = log.segments[0]
    path, honest, index = Path(segment.url), Path(segment.url).read_bytes(), segment.index
    assert index is not None
    headers = list(segment.headers())
    for at in (3, len(headers) // 2):
        victim = headers[at]
        broken = bytearray(honest)
        broken[victim.position + 8 : victim.position + 17] = b"\xff" * 9
        path.write_bytes(broken)
        resume = next(h for h in headers if h.position == index[index.after_position(victim.position + 1)][1])
        gone = range(victim.stored_offset, resume.stored_offset)
        rows, lost = by_splits(data, mode)
        assert [r.offset for r in rows] == [o for o in range(log.log_end_offset) if o not in gone]
        if mode == "PERMISSIVE":
            ((offset, text),) = lost
            assert offset == victim.stored_offset
            assert f"byte {victim.position} (offsets {gone[0]} to {gone[-1]})" in text
            assert f"unreadable from here to byte {resume.position}" in text
        for kind in ("index", "timeindex"):
            path.with_suffix(f".{kind}").rename(path.with_suffix(f".{kind}.away"))
        rows, lost = by_splits(data, mode)
        next_base = segment.next_base or log.log_end_offset
        gone = range(victim.stored_offset, next_base)
        assert [r.offset for r in rows] == [o for o in range(log.log_end_offset) if o not in gone]
        assert len(lost) == (mode == "PERMISSIVE")
        for kind in ("index", "timeindex"):
            path.with_suffix(f".{kind}.away").rename(path.with_suffix(f".{kind}"))
    path.write_bytes(honest)


@MODES
def test_a_truncated_segment_loses_its_last_batch(copied: Copied, mode: str) -> None:
    data = copied("modern", "orders-0")
    log = LogDirectory(data)["orders", 0]
    segment = log.segments[1]
    last = list(segment.headers())[-1]
    path = Path(segment.url)
    path.write_bytes(path.read_bytes()[:-1])
    rows, lost = by_splits(data, mode)
    assert [each.offset for each in rows] == [
        offset for offset in range(log.log_end_offset) if not last.stored_offset <= offset <= last.last_offset
    ]
    if mode == "PERMISSIVE":
        ((offset, text),) = lost
        assert offset == last.stored_offset
        assert f"(offsets {last.stored_offset} to {last.last_offset})" in text


@MODES
def test_out_of_order_offsets_lose_the_conflicting_batches(copied: Copied, mode: str) -> None:
    data = copied("modern", "ids-0")
    log = LogDirectory(data)["ids", 0]
    path = Path(log.segments[0].url)
    headers = list(log.segments[0].headers())
    victim, behind = headers[5], headers[6]
    broken = bytearray(path.read_bytes())
    broken[victim.position : victim.position + 8] = (victim.stored_offset + 1).to_bytes(8)
    path.write_bytes(broken)
    rows, lost = by_splits(data, mode)
    gone = range(victim.stored_offset, behind.last_offset + 1)
    assert [each.offset for each in rows] == [o for o in range(log.log_end_offset) if o not in gone]
    assert len(lost) == (mode == "PERMISSIVE")


@pytest.fixture(scope="module")
def small(kafka_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A log directory with short logs to damage, and their rows."""
    data = tmp_path_factory.mktemp("small") / "data"
    data.mkdir()
    found: dict[str, Any] = {}
    for archive, partition in (("modern", "txn-0"), ("legacy", "compacted-v1-1"), ("legacy", "mixed-format-0")):
        shutil.copytree(kafka_logs[archive] / "data" / partition, data / partition)
        (log,) = LogDirectory(data / partition).values()
        found[partition] = {isolation: read_arrow(log, isolation=isolation) for isolation in ISOLATIONS}
    return data, found


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_corrupted_bytes_give_valid_rows_or_a_kwire_error(
    small: tuple[Path, dict[str, Any]], data: st.DataObject
) -> None:
    root, truth = small
    partition = data.draw(st.sampled_from(sorted(truth)))
    isolation = data.draw(st.sampled_from(ISOLATIONS))
    path = data.draw(st.sampled_from(sorted((root / partition).iterdir())))
    honest = path.read_bytes()
    broken = bytearray(honest)
    for _ in range(data.draw(st.integers(1, 3))):
        if not broken:
            break
        at = data.draw(st.integers(0, len(broken) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "overwrite"]))
        if kind == "flip":
            broken[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "cut":
            del broken[at:]
        elif kind == "insert":
            broken[at:at] = data.draw(st.binary(min_size=1, max_size=40))
        else:
            broken[at : at + 8] = data.draw(st.sampled_from([b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7]))
    path.write_bytes(broken)
    rows = truth[partition][isolation]
    contents = {each[1:] for each in rows}
    try:
        (log,) = LogDirectory(root / partition).values()
        for how in ("read", "read_arrow"):
            try:
                got, _ = read_until_damage(log, how, isolation=isolation)
            except KwireError:
                continue
            if path.suffix != ".log":
                assert got == rows  # indexes and checkpoints change nothing
            else:
                assert {each[1:] for each in got} <= contents or isolation == "read_committed"
        for mode in ("DROPMALFORMED", "PERMISSIVE"):
            try:
                by_splits(root / partition, mode, 3000, isolation)
            except KwireError:
                continue
        log.offset_for_time(1_760_000_010_000)
    except KwireError:
        pass
    finally:
        path.write_bytes(honest)
