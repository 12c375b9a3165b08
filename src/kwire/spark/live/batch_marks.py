"""What Kafka remembers of a transactional stream, so that a restart writes every row once. Standard library only.

    group `<prefix>-<task>`   offset: the last micro-batch whose rows of this task are committed. Part of the same
                              transaction as those rows, so that both are there or neither
    group `<prefix>`          offset: the micro-batch whose transactions the driver ends, or has ended; metadata: how
                              many tasks it has, and how many of them have a transaction

The offsets stand at a partition that the task has written to: brokers take offsets of partitions that exist only. The
groups are nobody else's, so nothing collides. metadata names the query, by Spark's id of it that its checkpoint keeps:
marks of another query with the same prefix mean nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kwire.client import Client, Producer
from kwire.client.group_offsets import commit_offsets, fetch_offsets
from kwire.identifiers import TopicPartition

__all__ = ["Mark", "find_mark", "leave_mark", "note_batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A micro-batch of a query. tasks, transactions: how many it has; 0 where nobody knows yet."""

    query: str
    batch: int
    tasks: int = 0
    transactions: int = 0

    @property
    def metadata(self) -> str:
        """What is written beside the offset."""
        return json.dumps({"query": self.query, "tasks": self.tasks, "transactions": self.transactions})


def find_mark(client: Client, group: str, query: str) -> Mark | None:
    """The newest mark of a query in a group. Raises BrokerError, ConnectionFailed."""
    newest: Mark | None = None
    for committed in fetch_offsets(client, group).values():
        try:
            found: Any = json.loads(committed.metadata)
        except ValueError:
            continue
        if not isinstance(found, dict) or found.get("query") != query:
            continue
        if newest is None or committed.offset > newest.batch:
            tasks, transactions = (int(found.get(name, 0)) for name in ("tasks", "transactions"))
            newest = Mark(query=query, batch=committed.offset, tasks=tasks, transactions=transactions)
    return newest


def leave_mark(producer: Producer, group: str, mark: Mark, at: TopicPartition) -> None:
    """Make a mark part of the producer's open transaction. at: a partition that it has written to."""
    producer.send_offsets(group, {at: mark.batch}, mark.metadata)


def note_batch(client: Client, group: str, mark: Mark, at: TopicPartition) -> None:
    """Make a mark at once, in place of every one that the group has."""
    places = {*fetch_offsets(client, group), at}
    commit_offsets(client, group, dict.fromkeys(places, mark.batch), mark.metadata)
