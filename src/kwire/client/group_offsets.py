"""Committed offsets of a group without members: fetch and commit them. Standard library only.

Producer.send_offsets commits offsets in a transaction.
Source: OffsetFetch and OffsetCommit; KIP-447 for require_stable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.client.client import GROUP, Client, only, raise_for, raise_for_offsets
from kwire.identifiers import TopicPartition, by_topic
from kwire.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse

__all__ = ["CommittedOffset", "commit_offsets", "fetch_offsets"]

# The last versions with topic names instead of topic ids.
OFFSET_FETCH = 9
FETCH_VERSION, COMMIT_VERSION = 9, 8
MANY_GROUPS_VERSION = 8  # from here on, an OffsetFetch request has several groups


class CommittedOffset(NamedTuple):
    """A committed offset with its metadata."""

    offset: int
    metadata: str


def fetch_offsets(client: Client, group: str) -> dict[TopicPartition, CommittedOffset]:
    """Fetch all committed offsets of a group; {} for an unknown group.

    Waits for the end of transactions that commit offsets of the group. Raises BrokerError, ConnectionFailed.
    """

    def attempt() -> dict[TopicPartition, CommittedOffset]:
        connection = client.connection(client.coordinator(group, GROUP))
        version = min(FETCH_VERSION, connection.version_for(OFFSET_FETCH))
        if version >= MANY_GROUPS_VERSION:
            groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
            request = OffsetFetchRequest(groups=groups)
        else:
            request = OffsetFetchRequest(group_id=group, topics=None)
        request.require_stable = version >= 7
        response = connection.request(request, OffsetFetchResponse, version=version)
        what = f"offsets of group {group!r}"
        group_response = only(response.groups, what, "OffsetFetch") if version >= MANY_GROUPS_VERSION else response
        raise_for(group_response.error_code, what)
        offsets = {}
        for topic in group_response.topics:
            for each in topic.partitions:
                raise_for(each.error_code, f"offset {topic.name}-{each.partition_index} of group {group!r}")
                if each.committed_offset >= 0:
                    offsets[topic.name, each.partition_index] = CommittedOffset(
                        each.committed_offset, each.metadata or ""
                    )
        return offsets

    return client.retry(attempt)


def commit_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
    """Commit offsets of a group, each with the same metadata. Raises BrokerError, also if the group has members."""
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[topic, partition],
                        committed_metadata=metadata,
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )

    def attempt() -> None:
        connection = client.connection(client.coordinator(group, GROUP))
        topics = connection.request(request, OffsetCommitResponse, version=COMMIT_VERSION).topics
        codes = [((topic.name, each.partition_index), each.error_code) for topic in topics for each in topic.partitions]
        raise_for_offsets(codes, offsets, f"of group {group!r}", "OffsetCommit")

    client.retry(attempt)
