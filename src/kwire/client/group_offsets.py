"""Committed offsets of a group that has no members: read them, write them. Standard library only.

Transactional ones are written by Producer.send_offsets.
Source: OffsetFetch and OffsetCommit; KIP-447 for require_stable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kwire.client.client import GROUP, Client, raise_for
from kwire.client.cluster import TopicPartition
from kwire.messages import registry

__all__ = ["CommittedOffset", "commit_offsets", "fetch_offsets"]

# The last versions that name topics and not their ids, and ask for no group that is being rebalanced.
FETCH_VERSION, COMMIT_VERSION = 9, 8
MANY_GROUPS_VERSION = 8  # from here on, OffsetFetch asks for several groups at once


class CommittedOffset(NamedTuple):
    """An offset, and what whoever committed it has written beside it."""

    offset: int
    metadata: str


def fetch_offsets(client: Client, group: str) -> dict[TopicPartition, CommittedOffset]:
    """Every offset that a group has committed; {} for a group that nobody knows.

    Waits for transactions that commit offsets of the group to end. Raises BrokerError, ConnectionFailed.
    """
    cls: Any = registry.get("OffsetFetchRequest")

    def attempt() -> dict[TopicPartition, CommittedOffset]:
        connection = client.connection(client.coordinator(group, GROUP))
        version = min(FETCH_VERSION, connection.version_for(cls.API_KEY))
        if version >= MANY_GROUPS_VERSION:
            request = cls(groups=[cls.OffsetFetchRequestGroup(group_id=group, topics=None)])
        else:
            request = cls(group_id=group, topics=None)
        request.require_stable = version >= 7
        answer = connection.request(request, version=version)
        found = answer.groups[0] if version >= MANY_GROUPS_VERSION else answer
        raise_for(found.error_code, f"offsets of group {group!r}")
        offsets = {}
        for topic in found.topics:
            for each in topic.partitions:
                raise_for(each.error_code, f"offset {topic.name}-{each.partition_index} of group {group!r}")
                if each.committed_offset >= 0:
                    offsets[topic.name, each.partition_index] = CommittedOffset(
                        each.committed_offset, each.metadata or ""
                    )
        return offsets

    return client.retry(attempt)


def commit_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
    """Commit offsets of a group, each with metadata. Raises BrokerError, also where the group has members."""
    cls: Any = registry.get("OffsetCommitRequest")
    topics: dict[str, list[Any]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            cls.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    request = cls(
        group_id=group,
        topics=[cls.OffsetCommitRequestTopic(name=name, partitions=each) for name, each in topics.items()],
    )

    def attempt() -> None:
        connection = client.connection(client.coordinator(group, GROUP))
        for topic in connection.request(request, version=COMMIT_VERSION).topics:
            for each in topic.partitions:
                raise_for(each.error_code, f"offset {topic.name}-{each.partition_index} of group {group!r}")

    client.retry(attempt)
