"""Real Kafka starts on converted and restored directories, and its consumer reads the expected records.

Kafka wrote the directory (tests/data/logs/modern) with its metadata log, so the broker that starts on our result knows
the topics.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import golden
from tests.interop.booted_logs import as_printed, booted, by_place
from tests.log.expected import consumed
from tools import kafka

from kwire.log import LogDirectory
from kwire.maintenance.convert import TargetFormat, convert_directory, convert_in_place
from kwire.maintenance.export import ExportOptions, export_logs
from kwire.maintenance.from_parquet import FromParquetOptions, restore_from_parquet
from kwire.records import Compression

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

NOW = time.time_ns() // 1_000_000
TOPICS = ("orders", "orders.recompressed", "txn", "ids", "compacted", "compacted-txn", "logappend", "trimmed")
ISOLATIONS = ("read_uncommitted", "read_committed")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory that Kafka wrote."""
    kafka.jars()
    kafka.need("javac", "openjdk-17-jdk-headless")
    return golden.extract("modern", tmp_path_factory.mktemp("logs"))


def partitions(source: Path) -> list[tuple[str, int]]:
    return [key for key in LogDirectory(source / "data") if key[0] in TOPICS]


def check_as_before(read: Callable[..., list[str]], source: Path) -> None:
    """Check that the consumer reads the same records as from Kafka's own directory."""
    for isolation in ISOLATIONS:
        found = by_place(read(isolation, *TOPICS))
        for topic, partition in partitions(source):
            expected, _ = consumed(source / "expected", topic, partition, isolation)
            assert found.get((topic, partition), []) == as_printed(expected), (topic, partition, isolation)


@pytest.mark.parametrize("codec", [Compression.ZSTD, Compression.NONE])
def test_kafka_starts_on_a_directory_with_another_codec(codec: Compression, source: Path, tmp_path: Path) -> None:
    directory = LogDirectory(source / "data")
    convert_directory(
        directory, str(tmp_path / "data"), TargetFormat(codec=codec), list(directory), whole=True, now_ms=NOW
    )
    with booted(tmp_path) as read:
        check_as_before(read, source)
    assert LogDirectory(tmp_path / "data").is_clean_shutdown


# Not txn and compacted-txn: their last batches are markers, which go, and LogPeer reads until it is at the log's end.
IN_PLACE = {
    "orders": (1, Compression.LZ4),
    "orders.recompressed": (0, Compression.LZ4),
    "ids": (0, Compression.SNAPPY),
    "logappend": (1, Compression.NONE),
    "compacted": (0, Compression.NONE),
    "trimmed": (0, Compression.GZIP),
}


def test_kafka_starts_on_old_formats_converted_in_place(source: Path, tmp_path: Path) -> None:
    shutil.copytree(source / "data", tmp_path / "data")
    for topic, (magic, codec) in IN_PLACE.items():
        keys = [key for key in partitions(source) if key[0] == topic]
        target = TargetFormat(magic=magic, codec=codec)
        convert_in_place(tmp_path / "data", target, keys, accept_loss=True, now_ms=NOW)
    ends = {key: log.log_end_offset for key, log in LogDirectory(source / "data").items()}
    with booted(tmp_path) as read:
        found = by_place(read("read_uncommitted", *IN_PLACE))
    for topic, partition in partitions(source):
        if topic not in IN_PLACE:
            continue
        everything, _ = consumed(source / "expected", topic, partition, "read_uncommitted")
        committed, _ = consumed(source / "expected", topic, partition, "read_committed")
        stable = LogDirectory(source / "data")[topic, partition].last_stable_offset
        kept = {row.offset for row in committed}
        rows = [row for row in everything if row.offset in kept or row.offset >= stable]
        if IN_PLACE[topic][0] == 0:
            rows = [row._replace(timestamp=-1) for row in rows]
        assert found[topic, partition] == as_printed(rows), (topic, partition)
        left = LogDirectory(tmp_path / "data")[topic, partition]
        assert left.log_end_offset == ends[topic, partition]


def test_kafka_starts_on_a_directory_restored_from_parquet(source: Path, tmp_path: Path) -> None:
    directory = LogDirectory(source / "data")
    logs = [directory[key] for key in partitions(source)]
    export_logs(logs, str(tmp_path / "parquet"), ExportOptions(headers=True))
    ids = {log.topic: log.topic_id for log in logs if log.topic_id is not None}
    restore_from_parquet(
        [str(tmp_path / "parquet")],
        str(tmp_path / "data"),
        FromParquetOptions(codec=Compression.LZ4, segment_bytes=300_000, topic_ids=ids),
        now_ms=NOW,
    )
    for name in ("meta.properties", "bootstrap.checkpoint"):  # the cluster that knows the topics
        shutil.copy2(source / "data" / name, tmp_path / "data" / name)
    shutil.copytree(source / "data" / "__cluster_metadata-0", tmp_path / "data" / "__cluster_metadata-0")
    with booted(tmp_path) as read:
        found = by_place(read("read_uncommitted", *TOPICS))
        assert by_place(read("read_committed", *TOPICS)) == found  # nothing is known of transactions any more
    for topic, partition in partitions(source):
        expected, _ = consumed(source / "expected", topic, partition, "read_uncommitted")
        assert found[topic, partition] == as_printed(expected), (topic, partition)
