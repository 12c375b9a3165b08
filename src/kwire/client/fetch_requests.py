"""Fetch requests, in fetch sessions or without them, and the partitions of their responses.

A session (KIP-227) sends what has changed since the last request: a partition that has no new records costs no byte in
either direction. Brokers before 1.1 have none, and a broker may refuse one; every request then names all partitions.
A leader may name another replica to read from, by the client's rack (KIP-392).
Source: FetchRequest of 2.8.2, 3.9.1 and 4.4.0; org.apache.kafka.clients.FetchSessionHandler; SubscriptionState and
AbstractFetch of org.apache.kafka.clients.consumer.internals.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, CorruptBatch, LogTruncated, OptionError
from kwire.identifiers import TopicPartition, by_topic
from kwire.messages import FetchRequest, FetchResponse
from kwire.protocol.error_codes import ErrorCode
from kwire.records.format.batch_header import batch_spans, parse_header

if TYPE_CHECKING:
    from kwire.messages.fetch_request import FetchTopic, ForgottenTopic
    from kwire.messages.fetch_response import PartitionData

__all__ = ["FETCH", "Diverged", "FetchSession", "Fetched", "Position", "ReadReplica", "Wanted", "whole_batches"]

FETCH = 1
FETCH_WAIT_MS = 500
ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
SESSION_VERSION = 7
TRUNCATION_VERSION = 12
"""Brokers compare the leader epoch of the last fetched batch with their log (KIP-320, KIP-595)."""
BY_NAME_VERSION, BY_ID_VERSION, NEWEST_VERSION = 12, 13, 17
"""The last version with topic names, which all brokers still support; the first with topic ids; the last one known."""

NEW_SESSION, NO_SESSION, MAX_EPOCH = 0, -1, (1 << 31) - 1
PAUSE_S = 10.0


class Position(NamedTuple):
    """The next offset to fetch.

    leader_epoch: of the batch before it, -1 if unknown. topic_id: fail if the topic has another one.
    """

    offset: int
    leader_epoch: int = -1
    topic_id: uuid.UUID | None = None


class Fetched(NamedTuple):
    """A Fetch response for a partition.

    records: complete batches, which may start before and end after the requested offsets.
    aborted: (producer id, first offset) of the aborted transactions in records, for read_committed.
    high_watermark, last_stable_offset, log_start_offset: of the partition at that time; -1 if the broker does not
    report them. start_offset: the requested one. next_offset: after the last batch.
    """

    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    start_offset: int
    next_offset: int


class Diverged(NamedTuple):
    """The leader's log ends at end_offset for leader_epoch: what was fetched after it is not in its log."""

    key: TopicPartition
    leader_epoch: int
    end_offset: int
    position: Position

    def error(self) -> LogTruncated:
        """Return the error for a reader that has used what was fetched."""
        end = min(self.end_offset, self.position.offset)
        what = f"{self.key[0]}-{self.key[1]}: the log was truncated to offset {end} by an unclean leader election"
        what += f"; offsets up to {self.position.offset - 1} had been read"
        return LogTruncated(what, ErrorCode.OFFSET_OUT_OF_RANGE, end)


class Wanted(NamedTuple):
    """A partition in a Fetch request. leader_epoch: of its leader, which a deposed leader refuses; -1 if unknown."""

    position: Position
    leader_epoch: int = -1


