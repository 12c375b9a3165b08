"""A log directory of many small partitions for benchmarks, as a broker leaves it after a clean shutdown.

kwire's own writer writes one partition. The others are hard links to its files, so 10,000 partitions take two seconds
and little disk. Only the topic ids and the checkpoints differ.
"""

from __future__ import annotations

import os
import shutil
import uuid
from itertools import pairwise
from pathlib import Path

from benchmarks.data import CACHE, FIRST_TIMESTAMP_MS, KEY, VALUE
from kwire.log import LogManager
from kwire.records import Record, TimestampType, write_batch
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    render_offset_checkpoint,
    render_partition_metadata,
)

RECORDS = 736
RECORDS_PER_BATCH = 128


def many_partitions(*, topics: int = 100, partitions: int = 100, segments: int = 1) -> Path:
    """Return a log directory with topics `topic-000`, `topic-001` ..., written on the first call.

    Each partition has RECORDS records of 116 B, divided over segments.
    """
    root = CACHE / f"many-{topics}x{partitions}x{segments}"
    if (root / CLEAN_SHUTDOWN).exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    source = root.with_name(f"{root.name}.source")
    shutil.rmtree(source, ignore_errors=True)
    _write_partition(source, segments)
    files = [file for file in (source / "source-0").iterdir() if file.name != PARTITION_METADATA]
    offsets = {}
    root.mkdir(parents=True)
    for number in range(topics):
        topic = f"topic-{number:03d}"
        topic_id = source / topic
        topic_id.write_bytes(render_partition_metadata(uuid.uuid5(uuid.NAMESPACE_URL, topic)))
        for partition in range(partitions):
            folder = root / f"{topic}-{partition}"
            folder.mkdir()
            for file in files:
                os.link(file, folder / file.name)
            os.link(topic_id, folder / PARTITION_METADATA)
            offsets[topic, partition] = RECORDS
    for name, checkpoint in (
        (HIGH_WATERMARKS, offsets),
        (RECOVERY_POINTS, offsets),
        (LOG_START_OFFSETS, dict.fromkeys(offsets, 0)),
    ):
        (root / name).write_bytes(render_offset_checkpoint(checkpoint))
    for name in (META_PROPERTIES, CLEAN_SHUTDOWN):
        shutil.copy(source / name, root / name)
    shutil.rmtree(source)
    return root


def _write_partition(folder: Path, segments: int) -> None:
    """Write the partition source-0 into a new log directory."""
    per_segment = -(-RECORDS // segments)
    bases = [*range(0, RECORDS, per_segment), RECORDS]
    with LogManager.open(folder, now_ms=FIRST_TIMESTAMP_MS) as manager:
        log = manager.create("source", 0, now_ms=FIRST_TIMESTAMP_MS, topic_id=uuid.uuid4())
        for base, next_base in pairwise(bases):
            if base:
                log.roll(FIRST_TIMESTAMP_MS)
            for first in range(base, next_base, RECORDS_PER_BATCH):
                offsets = range(first, min(first + RECORDS_PER_BATCH, next_base))
                batch = write_batch(
                    Record(
                        offset=offset,
                        timestamp=FIRST_TIMESTAMP_MS + offset,
                        timestamp_type=TimestampType.CREATE_TIME,
                        key=KEY,
                        value=VALUE,
                        headers=[],
                    )
                    for offset in offsets
                )
                log.append(batch, now_ms=FIRST_TIMESTAMP_MS)
