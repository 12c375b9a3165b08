"""The records in packet captures as a log directory: those that were fetched, and those that were produced.

    Fetch responses                     batches as they are in the log
    Produce requests and responses      batches with the offsets of the response, as the broker appends them

Batches wait in a temporary file until all captures are read; then each partition is written in order of offsets, and
each offset once. A fetched batch is preferred to a produced one, since the broker may have compressed that again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, NamedTuple, Self

from kwire.capture.capture import CaptureCounts, read_capture
from kwire.capture.exchange import Exchange
from kwire.capture.frame_stream import Frame
from kwire.errors import CorruptBatch, DecodeError, LogError, Malformed, OptionError, UnsupportedVersion, counted
from kwire.identifiers import MAX_OFFSET, TopicPartition, render_uuid
from kwire.log.files.file_names import LARGEST_SEGMENT_BYTES, check_topic
from kwire.log.reading.log_directory import LogDirectory
from kwire.maintenance.new_directory import NewDirectory, WrittenPartition
from kwire.maintenance.new_log import NewLog
from kwire.messages import (
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeTopicPartitionsResponse,
    FetchResponse,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from kwire.messages.base import Message
from kwire.records import (
    Batch,
    ControlRecordType,
    RejectedRecords,
    TimestampType,
    parse_control_record,
    read_batches,
    validate_and_assign_offsets,
)
from kwire.records.format.batch_header import FRAME_BYTES, batch_bytes
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import check_target
from kwire.storage.unsynced_files import UnsyncedFileSystem

__all__ = ["CapturedLogs", "CapturedRecords", "write_logs"]

PRODUCED = 1
RANKS = {2: 0, 1: 2, 0: 3}
"""Of fetched batches by magic: those of the log, then produced ones, then those that were converted for old clients."""
MOST_NAMES = 20  # of partitions in a message
APPENDED_BYTES = 1 << 20
MAX_RELATIVE_OFFSET = (1 << 31) - 1  # in a segment
PLAIN, IN_TRANSACTION, IN_ABORTED, COMMIT, ABORT = range(5)
"""Kinds of batches: data outside and inside of a transaction, inside of one that a response calls aborted; markers."""
NS_PER_MS = 1_000_000

Topic = tuple[str, int] | uuid.UUID
"""A topic's name and how often it was deleted before, or its id in newer versions of Fetch and Produce."""


@dataclass(slots=True, kw_only=True)
class CapturedRecords:
    """The log directory that was made of captures.

    partitions: what was written. gaps: the ranges [first, end) of offsets that the captures do not have, between those
    that they have. What was left out:
    incomplete: requests and responses with records that were not captured completely, or cannot be decoded.
    without_offset: batches of Produce requests whose response was not captured, or not asked for (acks=0).
    corrupt: batches with a wrong checksum, or invalid records.
    overlapping: batches that share some of their offsets with another one, and have the only records of others.
    differing: batches with other records at the offsets of another one.
    aborted: batches of aborted transactions, as consumers were told, whose markers were not captured.
    invalid: batches of topics and partitions that no broker has.
    Also: damage: of captures, whose records before it were written. created_again: topics that were deleted and created
    again, with the names that their earlier records have here.
    """

    partitions: list[WrittenPartition] = field(default_factory=list)
    gaps: dict[TopicPartition, list[tuple[int, int]]] = field(default_factory=dict)
    incomplete: int = 0
    without_offset: int = 0
    corrupt: int = 0
    overlapping: int = 0
    differing: int = 0
    aborted: int = 0
    invalid: int = 0
    damage: list[str] = field(default_factory=list)
    created_again: dict[str, list[str]] = field(default_factory=dict)

    def warnings(self) -> Iterator[str]:
        """Yield what the directory does not have, and what has another name, in words."""
        yield from self.damage
        for topic, earlier in sorted(self.created_again.items()):
            yield f"topic {topic!r} was deleted and created again: its earlier records are in {', '.join(earlier)}"
        for count, one, many, why in (
            (self.incomplete, "message", "", "with records, not captured completely"),
            (self.without_offset, "produced batch", "produced batches", "whose offsets are not in the capture"),
            (self.corrupt, "corrupt batch", "corrupt batches", ""),
            (self.overlapping, "batch", "batches", "overlapping another one"),
            (self.differing, "batch", "batches", "with other records at the same offsets"),
            (self.aborted, "batch", "batches", "of aborted transactions without their markers"),
            (self.invalid, "batch", "batches", "of topics or partitions that no broker has"),
        ):
            if count:
                yield f"left out: {counted(count, one, many)} {why}".rstrip()
        if self.gaps:
            names = [f"{topic}-{partition}" for topic, partition in sorted(self.gaps)]
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            missing = sum(end - first for gaps in self.gaps.values() for first, end in gaps)
            yield f"{counted(missing, 'offset')} not in the capture, within {', '.join(names[:MOST_NAMES])}{more}"


