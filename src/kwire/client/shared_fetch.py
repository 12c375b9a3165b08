"""Read ranges of several partitions with common Fetch requests: for many small ranges, which end after a response.

A Fetcher follows partitions that grow, and `Client.read` reads one range with retries. This is between them: it gives
up a partition at its first problem, and its caller reads the rest with `Client.read`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import (
    FETCH,
    FETCH_BY_ID_VERSION,
    FETCH_VERSION,
    FETCH_WAIT_MS,
    ISOLATION,
    TRUNCATION_VERSION,
    Client,
    Fetched,
    Position,
    by_topic,
    position_after,
    raise_for,
    response_of,
)
from kwire.errors import BrokerError, ConnectionFailed, LogTruncated
from kwire.identifiers import TopicPartition
from kwire.messages import FetchRequest, FetchResponse

__all__ = ["read_together"]


def read_together(
    client: Client,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    isolation: str,
    topic_ids: Mapping[str, uuid.UUID],
) -> Iterator[tuple[TopicPartition, Fetched]]:
    """Yield the batches of partitions with offsets in [start, end), several partitions of a leader in a request.

    Yields (topic, partition) and the response for it. The batches of a partition come in order; those of different
    partitions alternate. A response has at most max.partition.fetch.bytes. The next request is sent before the results
    of a response are yielded: the client is free for other requests once the iteration has ended.
    A partition with an error, one without records at its leader, and the partitions of a failed connection are left out
    from then on. topic_ids: as topic_id of Client.read.
    Raises CorruptBatch; LogTruncated if a new leader does not have the batches that were read.
    """
    try:
        leaders = client.metadata({topic for topic, _ in ranges}).leaders
    except (BrokerError, ConnectionFailed):
        return
    by_node: dict[int, dict[TopicPartition, Position]] = {}
    for key, (start, end) in ranges.items():
        if key in leaders and start < end:
            by_node.setdefault(leaders[key], {})[key] = Position(start)
    for node_id, positions in by_node.items():
        try:
            connection = client.connection(node_id)
            yield from _read_node(connection, client, positions, ranges, isolation, topic_ids)
        except LogTruncated:
            raise
        except (BrokerError, ConnectionFailed):
            continue


def _read_node(
    connection: BrokerConnection,
    client: Client,
    positions: dict[TopicPartition, Position],
    ranges: Mapping[TopicPartition, tuple[int, int]],
    isolation: str,
    topic_ids: Mapping[str, uuid.UUID],
) -> Iterator[tuple[TopicPartition, Fetched]]:
    """Read partitions of one broker until all ranges are read or a response has no records. positions: is changed."""
    version = connection.version_for(FETCH)
    if topic_ids and version >= FETCH_BY_ID_VERSION:  # one request names topics in one way
        positions = {key: each for key, each in positions.items() if key[0] in topic_ids}
    else:
        topic_ids, version = {}, min(version, FETCH_VERSION)
    names = {topic_id: topic for topic, topic_id in topic_ids.items()}
    is_open = False
    try:
        while positions:
            if not is_open:
                _send(connection, client, positions, isolation, topic_ids, version)
            is_open = False
            response = connection.receive(FetchResponse, timeout_ms=client.settings.request_timeout_ms + FETCH_WAIT_MS)
            raise_for(response.error_code, "Fetch")
            found = []
            for topic in response.responses:
                for each in topic.partitions:
                    key = (names.get(topic.topic_id, "") if topic_ids else topic.topic, each.partition_index)
                    position = positions.get(key)
                    if position is None:
                        continue
                    try:
                        fetched = response_of(each, key, position)
                    except LogTruncated:
                        raise
                    except BrokerError:
                        del positions[key]
                        continue
                    after = position_after(fetched.records, position, f"{key[0]}-{key[1]}")
                    if after is None:
                        continue
                    del positions[key]
                    if after.offset < ranges[key][1]:
                        positions[key] = after  # behind the others, which the size of a response would starve
                    found.append((key, fetched._replace(next_offset=after.offset)))
            if not found:
                return
            if positions:
                _send(connection, client, positions, isolation, topic_ids, version)
                is_open = True
            yield from found
    finally:
        if is_open:  # the caller stopped early: the response must not be taken for another one
            connection.close()


def _send(
    connection: BrokerConnection,
    client: Client,
    positions: Mapping[TopicPartition, Position],
    isolation: str,
    topic_ids: Mapping[str, uuid.UUID],
    version: int,
) -> None:
    """Send a request for all positions, in their order. topic_ids: of all topics, or empty."""
    most = client.settings.max_partition_fetch_bytes
    request = FetchRequest(
        max_wait_ms=FETCH_WAIT_MS,
        min_bytes=client.settings.fetch_min_bytes,
        max_bytes=most,
        isolation_level=ISOLATION[isolation],
    )
    for topic, partitions in by_topic(positions).items():
        named = (
            FetchRequest.FetchTopic(topic_id=topic_ids[topic]) if topic_ids else FetchRequest.FetchTopic(topic=topic)
        )
        for partition in partitions:
            at = positions[topic, partition]
            each = FetchRequest.FetchPartition(partition=partition, fetch_offset=at.offset, partition_max_bytes=most)
            if version >= TRUNCATION_VERSION:
                each.last_fetched_epoch = at.leader_epoch
            named.partitions.append(each)
        request.topics.append(named)
    connection.send(request, version=FETCH_BY_ID_VERSION if topic_ids else FETCH_VERSION)
