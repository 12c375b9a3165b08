"""Records for checks: batches as producers build them, and what a Fetch has returned."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from kwire import records
from kwire.conformance.broker.bench import Bench, Topic
from kwire.conformance.broker.requests import error_name
from kwire.errors import KwireError
from kwire.messages.base import ZERO_UUID
from kwire.records.format.checksum import crc32c

__all__ = ["TIME", "WAIT_MS", "batch", "batches", "fetch", "fetched", "list_offset", "produce", "produced", "with_crc"]

TIME = 1_760_000_000_000
WAIT_MS = 100
"""max_wait_ms of a Fetch. With min_bytes=0 it does not wait; without it, some brokers read nothing (FETCH-023)."""
CRC_POSITION, CRC_START = 17, 21


def batch(*values: bytes | None, key: bytes | None = b"key", compression: str = "none", **fields: Any) -> bytes:
    """Return a batch of records. fields: of records.BatchBuilder."""
    builder = records.BatchBuilder(compression=compression, **fields)
    for i, value in enumerate(values or (b"value",)):
        builder.append(key, value, timestamp=TIME + i if builder.magic else -1)
    return builder.build()


def with_crc(data: bytes) -> bytes:
    """Return a batch of magic 2 with the checksum that fits its bytes."""
    return data[:CRC_POSITION] + struct.pack(">I", crc32c(data[CRC_START:])) + data[CRC_START:]


def produce(
    bench: Bench, topic: Topic, data: bytes | None, *, version: int | None = None, partition: int = 0, **fields: Any
) -> Any:
    """Produce to one partition; returns its part of the response. fields: of the request."""
    partition_data = [{"index": partition, "records": data}]
    topic_data = [{"name": topic.name, "topic_id": topic.topic_id, "partition_data": partition_data}]
    options = {"acks": -1, "timeout_ms": 10_000, **fields}
    body = bench.ask("Produce", version, at=topic.leader, topic_data=topic_data, **options)
    return body.responses[0].partition_responses[0]


def produced(part: Any) -> dict[str, Any]:
    """Return what a check observes of a Produce response."""
    errors = [each.batch_index for each in part.record_errors]
    return {"error": error_name(part.error_code), "base offset": part.base_offset, "record errors": errors}


def fetch(bench: Bench, topic: Topic, offset: int = 0, *, version: int | None = None, **fields: Any) -> Any:
    """Fetch from partition 0; returns its part of the response. fields: of the request, or of its partition."""
    if version is None and topic.topic_id == ZERO_UUID:
        version = bench.best("Fetch", 12)  # the last one with names
    body = bench.ask("Fetch", version, at=topic.leader, **fetch_fields(topic, offset, **fields))
    responses = body.responses[0]
    return responses.partitions[0]


def fetch_fields(topic: Topic, offset: int = 0, **fields: Any) -> dict[str, Any]:
    """Return the fields of a Fetch of partition 0."""
    of_partition = (
        "partition",
        "current_leader_epoch",
        "last_fetched_epoch",
        "partition_max_bytes",
        "log_start_offset",
    )
    partition = {"partition": 0, "partition_max_bytes": 1 << 20, "fetch_offset": offset}
    partition.update({name: value for name, value in fields.items() if name in of_partition})
    rest = {name: value for name, value in fields.items() if name not in of_partition}
    topics = [{"topic": topic.name, "topic_id": topic.topic_id, "partitions": [partition]}]
    return {"max_wait_ms": WAIT_MS, "min_bytes": 0, "topics": topics, **rest}


def fetched(part: Any) -> dict[str, Any]:
    """Return what a check observes of a partition in a Fetch response: positions, and each whole batch."""
    return {
        "error": error_name(part.error_code),
        "high watermark": part.high_watermark,
        "last stable offset": part.last_stable_offset,
        "log start offset": part.log_start_offset,
        "batches": batches(part.records),
    }


def batches(data: bytes | memoryview | None) -> list[dict[str, Any]]:
    """Return the whole batches of a Fetch response: offsets, magic, codec, values."""
    found: list[dict[str, Any]] = []
    try:
        for each in records.read_batches(data or b""):
            each.check()
            entries = list(each.records())
            found.append(
                {
                    "magic": each.magic,
                    "codec": each.compression.name.lower(),
                    "control": each.is_control,
                    "offsets": [entry.offset for entry in entries],
                    "values": ["(control)" if each.is_control else _text(entry.value) for entry in entries],
                }
            )
    except KwireError as error:  # the last one may be cut
        if not found:
            found.append({"unreadable": str(error)[:40]})
    return found


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = bytes(value).decode("latin-1")
    return text if len(text) <= 20 else f"{len(text)} bytes"


def list_offset(bench: Bench, topic: Topic, timestamp: int, *, version: int | None = None, **fields: Any) -> Any:
    """Ask for an offset of partition 0; returns its part of the response."""
    partition = {"partition_index": 0, "timestamp": timestamp}
    epoch = fields.pop("current_leader_epoch", None)
    if epoch is not None:
        partition["current_leader_epoch"] = epoch
    topics: Sequence[Any] = [{"name": topic.name, "partitions": [partition]}]
    body = bench.ask("ListOffsets", version, at=topic.leader, replica_id=-1, topics=topics, **fields)
    return body.topics[0].partitions[0]