def write_logs(
    captures: Iterable[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    *,
    now_ms: int,
    ports: Iterable[int] = (),
    counts: CaptureCounts | None = None,
    storage_options: Mapping[str, object] | None = None,
    file_system: FileSystem | None = None,
    only_to_read: bool = False,
) -> CapturedRecords:
    """Write the records in captures as a log directory.

    captures: pcap or pcapng files: local paths or URLs; a record that several have is written once.
    directory: missing or empty.
    now_ms: the time, in milliseconds.
    ports, counts, storage_options: as for read_capture.
    file_system: by default the local one. only_to_read: leave out what no reader needs, such as indexes of a small
    partition, which is most of the time where there are many.
    Offsets are those of the topics; what no capture has is a gap, as after compaction. A topic of which only the id was
    captured is named by its id. Of a damaged capture, the records before the damage are written.
    Memory: 50 bytes a batch.
    Raises OptionError for a directory in use, LogError as read_capture does, for captures without records and for a
    full disk, and Malformed for a file that is no capture. No directory is created on an error.
    """
    files, target = file_system or FileSystem(), os.fspath(directory)
    check_target(target)
    paths, ports = [os.fspath(each) for each in captures], frozenset(ports)
    try:
        with tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(target))) as spool:
            batches = _Batches(spool)
            for path in paths:
                try:
                    for exchange in read_capture(path, ports=ports, counts=counts, storage_options=storage_options):
                        batches.add(exchange)
                except Malformed as error:
                    if not error.position:
                        raise  # not a capture
                    batches.result.damage.append(str(error))
            partitions = batches.by_name()
            if not partitions:
                raise batches.no_records(paths)
            new = NewDirectory(
                files, target, now_ms=now_ms, segment_bytes=LARGEST_SEGMENT_BYTES, topic_ids=batches.topic_ids
            )
            new.create(batches.size_bytes)
            try:
                for key in sorted(partitions):
                    batches.write(new, key, partitions[key], only_to_read=only_to_read)
                if new.is_empty:
                    raise batches.no_records(paths)
                batches.result.partitions = new.publish(cleaned=batches.result.gaps)
            except BaseException:  # Ctrl-C too: the same call can be repeated
                new.discard()
                raise
    except OSError as error:
        raise LogError(f"cannot be written: {error.strerror or error}", target) from error
    return batches.result


class CapturedLogs(LogDirectory):
    """The records in a packet capture as logs. They are in a temporary directory, removed when no log is used any more.

    capture: its path or URL. captured: what was found, and what is not there. close() removes the directory at once.
    """

    def __init__(self, path: str | os.PathLike[str], *, now_ms: int, **storage_options: object) -> None:
        """path: a pcap or pcapng file: local path or URL. Raises LogError and Malformed as write_logs does."""
        self.capture, folder = os.fspath(path), tempfile.mkdtemp(prefix="kwire-capture-")
        try:
            self.captured = write_logs(
                [path],
                f"{folder}/logs",
                now_ms=now_ms,
                storage_options=storage_options,
                file_system=UnsyncedFileSystem(),
                only_to_read=True,
            )
            super().__init__(f"{folder}/logs")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # all logs have the store
        self._remove = weakref.finalize(self._store, shutil.rmtree, folder, ignore_errors=True)

    def reopened(self) -> Self:
        """Return these logs: the capture was read to its end."""
        return self

    def close(self) -> None:
        """Remove the directory."""
        self._remove()


