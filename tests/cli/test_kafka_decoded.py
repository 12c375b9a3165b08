"""The decoders of `kwire log dump --like-kafka` against what Kafka's own tool printed of the same files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

VERSIONS = {"modern": "3.9", "modern44": "4.3", "legacy": "2.8"}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
}


@pytest.mark.requirement("S482-02", "R-40", "R-41", "R-43")
@pytest.mark.parametrize(
    ("dump", "topic", "count"),
    [
        ("modern", "__consumer_offsets", 3),
        ("modern", "__transaction_state", 3),
        ("modern", "__cluster_metadata", 1),
        ("modern44", "__consumer_offsets", 3),
        ("modern44", "__transaction_state", 3),
        ("modern44", "__cluster_metadata", 1),
        ("modern44", "__share_group_state", 3),
        ("legacy", "__consumer_offsets", 3),
    ],
)
def test_the_decoded_dump_equals_kafkas_own(
    dump: str, topic: str, count: int, kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = kafka_logs[dump] / "data"
    monkeypatch.chdir(data)
    expected = sorted((kafka_logs[dump] / "expected" / "dump" / "decoded").glob(f"{topic}-*.txt.gz"))
    assert len(expected) == count
    for file in expected:
        name = file.name.removesuffix(".txt.gz")
        files = [
            f"{name}/{each.name}" for kind in ("*.log", "*.checkpoint") for each in sorted((data / name).glob(kind))
        ]
        result = kwire("log", "dump", "--like-kafka", "--kafka-version", VERSIONS[dump], DECODERS[topic], *files)
        assert result.out == gzip.decompress(file.read_bytes()).decode(), file.name
        assert result.code == 0
