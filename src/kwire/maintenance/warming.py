"""Warm-up of the kernels of compaction, for `python -m kwire.warm`.

It compacts a small log, which calls every kernel with its real types: plain batches that are kept in part, and a
compressed one that is rewritten.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from kwire.maintenance.compaction import OfflineSettings, compact
from kwire.records import Record, TimestampType, write_batch

NOW_MS = 1_700_000_000_000
SETTINGS = {"segment.bytes": "1048576", "delete.retention.ms": "0"}


def warm() -> None:
    """Compact a log of two segments in a temporary directory: seconds the first time, a fraction of one afterwards."""
    with tempfile.TemporaryDirectory(prefix="kwire-warm-") as path:
        log = Path(path, "warm-0")
        log.mkdir()
        offset = 0
        closed = b""
        for codec in ("none", "gzip", "none"):
            closed += sample(offset, (b"often", b"once %d" % offset), codec)
            offset += 2
        log.joinpath(f"{0:020}.log").write_bytes(closed)
        log.joinpath(f"{offset:020}.log").write_bytes(sample(offset, (b"newest",), "none"))
        (done,) = compact(path, lambda *_: True, OfflineSettings.parse(SETTINGS), NOW_MS)
    assert done.problem is None, f"the sample was not compacted: {done.problem}"
    assert done.stats.records_written == offset - 2, f"{done.stats.records_written} records of the sample remain"


def sample(offset: int, keys: Sequence[bytes], codec: str) -> bytes:
    """Return a batch with one record per key."""
    records = [
        Record(
            offset=offset + n,
            timestamp=NOW_MS,
            timestamp_type=TimestampType.CREATE_TIME,
            key=key,
            value=b"v",
            headers=[],
        )
        for n, key in enumerate(keys)
    ]
    return write_batch(records, compression=codec, base_offset=offset, partition_leader_epoch=0)