class _Batch(NamedTuple):
    """A batch in the temporary file: its offsets, which of several to take first, what it is, and where."""

    first: int
    last: int
    rank: int
    kind: int
    producer_id: int
    checksum: int
    position: int


class _Spooled:
    """The batches of a partition in the temporary file."""

    def __init__(self) -> None:
        self._columns = tuple(array(code) for code in "qqbbqIq")

    def __len__(self) -> int:
        return len(self._columns[0])

    def append(self, batch: _Batch) -> None:
        """Add a batch."""
        for column, value in zip(self._columns, batch, strict=True):
            column.append(value)

    def extend(self, other: _Spooled) -> None:
        """Add the batches of the same partition under another name."""
        for column, more in zip(self._columns, other._columns, strict=True):
            column.extend(more)

    def in_order(self) -> Iterator[_Batch]:
        """Yield the batches by offset, of one offset the one to write first."""
        firsts, ranks, positions = self._columns[0], self._columns[2], self._columns[6]
        for at in sorted(range(len(self)), key=lambda at: (firsts[at], ranks[at], positions[at])):
            yield _Batch(*(column[at] for column in self._columns))


class _Batches:
    """The batches of captures. size_bytes: of all. topic_ids: of the topics whose names and ids were captured."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool, self.size_bytes = spool, 0
        self._found: dict[tuple[Topic, int], _Spooled] = {}
        self._ids: dict[str, list[uuid.UUID]] = {}  # of a name, in the order in which they were captured
        self._current: dict[str, uuid.UUID] = {}
        self._deleted = Counter[str]()
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.result = CapturedRecords()

    def add(self, exchange: Exchange) -> None:
        """Keep the batches of an exchange."""
        match exchange.api_name:
            case "Fetch":
                self._add_fetched(exchange)
            case "Produce":
                self._add_produced(exchange)
            case "Metadata" | "CreateTopics" | "DescribeTopicPartitions" | "DeleteTopics":
                self._learn_topics(exchange)

    def no_records(self, paths: Iterable[str]) -> LogError:
        """Return the error for captures without records that can be written."""
        missing = "; ".join(self.result.warnings()) or "no Fetch responses or acknowledged Produce requests"
        return LogError(f"no records in this capture: {missing}", ", ".join(paths))

    def by_name(self) -> dict[TopicPartition, _Spooled]:
        """Return the batches of each partition that a broker can have."""
        names = self._names()
        named: dict[TopicPartition, _Spooled] = {}
        for (topic, partition), batches in self._found.items():
            name = names[topic]
            try:
                check_topic(name, partition)
            except OptionError:
                self.result.invalid += len(batches)
                continue
            named.setdefault((name, partition), _Spooled()).extend(batches)
        return named

    def _names(self) -> dict[Topic, str]:
        """Return the name of each topic here: of one that was deleted and created again, the last one keeps it."""
        lives: dict[str, list[Topic]] = {name: [*ids] for name, ids in self._ids.items()}
        same: dict[Topic, Topic] = {}  # what was named only, as its id if that is known
        for topic in sorted({topic for topic, _ in self._found}, key=str):
            if isinstance(topic, uuid.UUID):
                same[topic] = topic
            elif topic[0] in self._ids:
                ids = self._ids[topic[0]]
                same[topic] = ids[min(topic[1], len(ids) - 1)]
            else:
                lives.setdefault(topic[0], []).append(topic)
                same[topic] = topic
        found, names = set(same.values()), dict[Topic, str]()
        for name, all_lives in lives.items():
            present = [each for each in all_lives if each in found]
            names |= dict.fromkeys(present[-1:], name)
            for at, each in enumerate(present[:-1]):
                names[each] = f"{name}.{render_uuid(each) if isinstance(each, uuid.UUID) else at}"
                self.result.created_again.setdefault(name, []).append(names[each])
        self.topic_ids = {name: each for each, name in names.items() if isinstance(each, uuid.UUID)}
        return {
            topic: names.get(life) or (render_uuid(life) if isinstance(life, uuid.UUID) else life[0])
            for topic, life in same.items()
        }

    def write(self, new: NewDirectory, key: TopicPartition, batches: _Spooled, *, only_to_read: bool) -> None:
        """Write a partition, unless all its records are left out."""
        chosen, overlapping = self._choose(batches)
        if not chosen:
            return
        first_offset = base = end = chosen[0].first
        log: NewLog | None = None
        records, waiting = 0, bytearray()
        for each in chosen:
            if each.first > end:
                self.result.gaps.setdefault(key, []).append((end, each.first))
            if each.last - base > MAX_RELATIVE_OFFSET:
                log = log or new.open(key, first_offset)
                log.append(waiting)
                waiting, base = bytearray(), each.first
                log.begin_segment(base)
            batch = self._read(each.position)
            waiting += batch.buffer
            records += sum(1 for _ in batch.records(check_crc=False)) if batch.count is None else batch.count
            end = each.last + 1
            if len(waiting) >= APPENDED_BYTES:
                log = log or new.open(key, first_offset)
                log.append(waiting)
                waiting = bytearray()
        if only_to_read and log is None:
            new.write_segment(key, (first_offset, end), waiting, records)
        else:
            log = log or new.open(key, first_offset)
            log.append(waiting)
            new.finish(key, records)
        missing = [*self.result.gaps.get(key, ()), (end, MAX_OFFSET)]
        for first, last in overlapping:  # the rest of most of them is in later batches
            self.result.overlapping += any(first < stop and start <= last for start, stop in missing)

    def _choose(self, batches: _Spooled) -> tuple[list[_Batch], list[tuple[int, int]]]:
        """Return the batches to write, and the offsets of others that go beyond those before them."""
        chosen, overlapping, aborted = list[_Batch](), list[tuple[int, int]](), set[int]()
        end = 0
        for each in batches.in_order():
            if each.kind == IN_ABORTED:
                aborted.add(each.first)
            if not chosen or each.first >= end:
                chosen.append(each)
                end = each.last + 1
            elif each.last >= end:
                overlapping.append((end, each.last))
            elif self._differs(each, chosen[-1]):
                self.result.differing += 1
        after: dict[int, int] = {}  # producer id -> what its next batch is
        kept = list[_Batch]()
        for each in reversed(chosen):
            if each.first in aborted and after.get(each.producer_id) != ABORT:
                self.result.aborted += 1
                continue
            if each.kind != PLAIN and each.first not in aborted:
                after[each.producer_id] = each.kind
            kept.append(each)
        return kept[::-1], overlapping

    def _differs(self, each: _Batch, written: _Batch) -> bool:
        """Return whether a batch inside of a written one, in the same form, has other records."""
        if each.rank != written.rank or each.first < written.first:
            return False
        if (each.first, each.last) == (written.first, written.last):
            return each.checksum != written.checksum
        records = {record.offset: (record.key, record.value) for record in self._read(written.position).records()}
        return any(
            records.get(record.offset, (record.key, record.value)) != (record.key, record.value)
            for record in self._read(each.position).records()
        )

    # ---- exchanges

    def _add_fetched(self, exchange: Exchange) -> None:
        response = self._message(exchange.response, exchange.response_message)
        if not isinstance(response, FetchResponse):
            return
        for topic in response.responses:
            for part in topic.partitions:
                if part.records:
                    aborted = [(each.first_offset, each.producer_id) for each in part.aborted_transactions or ()]
                    self._keep((self._topic(topic.topic, topic.topic_id), part.partition_index), part.records, aborted)

    def _add_produced(self, exchange: Exchange) -> None:
        request = self._message(exchange.request, exchange.request_message)
        if not isinstance(request, ProduceRequest):
            return
        try:
            response = exchange.response_message()
        except (DecodeError, UnsupportedVersion):
            response = None
        acknowledged = {
            (topic.name or topic.topic_id, part.index): part
            for topic in (response.responses if isinstance(response, ProduceResponse) else ())
            for part in topic.partition_responses
        }
        sent_ms = exchange.request.time_ns // NS_PER_MS if exchange.request else 0
        for sent in request.topic_data:
            for each in sent.partition_data:
                answer = acknowledged.get((sent.name or sent.topic_id, each.index))
                if not each.records or (answer is not None and answer.error_code):
                    continue
                if answer is None or answer.base_offset < 0:
                    self.result.without_offset += 1
                    continue
                is_append_time = answer.log_append_time_ms >= 0
                kind = TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
                try:
                    stored = validate_and_assign_offsets(
                        each.records,
                        answer.base_offset,
                        now_ms=answer.log_append_time_ms if is_append_time else sent_ms,
                        message_timestamp_type=kind,
                    )
                except (CorruptBatch, RejectedRecords):
                    self.result.corrupt += 1
                    continue
                self._keep((self._topic(sent.name, sent.topic_id), each.index), stored.data, rank=PRODUCED)

    def _learn_topics(self, exchange: Exchange) -> None:
        try:
            response = exchange.response_message()
        except (DecodeError, UnsupportedVersion):
            return
        if isinstance(response, MetadataResponse | CreateTopicsResponse | DescribeTopicPartitionsResponse):
            for topic in response.topics:
                if topic.topic_id.int and topic.name and not topic.error_code:
                    ids = self._ids.setdefault(topic.name, [])
                    if topic.topic_id not in ids:
                        ids.append(topic.topic_id)
                    self._current[topic.name] = topic.topic_id
        elif isinstance(response, DeleteTopicsResponse):
            for deleted in response.responses:
                if deleted.name and not deleted.error_code:
                    self._deleted[deleted.name] += 1
                    self._current.pop(deleted.name, None)

    def _topic(self, name: str, topic_id: uuid.UUID) -> Topic:
        """Return the topic that a request or response means, which has either."""
        return (self._current.get(name) or (name, self._deleted[name])) if name else topic_id

    def _message(self, frame: Frame | None, decode: Callable[[], Message | None]) -> Message | None:
        """Decode one side of an exchange; None, and counted, if it was not captured completely."""
        if frame is None:
            return None
        try:
            return decode()
        except (DecodeError, UnsupportedVersion):
            self.result.incomplete += 1
            return None

    # ---- the temporary file

    def _keep(
        self,
        key: tuple[Topic, int],
        data: bytes,
        aborted: Iterable[tuple[int, int]] = (),
        rank: int | None = None,
    ) -> None:
        """Add the batches in `data`, fetched ones without a rank; one that is cut off at its end was not sent.

        aborted: (first offset, producer id) of the transactions that the response calls aborted.
        """
        left, open_now = sorted(aborted, reverse=True), set[int]()
        try:
            for batch in read_batches(data):
                try:
                    batch.check()
                    first, last = batch.base_offset, batch.last_offset
                    if not 0 <= first <= last:
                        raise batch.corrupt("negative offsets")
                    kind = _kind(batch)
                except CorruptBatch:
                    self.result.corrupt += 1
                    continue
                while left and left[-1][0] <= last:
                    open_now.add(left.pop()[1])
                if kind == ABORT:
                    open_now.discard(batch.producer_id)
                elif kind == IN_TRANSACTION and batch.producer_id in open_now:
                    kind = IN_ABORTED
                order = RANKS[batch.magic] if rank is None else rank
                place = self.size_bytes
                self._found.setdefault(key, _Spooled()).append(
                    _Batch(first, last, order, kind, batch.producer_id, batch.crc, place)
                )
                self._spool.write(batch.buffer)
                self.size_bytes += batch.size_bytes
        except CorruptBatch:  # an impossible size, after which nothing can be found
            self.result.corrupt += 1

    def _read(self, position: int) -> Batch:
        self._spool.seek(position)
        head = self._spool.read(FRAME_BYTES)
        self._spool.seek(position)
        return next(read_batches(self._spool.read(batch_bytes(head, 0))))


def _kind(batch: Batch) -> int:
    """Return what a batch is for transactions. Raises CorruptBatch."""
    if not batch.is_transactional:
        return PLAIN
    if not batch.is_control:
        return IN_TRANSACTION
    for record in batch.records():
        return ABORT if parse_control_record(record).type == ControlRecordType.ABORT else COMMIT
    return PLAIN
