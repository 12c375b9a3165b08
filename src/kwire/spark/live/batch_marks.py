"""Marks of a transactional stream in Kafka, with which a restarted query writes every row once. Standard library only.

    group `<prefix>-<task>`   offset: the last micro-batch of this task that is committed, in the same transaction as
                              its rows
    group `<prefix>-driver`   offset: the micro-batch that the driver is committing, or has committed; metadata: its
                              numbers of tasks and of transactions. Up to 0.1.0 its name was `<prefix>`, which was also
                              that of task 1 of another query if it ended with -1

The offsets are committed for a partition that the task has written, since brokers accept offsets of existing partitions
only. Metadata has the query's id from Spark's checkpoint; marks of another query with the same prefix are ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kwire.client import Client, Producer
from kwire.client.group_offsets import commit_offsets, fetch_offsets
from kwire.identifiers import TopicPartition

__all__ = ["Mark", "add_mark", "driver_group", "find_mark", "replace_mark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A micro-batch of a query. tasks, transactions: their numbers; 0 in tasks, which do not know them."""

    query: str
    batch: int
    tasks: int = 0
    transactions: int = 0

    @property
    def metadata(self) -> str:
        """The metadata of the committed offset."""
        return json.dumps({"query": self.query, "tasks": self.tasks, "transactions": self.transactions})


def driver_group(prefix: str) -> str:
    """Return the group of the driver's marks, which is no task's of any prefix."""
    return f"{prefix}-driver"


def find_mark(client: Client, group: str, query: str) -> Mark | None:
    """Find the newest mark of a query in a group. Raises BrokerError, ConnectionFailed."""
    newest: Mark | None = None
    for committed in fetch_offsets(client, group).values():
        try:
            stored: Any = json.loads(committed.metadata)
        except ValueError:
            continue
        if not isinstance(stored, dict) or stored.get("query") != query:
            continue
        if newest is None or committed.offset > newest.batch:
            tasks, transactions = (int(stored.get(name, 0)) for name in ("tasks", "transactions"))
            newest = Mark(query=query, batch=committed.offset, tasks=tasks, transactions=transactions)
    return newest


def add_mark(producer: Producer, group: str, mark: Mark, at: TopicPartition) -> None:
    """Add a mark to the producer's open transaction. at: a partition that it has written."""
    producer.send_offsets(group, {at: mark.batch}, mark.metadata)


def replace_mark(client: Client, group: str, mark: Mark, at: TopicPartition) -> None:
    """Commit a mark, replacing all marks of the group."""
    partitions = {*fetch_offsets(client, group), at}
    commit_offsets(client, group, dict.fromkeys(partitions, mark.batch), mark.metadata)
