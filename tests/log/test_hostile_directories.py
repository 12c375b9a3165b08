"""Hostile directories: opening and reading gives a result or a kwire error, never another error."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kwire.errors import KwireError
from kwire.log import LogManager
from kwire.records import read_batches
from tests.log.writing import NOW, SMALL, batch, numbered
from tests.storage.faults import StoppingFileSystem

ROUNDS = 250


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A directory with every kind of file."""
    with LogManager.open(tmp_path / "original", now_ms=NOW, default_config=SMALL) as manager:
        log = manager.create("t", 0, now_ms=NOW)
        for i in range(14):
            log.append(numbered(i * 10, 10, 60), now_ms=NOW + i, leader_epoch=i // 5)
            log.append(
                batch(b"x", producer_id=i % 3, producer_epoch=0, base_sequence=i // 3, is_transactional=True),
                now_ms=NOW,
            )
            log.append_marker(i % 3, 0, i % 2 == 0, 0, now_ms=NOW)
        log.delete_records(5)
    return tmp_path / "original"


@pytest.fixture
def memory() -> Iterator[Path]:
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as name:
        yield Path(name)


def harm(directory: Path, source: random.Random) -> None:
    """Damage a file or a name."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    path = source.choice(files)
    data = bytearray(path.read_bytes())
    kind = source.randrange(7)
    if kind == 0 and data:
        for _ in range(source.randint(1, 4)):
            data[source.randrange(len(data))] = source.choice([0, 1, 127, 128, 255])
    elif kind == 1:
        del data[source.randint(0, len(data)) :]
    elif kind == 2:
        data += source.choice([bytes(50), source.randbytes(50), bytes(data)])
    elif kind == 3:
        data = bytearray(source.randbytes(source.randint(0, 200)))
    elif kind == 4:
        path.unlink()
        return
    elif kind == 5:
        suffix = source.choice([".deleted", ".cleaned", ".swap", ".log", ".index", ""])
        base = source.choice([0, 7, 50, (1 << 63) - 1, 10**20 - 1])
        path = path.with_name(f"{base:020d}{source.choice(['.log', '.index', '.snapshot'])}{suffix}")
    else:
        position = source.randint(0, len(data))
        data[position:position] = source.randbytes(source.randint(1, 30))
    path.write_bytes(data)


def use(directory: Path) -> bool:
    """Open, read everything, write and close; return whether everything succeeded."""
    files = StoppingFileSystem()
    try:
        manager = LogManager.open(directory, now_ms=NOW, default_config=SMALL, file_system=files)
    except KwireError:
        return False
    try:
        for log in manager.logs.values():
            at = log.log_start_offset
            while batches := list(read_batches(log.fetch(at, 2000).read())):
                assert batches[-1].next_offset > at
                at = batches[-1].next_offset
            for timestamp in (NOW, NOW + 5, -1, -2, -3):
                log.offset_for_time(timestamp)
            log.aborted_transactions(log.log_start_offset, log.log_end_offset)
            log.append(numbered(0, 2), now_ms=NOW)
            log.truncate_to(max(log.log_end_offset - 30, log.log_start_offset), now_ms=NOW)
        manager.close()
        return True
    except KwireError:
        with suppress(KwireError):
            manager.close(clean=False)
        return False


@pytest.mark.requirement("F-02", "F-03", "F-15", "F-23", "F-33", "F-42", "G-05", "G-07", "G-08")
def test_hostile_directories_raise_only_kwire_errors(original: Path, memory: Path) -> None:
    source = random.Random(11)
    went_well = 0
    for round_ in range(ROUNDS):
        directory = memory / str(round_)
        shutil.copytree(original, directory)
        (directory / ".lock").unlink()
        if source.random() < 0.6:
            (directory / ".kafka_cleanshutdown").unlink()
        for _ in range(source.randint(1, 3)):
            harm(directory, source)
        went_well += use(directory)
        shutil.rmtree(directory)
    assert went_well > ROUNDS / 3