@dataclass(slots=True)
class ReadReplica:
    """The replica that a partition is read from, as its leader named it for the client's rack.

    A leader that names one sends no records. After metadata.max.age.ms it is asked again. When the replica fails, the
    partition is read from the leader, with requests that name no rack: for PAUSE_S, and doubled each time that
    the replica fails again without a response. Java names the rack again immediately, and then alternates between the
    leader and a replica that is in sync but cannot be reached from here.

    node_id: None for the leader. until: the end of either time; None before the replica's first response, so that each
    one that is named is read from at least once.
    """

    node_id: int | None = None
    until: float | None = None
    failures: int = 0

    @property
    def is_paused(self) -> bool:
        """Whether the leader is to be read from, because a replica has failed."""
        return self.node_id is None and self.until is not None and time.monotonic() < self.until

    def obey(self, data: PartitionData, node_id: int, key: TopicPartition) -> bool:
        """Note the replica that a response of a broker names; return whether the records are to come from there.

        Raises BrokerError if the leader names a replica to a request without a rack, sent because a replica has failed:
        its replica selector does not go by racks.
        """
        named = data.preferred_read_replica
        if named < 0 or named == node_id:
            return False
        if not self.is_paused:
            if named != self.node_id:
                self.node_id, self.until = named, None
        elif not data.records:
            what = f"{key[0]}-{key[1]}: broker {node_id} refers to broker {named}, and a replica has just failed"
            raise BrokerError(what, ErrorCode.REPLICA_NOT_AVAILABLE)
        return not data.records

    def answered(self, settings: ClientSettings) -> None:
        """Note a response of the replica without an error; return to the leader if its time is over."""
        self.failures = 0
        if self.until is None:
            self.until = time.monotonic() + settings.metadata_max_age_ms / 1000
        self.expire()

    def expire(self) -> None:
        """Return to the leader if the replica's time is over."""
        if self.until is not None and time.monotonic() >= self.until:
            self.node_id = None

    def fail(self, settings: ClientSettings) -> None:
        """Read from the leader for a while."""
        pause_s = min(PAUSE_S * 2**self.failures, max(PAUSE_S, settings.metadata_max_age_ms / 1000))
        self.node_id, self.until = None, time.monotonic() + pause_s
        self.failures = min(self.failures + 1, 20)


@dataclass(slots=True)
class FetchSession:
    """Makes the requests for one broker, one at a time, and matches their responses.

    wanted: what the broker has been asked for. epoch: of the next request.
    """

    wanted: dict[TopicPartition, Wanted] = field(default_factory=dict)
    session_id: int = 0
    epoch: int = NEW_SESSION
    by_id: bool = False

    def next_request(
        self,
        wanted: Mapping[TopicPartition, Wanted],
        supported: int,
        settings: ClientSettings,
        isolation: str,
        max_bytes: int | None = None,
        *,
        names_rack: bool = True,
    ) -> tuple[FetchRequest, int]:
        """Return a request for all of `wanted`, and its version.

        supported: the highest version that the broker supports. max_bytes: of the response, at most fetch.max.bytes.
        names_rack: whether the leader may name a replica in client.rack.
        The broker moves partitions with records to the end of a session; without one, their order here counts.
        """
        by_id = supported >= BY_ID_VERSION and all(each.position.topic_id for each in wanted.values())
        version = min(supported, NEWEST_VERSION if by_id else BY_NAME_VERSION)
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=min(max_bytes or settings.fetch_max_bytes, settings.fetch_max_bytes),
            isolation_level=level_of(isolation),
            rack_id=settings.client_rack if names_rack else "",
        )
        changed: Mapping[TopicPartition, Wanted] = wanted
        if version >= SESSION_VERSION and self.epoch != NO_SESSION:
            if by_id != self.by_id or self._has_new_ids(wanted):
                self.epoch = NEW_SESSION  # in place of the one with this id
            request.session_id, request.session_epoch = self.session_id, self.epoch
            if self.epoch != NEW_SESSION:
                changed = {key: each for key, each in wanted.items() if self.wanted.get(key) != each}
                request.forgotten_topics_data = self._forgotten(wanted, by_id=by_id)
        request.topics = fetch_topics(changed, version, settings.max_partition_fetch_bytes)
        self.wanted, self.by_id = dict(wanted), by_id
        return request, version

    def _has_new_ids(self, wanted: Mapping[TopicPartition, Wanted]) -> bool:
        return any(
            key in self.wanted and self.wanted[key].position.topic_id != each.position.topic_id
            for key, each in wanted.items()
        )

    def _forgotten(self, wanted: Mapping[TopicPartition, Wanted], *, by_id: bool) -> list[ForgottenTopic]:
        left = {key: each for key, each in self.wanted.items() if key not in wanted}
        forgotten: list[ForgottenTopic] = []
        for topic, numbers in by_topic(left).items():
            topic_id = left[topic, numbers[0]].position.topic_id
            if by_id and topic_id is not None:
                forgotten.append(FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=numbers))
            else:
                forgotten.append(FetchRequest.ForgottenTopic(topic=topic, partitions=numbers))
        return forgotten

    def accept(self, response: FetchResponse) -> Iterator[tuple[TopicPartition, PartitionData]]:
        """Yield the partitions of the response to the last request; none of a response that is an error."""
        if response.error_code or not response.session_id:
            self.session_id = 0
            self.epoch = self.epoch if self.epoch == NO_SESSION else NEW_SESSION
        else:
            self.session_id = response.session_id
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        names = {each.position.topic_id: topic for (topic, _), each in self.wanted.items()} if self.by_id else {}
        for topic in response.responses:
            name = names.get(topic.topic_id, "") if self.by_id else topic.topic
            for data in topic.partitions:
                if (name, data.partition_index) in self.wanted:
                    yield (name, data.partition_index), data


