"""A crash at every step of a log's life keeps every guaranteed record and adds none.

After a process crash the written data is kept, after a power loss the synced data. In both cases the next open finds a
log with the appended records in order and with correct indexes, which can be appended to.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kwire.log import FileSystem, LogConfig, LogDirectory, LogManager, PartitionWriter
from kwire.records import read_batches
from kwire.storage import directory_lock
from tests.log.writing import NOW, batch, numbered, open_log, records_of
from tests.storage.faults import Stopped, StoppingFileSystem

CONFIG = LogConfig(index_interval_bytes=256, segment_index_bytes=4096, segment_bytes=900, retention_ms=-1)
Values = dict[int, bytes | None]


class Guarantees:
    """Records that must or may exist after a crash. written: survive a process crash; synced: a machine crash too.

    possible: all values ever appended, by offset.
    """

    def __init__(self) -> None:
        self.written: Values = {}
        self.synced: Values = {}
        self.possible: dict[int, set[bytes | None]] = {}
        self.start_may_be = 0
        self.is_deleted = False

    def appended(self, log: PartitionWriter, first: int, data: bytes) -> None:
        offset = first
        for one in read_batches(data):
            for each in one.records():
                self.written[offset] = each.value
                offset += 1

    def about_to_append(self, first: int, data: bytes) -> None:
        offset = first
        for one in read_batches(data):
            for each in one.records():
                self.possible.setdefault(offset, set()).add(each.value)
                offset += 1

    def flushed(self, recovery_point: int) -> None:
        self.synced.update({offset: value for offset, value in self.written.items() if offset < recovery_point})

    def about_to_remove(self, gone: Callable[[int], bool]) -> None:
        for values in (self.written, self.synced):
            for offset in [offset for offset in values if gone(offset)]:
                del values[offset]


def run_every_operation(directory: Path, files: FileSystem, reported: Guarantees) -> None:
    """Run every operation that changes a directory."""
    manager = LogManager.open(directory, now_ms=NOW, file_system=files, default_config=CONFIG)
    log = manager.create("t", 0, now_ms=NOW)

    def send(data: bytes, **options: int) -> None:
        first = log.log_end_offset
        reported.about_to_append(first, data)
        appended = log.append(data, now_ms=NOW, **options)
        reported.appended(log, appended.first_offset, data)

    def flush(*, rolled_only: bool = False) -> None:
        log.flush_rolled() if rolled_only else log.flush()
        reported.flushed(log.recovery_point)

    for i in range(8):
        send(numbered(log.log_end_offset, 5, 40), leader_epoch=i // 4)
    flush(rolled_only=True)
    manager.write_checkpoints()
    for i in range(3):
        send(
            batch(b"t%d" % i, b"u", producer_id=9, producer_epoch=0, base_sequence=2 * i, is_transactional=True),
            leader_epoch=1,
        )
    log.append_marker(9, 0, False, 0, now_ms=NOW, leader_epoch=1)
    flush()
    manager.write_checkpoints()
    for _ in range(4):
        send(numbered(log.log_end_offset, 5, 40), leader_epoch=1)

    old = log.segments.base_offsets[1:3]  # compaction: every second batch stays
    end = log.segments.base_offsets[3]
    cleaned = log.local.new_cleaned_segment(old[0], now_ms=NOW)
    gone = set[int]()
    for n, one in enumerate(
        each for base in old for each in list(read_batches((Path(log.directory) / f"{base:020d}.log").read_bytes()))
    ):
        if n % 2:
            gone.update(range(one.base_offset, one.last_offset + 1))
        else:
            cleaned.append([one.buffer], one.last_offset, one.max_timestamp, one.last_offset)
    cleaned.deactivate()
    cleaned.close()
    assert gone
    assert max(gone) < end
    reported.about_to_remove(gone.__contains__)
    log.local.replace_segments(old, [old[0]], now_ms=NOW)

    cut = log.log_end_offset - 10
    reported.about_to_remove(lambda offset: offset >= cut)
    manager.truncate_to("t", 0, cut, now_ms=NOW)
    for _ in range(3):
        send(numbered(log.log_end_offset + 1000, 5, 40), leader_epoch=2)
    reported.start_may_be = start = log.segments.base_offsets[1] + 3
    reported.about_to_remove(lambda offset: offset < start)
    log.delete_records(start)
    manager.apply_retention(NOW)
    manager.apply_retention(NOW + 60_000)
    manager.write_checkpoints()
    other = manager.create("other", 0, now_ms=NOW)
    other.append(numbered(0, 1), now_ms=NOW)
    manager.delete("other", 0, now_ms=NOW)
    manager.apply_retention(NOW + 120_000)
    send(numbered(log.log_end_offset, 5, 40), leader_epoch=2)
    manager.close()
    reported.synced = dict(reported.written)


def reopened(directory: Path) -> LogManager:
    """Open the directory without real syncs, which take most of the time."""
    return LogManager.open(directory, now_ms=NOW, default_config=CONFIG, file_system=StoppingFileSystem())


def check(directory: Path, reported: Guarantees, *, power_lost: bool, where: str) -> None:
    """Open a directory after a crash and check it against the guarantees."""
    manager = reopened(directory)
    log = manager.logs.get(("t", 0))
    must = reported.synced if power_lost else reported.written
    if log is None:
        assert not must, where
        manager.close()
        return
    found = records_of(log)
    for offset, value in must.items():
        assert found.get(offset) == value, (where, offset)
    for offset, value in found.items():
        assert value in reported.possible[offset], (where, offset)
    for offset in list(found)[:: max(1, len(found) // 12)]:  # each found through the indexes as by reading on
        batches = list(read_batches(log.fetch(offset, 1).read()))
        values = {record.offset: record.value for record in batches[0].records()}
        assert values[offset] == found[offset], (where, offset)
    end = log.log_end_offset
    log.append(numbered(7, 2), now_ms=NOW, leader_epoch=5)
    after = records_of(log)
    assert len(after) == len(found) + 2, where
    aborted = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    manager.close()

    reader = LogDirectory(directory)["t", 0]
    assert {record.offset: record.value for record in reader.read()} == after, where
    if log.log_start_offset == 0 and end > 46:  # the marker exists
        assert [each[:] for each in aborted] == [(9, 40, 46)], where
    with reopened(directory) as again:
        assert again.was_clean
        assert records_of(again.logs["t", 0]) == after, where


def steps_of_a_life(directory: Path) -> int:
    files = StoppingFileSystem()
    run_every_operation(directory / "whole", files, Guarantees())
    return len(files.steps)


def stop_at(directory: Path, step: int, *, torn: bool) -> tuple[StoppingFileSystem, Guarantees]:
    files, reported = StoppingFileSystem(step, torn=torn), Guarantees()
    with pytest.raises(Stopped):
        run_every_operation(directory, files, reported)
    return files, reported


@pytest.fixture(autouse=True)
def release_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Release locks, as the end of a process would."""

    class Forgetful(directory_lock.DirectoryLock):
        def __init__(self, path: str) -> None:
            directory_lock.locked_here.clear()
            super().__init__(path)

    monkeypatch.setattr("kwire.log.writing.log_manager.DirectoryLock", Forgetful)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory in memory if possible, since a rename on disk takes a millisecond."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


