"""State of partitions by their brokers, besides records: leader epochs, and sizes on the leader's disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from kwire.client.client import Client, only, raise_for
from kwire.errors import BrokerError, UnsupportedVersion
from kwire.identifiers import TopicPartition, by_topic
from kwire.messages import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kwire.protocol.error_codes import ErrorCode
from kwire.storage.checkpoints import LeaderEpoch

__all__ = ["common_end", "fetch_leader_epochs", "fetch_sizes"]

NOT_ALLOWED = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def fetch_leader_epochs(client: Client, key: TopicPartition, log_start_offset: int) -> list[LeaderEpoch]:
    """Return the leader epochs of a partition with records from log_start_offset on, oldest first.

    Two OffsetForLeaderEpoch requests per epoch, from the current one down. Raises BrokerError, ConnectionFailed.
    """
    topic = client.metadata([key[0]]).topics.get(key[0])
    newest = -1 if topic is None or key[1] not in topic.partitions else topic.partitions[key[1]].leader_epoch
    epochs: list[LeaderEpoch] = []
    requested = _newest_known(client, key, newest)
    while requested >= 0:
        epoch, _ = _end_of(client, key, requested)
        # an epoch starts where those below it end; the lowest one starts at the log start
        _, start = (-1, log_start_offset) if epoch == 0 else _end_of(client, key, epoch - 1)
        start = max(start, log_start_offset)
        if epochs and epochs[-1].start_offset <= start:
            break  # for an epoch below the oldest one, brokers respond with the start of that one
        epochs.append(LeaderEpoch(leader_epoch=epoch, start_offset=start))
        if start <= log_start_offset:
            break
        requested = epoch - 1
    return epochs[::-1]


def _newest_known(client: Client, key: TopicPartition, newest: int) -> int:
    """Return the largest epoch up to `newest` that the leader's log knows; -1 if there is none."""
    low, high = -1, newest
    while low < high:
        middle = (low + high + 1) // 2 if high < newest else newest  # nearly always the leader's own epoch
        if _end_of(client, key, middle)[0] >= 0:
            low = middle
        else:
            high = middle - 1
    return low


def _end_of(client: Client, key: TopicPartition, leader_epoch: int) -> tuple[int, int]:
    """Return (largest epoch up to this one, its end offset); (-1, -1) if the leader knows none."""
    partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=key[1], leader_epoch=leader_epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=key[0], partitions=[partition])],
    )

    def attempt() -> tuple[int, int]:
        connection = client.connection(client.leader(key))
        topics = connection.request(request, OffsetForLeaderEpochResponse).topics
        what = f"leader epochs of {key[0]}-{key[1]}"
        each = only([each for topic in topics for each in topic.partitions], what, "OffsetForLeaderEpoch")
        raise_for(each.error_code, what)
        return each.leader_epoch, each.end_offset

    return client.retry(attempt)


def common_end(ours: Sequence[LeaderEpoch], our_end: int, theirs: Sequence[LeaderEpoch], their_end: int) -> int | None:
    """Return the lower end of the newest leader epoch that both logs have; None without one."""

    def ends(epochs: Sequence[LeaderEpoch], end: int) -> dict[int, int]:
        starts = [*(each.start_offset for each in epochs), end]
        return {each.leader_epoch: start for each, start in zip(epochs, starts[1:], strict=True)}

    our_ends, their_ends = ends(ours, our_end), ends(theirs, their_end)
    newest = max(our_ends.keys() & their_ends.keys(), default=None)
    return None if newest is None else min(our_ends[newest], their_ends[newest])


def fetch_sizes(client: Client, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the sizes in bytes of partitions on their leaders, of segments without indexes.

    Partitions whose size the account may not see, without DESCRIBE on the cluster, are missing.
    Raises ConnectionFailed.
    """
    sizes: dict[TopicPartition, int] = {}
    leaders: dict[int, list[TopicPartition]] = {}
    for key in keys:
        with suppress(BrokerError):
            leaders.setdefault(client.leader(key), []).append(key)
    for node_id, of_leader in leaders.items():
        request = DescribeLogDirsRequest(
            topics=[
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=partitions)
                for topic, partitions in by_topic(of_leader).items()
            ]
        )
        try:
            response = client.request(request, DescribeLogDirsResponse, node_id=node_id)
        except UnsupportedVersion:  # before Kafka 1.0
            continue
        if response.error_code in NOT_ALLOWED:
            return {}
        for result in response.results:
            for topic in result.topics:
                for each in topic.partitions:
                    if not each.is_future_key:
                        sizes[topic.name, each.partition_index] = each.partition_size
    return sizes
