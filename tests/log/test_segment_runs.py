"""Which segments that are gone were deleted by retention or compaction, and which are lost."""

from __future__ import annotations

from pathlib import Path

from kwire.log import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.segment_runs import is_expired, is_lost
from tests.cli.crafted import segment
from tests.records.building import batch


def three_segments(folder: Path) -> tuple[list[Path], PartitionLog]:
    """Write segments of one record at offsets 0 to 2; return their files and their log, listed then."""
    files = [segment(folder / "t-0", batch(base_offset=offset), base_offset=offset) for offset in range(3)]
    log = LogDirectory(folder)["t", 0]
    assert [each.base_offset for each in log.segments] == [0, 1, 2]
    return files, log


def test_a_segment_is_expired_only_when_the_log_begins_after_it(tmp_path: Path) -> None:
    """Otherwise a read of the oldest one that fails would be skipped."""
    files, log = three_segments(tmp_path)
    assert [is_expired(log, each) for each in log.segments] == [False, False, False]
    files[0].unlink()
    assert [is_expired(log, each) for each in log.segments] == [True, False, False]
    files[1].unlink()
    files[2].unlink()
    assert [is_expired(log, each) for each in log.segments] == [False, False, False]


def test_a_segment_is_lost_unless_the_one_before_it_was_replaced(tmp_path: Path) -> None:
    files, log = three_segments(tmp_path)
    assert not is_lost(log.segments[1], log, log.reopened())
    files[1].unlink()
    assert is_lost(log.segments[1], log, log.reopened())
    files[0].write_bytes(batch(base_offset=0) + batch(base_offset=1))
    assert not is_lost(log.segments[1], log, log.reopened())
    files[0].unlink()
    assert not is_lost(log.segments[0], log, log.reopened())
