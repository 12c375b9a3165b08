"""One pass over stored logs: it writes nothing, ends at open transactions and at damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import CorruptBatch, LogError
from kwire.log import LogConfig, LogDirectory
from kwire.log.cleaner.cleaning_pass import CleaningPass
from kwire.log.cleaner.cleaning_plan import make_plan
from kwire.log.cleaner.log_state import stored_state
from kwire.log.cleaner.offset_map import SLOT_BYTES, OffsetMap
from kwire.records import read_batches
from tests.log.cleaner.compared import segment_files

pytestmark = pytest.mark.usefixtures("path")
NOW_MS = 1_800_000_000_000
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300_000)
Copied = Callable[[str, str], Path]


def new_pass(
    directory: Path, key: tuple[str, int], *, memory: int = 1 << 20, checkpoint: int | None = None
) -> CleaningPass:
    state = stored_state(LogDirectory(directory)[key], CONFIG, NOW_MS)
    offset_map = OffsetMap(memory, secret=bytes(16))
    plan = make_plan(state, checkpoint, NOW_MS)
    return CleaningPass(state, plan, offset_map, now_ms=NOW_MS, max_decompressed_bytes=1 << 24)


def run(work: CleaningPass) -> bytes:
    for _ in work.build_map():
        pass
    return b"".join(bytes(left) for group in work.groups() for left in work.clean(group))


@pytest.mark.requirement("X-02", "X-24", "X-25")
def test_read_committed_returns_the_same_last_values_after_cleaning(copied: Copied) -> None:
    directory = copied("modern", "txn-0")
    log = LogDirectory(directory)["txn", 0]
    work = new_pass(directory, ("txn", 0))
    left = run(work)
    end = work.end_offset
    assert end == work.plan.end_offset <= log.last_stable_offset
    committed = {each.offset: each for each in log.read(0, end, isolation="read_committed")}
    newest = {each.key: offset for offset, each in committed.items()}
    expected = sorted(offset for key, offset in newest.items() if key is not None)
    aborted = work.take_aborted()
    batches = list(read_batches(left))
    assert [record.offset for batch in batches if not batch.is_control for record in batch.records()] == expected
    for entry in aborted:
        assert any(batch.is_control and batch.last_offset == entry.last_offset for batch in batches)
    assert work.stats.bytes_written == len(left) < work.stats.bytes_read


@pytest.mark.requirement("X-11", "X-20", "X-36")
def test_a_full_map_ends_the_pass_at_its_last_key(copied: Copied) -> None:
    directory = copied("modern", "orders-0")
    before = list(LogDirectory(directory)["orders", 0].read())
    work = new_pass(directory, ("orders", 0), memory=100 * SLOT_BYTES)
    left = run(work)
    seen: dict[bytes, int] = {}
    for record in before:
        if record.key is not None and len(seen) == 90:
            break
        if record.key is not None:
            seen[record.key] = record.offset
            end = record.offset + 1
    assert work.end_offset == end
    expected = [
        each.offset for each in before if each.offset >= end or (each.key is not None and seen[each.key] == each.offset)
    ]
    found = [record.offset for batch in read_batches(left) for record in batch.records()]
    last = found[-1]
    assert found == [offset for offset in expected if offset <= last]
    assert work.stats.map_utilization == 0.9


@pytest.mark.requirement("X-01", "X-12")
def test_a_pass_without_dirty_records_does_nothing(copied: Copied) -> None:
    directory = copied("modern", "orders-0")
    end = LogDirectory(directory)["orders", 0].segments[-1].base_offset
    work = new_pass(directory, ("orders", 0), checkpoint=end)
    assert run(work) == b""
    assert work.groups() == []
    assert work.end_offset == end


def test_a_truncated_segment_is_damage(copied: Copied) -> None:
    directory = copied("modern", "orders-0")
    path = segment_files(directory / "orders-0")[1]
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    with pytest.raises(CorruptBatch, match="the segment ends inside this batch") as raised:
        run(new_pass(directory, ("orders", 0)))
    assert raised.value.file == str(path)


def test_a_missing_transaction_index_is_an_error_not_committed_data(copied: Copied) -> None:
    directory = copied("modern", "txn-0")
    for path in segment_files(directory / "txn-0", "txnindex"):
        path.unlink()
    with pytest.raises(LogError, match="rebuild the index"):
        run(new_pass(directory, ("txn", 0)))
