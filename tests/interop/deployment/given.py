"""The input of the checks in this folder, passed by main.py."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.log import LogDirectory
from kwire.messages import registry
from kwire.records import Record, read_batches


@dataclass(frozen=True, kw_only=True)
class Given:
    """spark: the session. servers: of a broker. logs: a log directory written by Kafka. captures: a folder with packet
    captures. out: a folder to write to. checkout: where no module may come from. pages: examples by page.
    """

    spark: Any
    servers: str
    logs: Path
    captures: Path
    out: Path
    checkout: str
    pages: dict[str, list[str]]


Check = Callable[[Given], None]
Row = tuple[Any, ...]


def create_topic(servers: str, name: str, partitions: int) -> str:
    """Create a topic with this name prefix and return its name."""
    name = f"{name}-{uuid.uuid4().hex[:8]}"
    cls: Any = registry.get("CreateTopicsRequest")
    topic = cls.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    with Client(servers) as client:
        assert client.request(cls(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0
    return name


def of_record(partition: int, record: Record) -> Row:
    """Return a record in the form of rows()."""
    return (partition, record.offset, record.timestamp, record.key, record.value, record.headers or None)


def of_log(logs: Path, topic: str) -> list[Row]:
    """Return the records of a topic in a log directory, read without Spark."""
    found = LogDirectory(logs)
    return [of_record(p, record) for name, p in sorted(found) if name == topic for record in found[name, p].read()]


def of_broker(servers: str, topic: str, isolation: str = "read_uncommitted") -> list[Row]:
    """Return the records of a topic on a broker, read by kwire's client."""
    with Client(servers) as client:
        keys = [key for key in client.metadata([topic]).leaders if key[0] == topic]
        starts = client.list_offsets(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
        ends = client.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP), isolation=isolation)
        found = []
        for key in sorted(keys):
            start, end = starts[key].offset, ends[key].offset
            for fetched in client.read(*key, start, end, isolation=isolation):
                dropped: set[int] = set()
                waiting = sorted(fetched.aborted, key=lambda each: each[1])
                for batch in read_batches(fetched.records):
                    while waiting and waiting[0][1] <= batch.last_offset:
                        dropped.add(waiting.pop(0)[0])
                    if batch.is_control:
                        dropped.discard(batch.producer_id)
                    elif not (batch.is_transactional and batch.producer_id in dropped):
                        found += [of_record(key[1], record) for record in batch.records()]
    return found


def rows(frame: Any) -> list[Row]:
    """Return the rows of kafka-log or kafka-live, with headers, in the form of of_log()."""
    chosen = frame.selectExpr("partition", "offset", "unix_millis(timestamp)", "key", "value", "headers")
    return sorted(
        (
            partition,
            offset,
            timestamp,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            None if headers is None else [(k, None if v is None else bytes(v)) for k, v in headers],
        )
        for partition, offset, timestamp, key, value, headers in chosen.collect()
    )


def contents(found: list[Row]) -> list[Row]:
    """Return partition, key, value and headers, without offsets and timestamps."""
    return sorted(((p, key, value, headers) for p, _, _, key, value, headers in found), key=repr)