def level_of(isolation: str) -> int:
    """Return the number of an isolation level. Raises OptionError for an unknown one."""
    if isolation not in ISOLATION:
        raise OptionError(f"isolation {isolation!r}: expected one of {', '.join(ISOLATION)}")
    return ISOLATION[isolation]


def fetch_topics(wanted: Mapping[TopicPartition, Wanted], version: int, max_bytes: int) -> list[FetchTopic]:
    """Return the topics of a request: by id from BY_ID_VERSION on. max_bytes: of each partition."""
    topics: list[FetchTopic] = []
    for topic, numbers in by_topic(wanted).items():
        partitions = []
        for number in numbers:
            position, leader_epoch = wanted[topic, number]
            each = FetchRequest.FetchPartition(
                partition=number,
                current_leader_epoch=leader_epoch,
                fetch_offset=position.offset,
                partition_max_bytes=max_bytes,
            )
            if version >= TRUNCATION_VERSION:
                each.last_fetched_epoch = position.leader_epoch
            partitions.append(each)
        topic_id = wanted[topic, numbers[0]].position.topic_id
        if version >= BY_ID_VERSION and topic_id is not None:
            topics.append(FetchRequest.FetchTopic(topic_id=topic_id, partitions=partitions))
        else:
            topics.append(FetchRequest.FetchTopic(topic=topic, partitions=partitions))
    return topics


def fetched_from(data: PartitionData, key: TopicPartition, position: Position) -> tuple[Fetched, Position] | Diverged:
    """Return what a response without an error has for a partition, and the position after it. Raises CorruptBatch."""
    end = data.diverging_epoch
    if end.epoch >= 0 or end.end_offset >= 0:
        return Diverged(key, end.epoch, end.end_offset, position)
    records, after = whole_batches(memoryview(data.records or b""), position, f"{key[0]}-{key[1]}")
    fetched = Fetched(
        records,
        tuple((aborted.producer_id, aborted.first_offset) for aborted in data.aborted_transactions or ()),
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        position.offset,
        after.offset,
    )
    return fetched, after


def whole_batches(records: memoryview, position: Position, where: str) -> tuple[memoryview, Position]:
    """Return the complete batches and the position after them. Parses the last header only.

    Raises CorruptBatch for an impossible size, for a batch that does not fit the response, and for batches that end
    before the position: reading would never advance. where: the partition, for errors.
    """
    last = end = 0
    for last, end in batch_spans(records):  # noqa: B007
        pass
    if not end:
        if len(records):
            parse_header(records, 0, 0, where)  # raises CorruptBatch for an impossible size
            what = f"the broker returned {len(records)} bytes of a larger batch at offset {position.offset}"
            what += "; brokers before 0.10.1 require a larger max.partition.fetch.bytes"
            raise CorruptBatch(what, 0, (), where)
        return records, position
    header = parse_header(records, last, last, where)
    assert header is not None  # of a complete batch
    if header.last_offset < position.offset:
        what = f"a Fetch response for offset {position.offset} ends at offset {header.last_offset}"
        raise CorruptBatch(what, last, (), where, (header.base_offset, header.last_offset))
    epoch = header.leader_epoch if header.magic >= 2 else -1
    return records[:end], Position(header.last_offset + 1, epoch, position.topic_id)
