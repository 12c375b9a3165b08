"""Dead letter queues of share groups (KIP-1191): a copy of each record that members reject, or get too often.

    group config errors.deadletterqueue.topic.name           the topic, "" for none
    group config errors.deadletterqueue.copy.record.enable   whether key and value are copied, or only headers written
    topic config errors.deadletterqueue.group.enable         whether the topic takes dead letters

Headers say where a record came from; the record's own headers and its timestamp are not copied. The copies are appended
after the response to the member. A topic without a leader is tried again for half a minute; after other errors, a
warning is logged. Either way the records are not delivered again. What is not finished when the broker stops is copied
again after the next start.

Source: org.apache.kafka.server.share.dlq.ShareGroupDLQStateManager, ShareGroupDLQRecordFetcher 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kwire.broker.clock import Clock, TimerHandle, Timers
from kwire.errors import BrokerError, CorruptBatch, KwireError
from kwire.protocol.error_codes import ErrorCode
from kwire.records import BatchBuilder, read_batches
from kwire.records.attributes import Compression
from kwire.records.format.default_writer import append_record

if TYPE_CHECKING:
    from kwire.broker.groups.store import GroupStore
    from kwire.broker.topics import Partition, Topic
    from kwire.log.writing.partition_writer import PartitionWriter
    from kwire.records.format.batch import Batch
    from kwire.records.format.record import Record

__all__ = ["EXCEEDED", "REJECTED", "DeadLetterQueues", "DeadLetters"]

log = logging.getLogger(__name__)

REJECTED, EXCEEDED = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
TOPIC_NAME, COPIES = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
FETCH_BYTES = 1 << 20
MAX_ATTEMPTS, BACKOFF_MS, MAX_BACKOFF_MS = 5, 1000, 30_000


class DeadLetters(NamedTuple):
    """Offsets to copy, both ends included, with their delivery count. reason: the text of the header."""

    first: int
    last: int
    delivery_count: int
    reason: str


@dataclass(slots=True, kw_only=True, eq=False)
class Copying:
    """Dead letters being copied. source: their partition. following: the next offset to copy. attempts: that failed."""

    group_id: str
    source: Partition
    letters: DeadLetters
    done: Callable[[], object]
    following: int
    attempts: int = 0


class DeadLetterQueues:
    """The dead letter queues of a cluster. find_topic: see TopicCreation.dead_letter_topic."""

    def __init__(self, clock: Clock, timers: Timers, store: GroupStore, find_topic: Callable[[str], Topic]) -> None:
        self._clock, self._timers, self._store, self._find_topic = clock, timers, store, find_topic
        self._scheduled: dict[Copying, TimerHandle] = {}

    def topic_of(self, group_id: str) -> str:
        """Return the name of a group's dead letter topic, "" without one."""
        return self._store.configs_of(group_id).get(TOPIC_NAME, "")

    def copy(self, group_id: str, source: Partition, letters: DeadLetters, done: Callable[[], object]) -> None:
        """Copy records of a partition soon, then call `done`."""
        copying = Copying(group_id=group_id, source=source, letters=letters, done=done, following=letters.first)
        self._schedule(copying, 0)

    def close(self) -> None:
        """Stop copying."""
        for handle in self._scheduled.values():
            handle.cancel()
        self._scheduled.clear()

    def _schedule(self, copying: Copying, delay_ms: int) -> None:
        self._scheduled[copying] = self._timers.call_later(delay_ms, lambda: self._run(copying))

    def _run(self, copying: Copying) -> None:
        del self._scheduled[copying]
        try:
            self._append(copying)
        except KwireError as error:
            copying.attempts += 1
            has_no_leader = isinstance(error, BrokerError) and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if has_no_leader and copying.attempts < MAX_ATTEMPTS:
                self._schedule(copying, min(BACKOFF_MS << copying.attempts, MAX_BACKOFF_MS))
                return
            log.warning("dead letters of group %s, %s: %s", copying.group_id, copying.source.name, error)
        copying.done()

    def _append(self, copying: Copying) -> None:
        """Append what is not copied yet. Raises BrokerError or LogError; what was appended before stays."""
        letters, source, now_ms = copying.letters, copying.source, self._clock.now_ms()
        topic = self._find_topic(self.topic_of(copying.group_id))
        target = topic.partitions[source.index % len(topic.partitions)]
        max_bytes = target.opened.config.max_message_bytes
        originals: Iterator[Record] = iter(())
        if self._store.configs_of(copying.group_id).get(COPIES, "").strip().lower() == "true":
            originals = originals_of(source.opened, copying.following, letters.last, max_bytes)
        original = next(originals, None)
        while copying.following <= letters.last:
            builder = BatchBuilder(max_bytes=max_bytes)
            offset = copying.following
            while offset <= letters.last:
                is_found = original is not None and original.offset == offset
                key, value = (original.key, original.value) if original is not None and is_found else (None, None)
                headers = headers_of(copying, offset)
                if not builder.append(key, value, timestamp=now_ms, headers=headers):
                    break
                original = next(originals, None) if is_found else original
                offset += 1
            target.append(builder.build(), now_ms=now_ms)
            copying.following = offset


def headers_of(copying: Copying, offset: int) -> list[tuple[str, bytes]]:
    """Return the headers of a dead letter."""
    values = {
        "topic": copying.source.topic.name,
        "partition": str(copying.source.index),
        "offset": str(offset),
        "group": copying.group_id,
        "delivery.count": str(copying.letters.delivery_count),
        "message": copying.letters.reason,
    }
    return [(f"__dlq.errors.{name}", value.encode()) for name, value in values.items()]


def originals_of(source: PartitionWriter, first: int, last: int, max_bytes: int) -> Iterator[Record]:
    """Yield the records of a range, less those that are deleted, damaged, or larger than a batch of the dead letters.

    As in Kafka, all records of a compressed batch are too large if it decompresses to more than that.
    """
    while first <= last:
        start = first
        try:
            for batch in read_batches(source.fetch(first, FETCH_BYTES).read(), max_decompressed_bytes=max_bytes):
                if batch.base_offset > last:
                    return
                yield from records_of(batch, first, last, max_bytes)
                first = batch.last_offset + 1
        except KwireError as error:
            log.warning("%s: records from offset %d on have dead letters without a copy: %s", source.name, first, error)
            return
        if first == start:
            return


def records_of(batch: Batch, first: int, last: int, max_bytes: int) -> Iterator[Record]:
    """Yield the records of a batch in a range that are not too large."""
    is_compressed = batch.compression != Compression.NONE
    try:
        for records in batch.record_lists(start_offset=first, end_offset=last + 1):
            yield from (each for each in records if is_compressed or record_bytes(each, batch) <= max_bytes)
    except CorruptBatch:
        if not is_compressed:
            raise


def record_bytes(record: Record, batch: Batch) -> int:
    """Return the size of a record in its batch."""
    out = bytearray()
    append_record(
        out,
        offset_delta=record.offset - batch.base_offset,
        timestamp_delta=record.timestamp - batch.base_timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )
    return len(out)
