"""Damaged copies of real logs, and their intact batches."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from kwire.log import LogDirectory
from kwire.maintenance.repair_mode import Mode
from kwire.maintenance.repair_plan import Plan, make_plan
from kwire.maintenance.verify import verify_directory

# A log of each kind: transactions, small segments, compaction, idempotence, append time, the three formats.
LOGS = (
    *(("modern", name) for name in ("txn-0", "orders-0", "compacted-txn-0", "ids-1", "logappend-0")),
    *(("legacy", name) for name in ("v1-2", "v0-0", "mixed-format-0", "compacted-v1-1")),
)

Batches = dict[tuple[int, int], bytes]


def copy_of(source: Path, name: str, target: Path) -> Path:
    """Create a log directory at target with one partition of source and the directory's own files."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file():
            shutil.copy2(file, target)
    shutil.copytree(source / name, target / name)
    return target


def key_of(name: str) -> tuple[str, int]:
    """Parse orders-0 as ("orders", 0)."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def batches_of(directory: Path, name: str) -> Batches:
    """Return the bytes of every batch by its first and last offset, read from the start of each segment."""
    found = {}
    for segment in LogDirectory(directory)[key_of(name)].segments:
        data = Path(segment.url).read_bytes()
        for header in segment.headers():
            place = slice(header.position, header.position + header.size_bytes)
            found[header.stored_offset, header.last_offset] = data[place]
    return found


def flip(file: Path, at: int, bit: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


def damage(file: Path, chance: random.Random) -> None:
    """Damage a file at random: flipped bits, garbage, zeros, a lost end, lost or added bytes."""
    data = bytearray(file.read_bytes())
    if not data:
        return
    at, length = chance.randrange(len(data)), chance.randrange(1, 2500)
    match chance.choice(("bit", "bit", "garbage", "zeros", "cut", "lost", "added")):
        case "bit":
            data[at] ^= 1 << chance.randrange(8)
        case "garbage":
            data[at : at + length] = chance.randbytes(len(data[at : at + length]))
        case "zeros":
            data[at : at + length] = bytes(len(data[at : at + length]))
        case "cut":
            del data[at:]
        case "lost":
            del data[at : at + length]
        case "added":
            data[at:at] = chance.randbytes(length % 200 + 1)
    file.write_bytes(data)


def tree(directory: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a directory."""
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def plan_for(data: Path, mode: Mode = Mode.SALVAGE) -> Plan:
    """Verify a directory and return the plan of its repair."""
    directory = LogDirectory(data)
    return make_plan(directory, verify_directory(directory), mode)