EVERY = 6  # 1 meets each of the 340 steps with each kind of crash, which takes a minute


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.requirement("G-01", "G-02", "G-03", "G-04", "G-07", "G-08", "G-12", "G-13", "F-02", "F-63", "X-35")
def test_a_process_killed_at_any_step_loses_no_written_data(directory: Path, torn: bool) -> None:
    for step in range(int(torn), steps_of_a_life(directory), EVERY):
        files, reported = stop_at(directory / str(step), step, torn=torn)
        check(directory / str(step), reported, power_lost=False, where=f"step {step}, after {files.steps[-1:]}")


@pytest.mark.requirement("G-07", "G-08", "G-11", "F-02")
def test_a_power_loss_at_any_step_keeps_flushed_data(directory: Path) -> None:
    source = random.Random(4)
    for step in range(2, steps_of_a_life(directory), EVERY):
        files, reported = stop_at(directory / str(step), step, torn=source.random() < 0.5)
        files.lose_unsynced(source)
        check(directory / str(step), reported, power_lost=True, where=f"step {step}, after {files.steps[-1:]}")


WRITER = """
    import sys
    from tests.log.writing import SMALL, numbered, open_log
    from pathlib import Path
    log = open_log(Path(sys.argv[1]), SMALL)
    while True:
        end = log.log_end_offset
        log.append(numbered(end, 7, 60), now_ms=1_760_000_000_000)
        if end % 5 == 0:
            log.flush()
        print(log.log_end_offset, flush=True)
"""


@pytest.mark.slow
@pytest.mark.requirement("G-07", "G-08")
def test_a_killed_writer_leaves_every_acknowledged_record(tmp_path: Path) -> None:
    for run in range(3):
        directory = tmp_path / str(run)
        directory.mkdir()
        command = [sys.executable, "-c", textwrap.dedent(WRITER), str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(1 + 100 * run)]
            process.send_signal(signal.SIGKILL)
            reported = [int(line) for line in [*lines, *process.stdout.read().splitlines()] if line]
        log = open_log(directory)
        found = records_of(log)
        assert log.log_end_offset >= reported[-1] > 0
        assert list(found) == list(range(log.log_end_offset))
        assert all(value is not None and value.startswith(b"%d." % offset) for offset, value in found.items())
        log.close()
