"""Produced messages become the same batch of magic 2 by columns and by objects, with the same errors."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests import golden
from tests.records.test_builder import plain

from kwire import native
from kwire.records import RejectedRecords, TimestampType, validate_and_assign_offsets, write_batch
from kwire.records.append import validation

NOW = 1_700_000_000_000

pytestmark = pytest.mark.skipif(native.LEVEL is None, reason="columns need compiled kernels")


def outcome(data: bytes, few_bytes: int, patch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, ...]:
    """Return what validation results in."""
    patch.setattr(validation, "FEW_BYTES", few_bytes)
    try:
        found = validate_and_assign_offsets(data, 7, **options)
    except RejectedRecords as error:
        return error.code, error.what, error.record_errors
    return found.data, *found[1:]


@pytest.mark.parametrize("seed", range(40))
def test_messages_are_rebuilt_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(seed)
    magic = source.choice((0, 1))
    records = [
        plain(
            offset,
            source.choice((None, b"", b"k" * source.randrange(90))),
            source.choice((None, b"", b"v" * source.randrange(300))),
            source.choice((-1, NOW, NOW - source.randrange(5000), NOW + source.randrange(5000))),
        )
        for offset in range(source.choice((1, 2, 40)))
    ]
    if source.random() < 0.7:
        records = [each._replace(key=each.key or b"k") if hasattr(each, "_replace") else each for each in records]
    data = bytearray(write_batch(records, magic, source.choice(("none", "none", "none", "gzip"))))
    options: dict[str, Any] = {
        "now_ms": NOW,
        "leader_epoch": source.choice((-1, 3)),
        "compression_type": source.choice(("producer", "producer", "lz4", "zstd", "uncompressed", "gzip")),
        "message_timestamp_type": source.choice(tuple(TimestampType)[1:]),
        "compacted": source.random() < 0.3,
        "max_message_bytes": source.choice((None, 2000, 1 << 20)),
        "message_timestamp_before_max_ms": source.choice((2000, 2**63 - 1)),
        "zstd_allowed": source.random() < 0.8,
    }
    if options["compression_type"] == "uncompressed":
        options["compression_type"] = "none"
    for change in range(20):
        given = bytes(data)
        if change:
            changed = bytearray(data)
            changed[source.randrange(len(data))] ^= 1 << source.randrange(8)
            given = bytes(changed[: source.choice((len(data), source.randrange(len(data)) + 1))])
        if not given:
            continue
        columns = outcome(given, 0, monkeypatch, **options)
        assert columns == outcome(given, 1 << 60, monkeypatch, **options)


def test_messages_of_kafka_are_rebuilt_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt = 0
    for line in golden.cached("conversions.jsonl.gz"):
        data = golden.unpack(line["from_b64"])
        if line["op"] == "down-convert" or not data or data[16] > 1:
            continue
        for kind in ("CreateTime", "LogAppendTime"):
            options = {"now_ms": NOW, "message_timestamp_type": kind}
            columns = outcome(data, 0, monkeypatch, **options)
            assert columns == outcome(data, 1 << 60, monkeypatch, **options)
            rebuilt += len(columns) > 3
    assert rebuilt > 10
