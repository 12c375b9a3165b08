"""A task for the program under test, as JSON; docs/conformance-client.md describes it to those who write programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SETTINGS", "Task", "consume", "produce", "transact", "transaction"]

SETTINGS: dict[str, str] = {
    "request.timeout.ms": "3000",
    "delivery.timeout.ms": "10000",
    "max.block.ms": "10000",
    "default.api.timeout.ms": "6000",
    "retry.backoff.ms": "50",
    "retry.backoff.max.ms": "200",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "100",
    "metadata.max.age.ms": "60000",
    "linger.ms": "0",
    "acks": "all",
    "fetch.max.wait.ms": "100",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": "false",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "200",
    "rebalance.timeout.ms": "6000",
}
"""Kafka's configs for every task: short timeouts and backoffs, so that a run ends soon."""
CLASSIC = frozenset({"session.timeout.ms", "heartbeat.interval.ms", "rebalance.timeout.ms"})
"""Those that Kafka's client refuses with the consumer protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task. do: produce, consume or transact. settings: Kafka's configs. body: the rest of its fields.

    deadline_s: of this task, where a client that cannot do it may wait forever.
    """

    do: str
    topic: str
    settings: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    deadline_s: float | None = None

    def to_json(self, task_id: str, bootstrap: str) -> str:
        """Return the task in one line."""
        settings = {**SETTINGS, **self.settings}
        if settings.get("group.protocol") == "consumer":  # with which the coordinator sets these
            settings = {name: value for name, value in settings.items() if name not in CLASSIC}
        head = {"id": task_id, "do": self.do, "bootstrap": bootstrap, "topic": self.topic}
        return json.dumps({**head, **self.body, "settings": settings}, separators=(",", ":"))


Record = dict[str, Any]


def produce(topic: str, records: Sequence[Record], **settings: str) -> Task:
    """Write records one after the other, without waiting in between. settings: underscores stand for dots."""
    return Task(do="produce", topic=topic, settings=_named(settings), body={"records": list(records)})


def consume(
    topic: str,
    count: int,
    *,
    partitions: Sequence[int] = (0,),
    group: str | None = None,
    offset: int | None = None,
    commit: bool = False,
    **settings: str,
) -> Task:
    """Read `count` records, and those that arrive soon after them.

    partitions: to assign; with a group, the client subscribes instead. offset: where to begin; by default the earliest.
    commit: commit the position at the end.
    """
    body = {"partitions": list(partitions), "count": count, "group": group, "offset": offset, "commit": commit}
    return Task(do="consume", topic=topic, settings=_named(settings), body=body)


def transaction(records: Sequence[Record], end: str = "commit", offsets: dict[str, Any] | None = None) -> Record:
    """Return a transaction. end: commit or abort. offsets: {"group": ..., "partition": ..., "offset": ...} to send."""
    return {"records": list(records), "end": end, "offsets": offsets}


def transact(topic: str, transactional_id: str, transactions: Sequence[Record], **settings: str) -> Task:
    """Run transactions one after the other."""
    body = {"transactional_id": transactional_id, "transactions": list(transactions)}
    return Task(do="transact", topic=topic, settings=_named(settings), body=body)


def _named(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}
