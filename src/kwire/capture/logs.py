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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Self

from kwire.capture.capture import CaptureCounts, read_capture
from kwire.capture.exchange import Exchange
from kwire.capture.frame_stream import Frame
from kwire.errors import CorruptBatch, DecodeError, LogError, OptionError, UnsupportedVersion, counted
from kwire.identifiers import MAX_OFFSET, TopicPartition, render_uuid
from kwire.log.files.file_names import LARGEST_SEGMENT_BYTES, Ignored, check_topic
from kwire.log.reading.log_directory import LogDirectory
from kwire.maintenance.new_directory import NewDirectory, WrittenPartition
from kwire.messages import (
    CreateTopicsResponse,
    DescribeTopicPartitionsResponse,
    FetchResponse,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from kwire.messages.base import Message
from kwire.records import Batch, RejectedRecords, TimestampType, read_batches, validate_and_assign_offsets
from kwire.records.format.batch_header import FRAME_BYTES, batch_bytes
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import check_target

__all__ = ["CapturedLogs", "CapturedRecords", "write_logs"]

PRODUCED = 1
RANKS = {2: 0, 1: 2, 0: 3}
"""Of fetched batches by magic: those of the log, then produced ones, then those that were converted for old clients."""
MOST_NAMES = 20  # of partitions in a message
APPENDED_BYTES = 1 << 20
NS_PER_MS = 1_000_000

Topic = str | uuid.UUID
"""A topic's name, or its id in newer versions of Fetch and Produce."""


@dataclass(slots=True, kw_only=True)
class CapturedRecords:
    """The log directory that was made of captures.

    partitions: what was written. gaps: the ranges [first, end) of offsets that the captures do not have, between those
    that they have. What was left out:
    incomplete: requests and responses with records that were not captured completely, or cannot be decoded.
    without_offset: batches of Produce requests whose response was not captured, or not asked for (acks=0).
    corrupt: batches with a wrong checksum, or invalid records.
    overlapping: batches that share some of their offsets with another one, and have the only records of others.
    differing: batches with other records at the offsets of another one, as of a topic that was created again.
    invalid: batches of topics and partitions that no broker has.
    """

    partitions: list[WrittenPartition] = field(default_factory=list)
    gaps: dict[TopicPartition, list[tuple[int, int]]] = field(default_factory=dict)
    incomplete: int = 0
    without_offset: int = 0
    corrupt: int = 0
    overlapping: int = 0
    differing: int = 0
    invalid: int = 0

    def warnings(self) -> Iterator[str]:
        """Yield what the directory does not have, in words."""
        for count, one, many, why in (
            (self.incomplete, "message", "", "with records, not captured completely"),
            (self.without_offset, "produced batch", "produced batches", "whose offsets are not in the capture"),
            (self.corrupt, "corrupt batch", "corrupt batches", ""),
            (self.overlapping, "batch", "batches", "overlapping another one"),
            (self.differing, "batch", "batches", "with other records at the same offsets"),
            (self.invalid, "batch", "batches", "of topics with invalid names"),
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
) -> CapturedRecords:
    """Write the records in captures as a log directory.

    captures: pcap or pcapng files: local paths or URLs; a record that several have is written once.
    directory: missing or empty.
    now_ms: the time, in milliseconds.
    ports, counts, storage_options: as for read_capture.
    file_system: by default the local one.
    Offsets are those of the topics; what no capture has is a gap, as after compaction. A topic of which only the id was
    captured is named by its id. Memory: 40 bytes a batch.
    Raises OptionError for a directory in use; LogError and Malformed as read_capture does, and LogError for captures
    without records. No directory is created on an error.
    """
    files, target = file_system or FileSystem(), os.fspath(directory)
    check_target(target)
    paths, ports = [os.fspath(each) for each in captures], frozenset(ports)
    with tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(target))) as spool:
        batches = _Batches(spool)
        for path in paths:
            for exchange in read_capture(path, ports=ports, counts=counts, storage_options=storage_options):
                batches.add(exchange)
        new = NewDirectory(
            files, target, now_ms=now_ms, segment_bytes=LARGEST_SEGMENT_BYTES, topic_ids=batches.topic_ids
        )
        partitions = batches.by_name()
        if not partitions:
            missing = "; ".join(batches.result.warnings()) or "no Fetch responses or acknowledged Produce requests"
            raise LogError(f"no records in this capture: {missing}", ", ".join(paths))
        new.create(batches.size_bytes)
        try:
            for key in sorted(partitions):
                batches.write(new, key, partitions[key])
            batches.result.partitions = new.publish()
        except BaseException:  # Ctrl-C too: the same call can be repeated
            new.discard()
            raise
    return batches.result


class CapturedLogs(LogDirectory):
    """The records in a packet capture as logs. They are in a temporary directory, removed when no log is used any more.

    capture: its path or URL. captured: what was found. ignored: what is not there, in words.
    """

    def __init__(self, path: str | os.PathLike[str], *, now_ms: int, **storage_options: object) -> None:
        """path: a pcap or pcapng file: local path or URL. Raises LogError and Malformed as write_logs does."""
        self.capture, folder = os.fspath(path), tempfile.mkdtemp(prefix="kwire-capture-")
        try:
            self.captured = write_logs([path], f"{folder}/logs", now_ms=now_ms, storage_options=storage_options)
            super().__init__(f"{folder}/logs")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.ignored += [Ignored(name=self.capture, reason=each) for each in self.captured.warnings()]
        weakref.finalize(self._store, shutil.rmtree, folder, ignore_errors=True)  # all logs have the store

    def reopened(self) -> Self:
        """Return these logs: the capture was read to its end."""
        return self


@dataclass(slots=True)
class _Spooled:
    """The batches of a partition in the temporary file, an item of each array for each."""

    firsts: array[int] = field(default_factory=lambda: array("q"))
    lasts: array[int] = field(default_factory=lambda: array("q"))
    ranks: array[int] = field(default_factory=lambda: array("b"))
    checksums: array[int] = field(default_factory=lambda: array("I"))
    positions: array[int] = field(default_factory=lambda: array("q"))

    def extend(self, other: _Spooled) -> None:
        """Add the batches of the same partition under another name."""
        self.firsts += other.firsts
        self.lasts += other.lasts
        self.ranks += other.ranks
        self.checksums += other.checksums
        self.positions += other.positions

    def in_order(self) -> list[int]:
        """Return the places of the batches by offset, of one offset the one to write first."""
        return sorted(range(len(self.firsts)), key=lambda at: (self.firsts[at], self.ranks[at], self.positions[at]))


class _Batches:
    """The batches of captures. size_bytes: of all. topic_ids: of the topics whose names and ids were captured."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool, self.size_bytes = spool, 0
        self._found: dict[tuple[Topic, int], _Spooled] = {}
        self._names: dict[uuid.UUID, str] = {}
        self.result = CapturedRecords()

    @property
    def topic_ids(self) -> dict[str, uuid.UUID]:
        return {name: topic_id for topic_id, name in self._names.items()}

    def add(self, exchange: Exchange) -> None:
        """Keep the batches of an exchange."""
        match exchange.api_name:
            case "Fetch":
                self._add_fetched(exchange)
            case "Produce":
                self._add_produced(exchange)
            case "Metadata" | "CreateTopics" | "DescribeTopicPartitions":
                self._learn_names(exchange)

    def by_name(self) -> dict[TopicPartition, _Spooled]:
        """Return the batches of each partition that a broker can have."""
        named: dict[TopicPartition, _Spooled] = {}
        for (topic, partition), batches in self._found.items():
            name = topic if isinstance(topic, str) else self._names.get(topic) or render_uuid(topic)
            try:
                check_topic(name, partition)
            except OptionError:
                self.result.invalid += len(batches.firsts)
                continue
            named.setdefault((name, partition), _Spooled()).extend(batches)
        return named

    def write(self, new: NewDirectory, key: TopicPartition, batches: _Spooled) -> None:
        """Write a partition."""
        order = batches.in_order()
        first_offset = end = batches.firsts[order[0]]
        log, records, waiting = new.open(key, first_offset), 0, bytearray()
        before, overlapping = order[0], list[tuple[int, int]]()
        for at in order:
            first, last = batches.firsts[at], batches.lasts[at]
            if first < end:
                same = (first, batches.ranks[at]) == (batches.firsts[before], batches.ranks[before])
                if same and batches.checksums[at] != batches.checksums[before]:
                    self.result.differing += 1
                elif last >= end:
                    overlapping.append((end, last))
                continue
            if first > end:
                self.result.gaps.setdefault(key, []).append((end, first))
            batch = self._read(batches.positions[at])
            waiting += batch.buffer
            records += sum(1 for _ in batch.records(check_crc=False)) if batch.count is None else batch.count
            end, before = last + 1, at
            if len(waiting) >= APPENDED_BYTES:
                log.append(waiting)
                waiting = bytearray()
        log.append(waiting)
        new.finish(key, records)
        missing = [*self.result.gaps.get(key, ()), (end, MAX_OFFSET)]
        for first, last in overlapping:  # the rest of most of them is in later batches
            self.result.overlapping += any(first < stop and start <= last for start, stop in missing)

    # ---- exchanges

    def _add_fetched(self, exchange: Exchange) -> None:
        response = self._message(exchange.response, exchange.response_message)
        if not isinstance(response, FetchResponse):
            return
        for topic in response.responses:
            for part in topic.partitions:
                if part.records:
                    self._keep((topic.topic or topic.topic_id, part.partition_index), part.records)

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
                key = sent.name or sent.topic_id, each.index
                answer = acknowledged.get(key)
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
                self._keep(key, stored.data, PRODUCED)

    def _learn_names(self, exchange: Exchange) -> None:
        try:
            response = exchange.response_message()
        except (DecodeError, UnsupportedVersion):
            return
        if isinstance(response, MetadataResponse | CreateTopicsResponse | DescribeTopicPartitionsResponse):
            self._names |= {each.topic_id: each.name for each in response.topics if each.topic_id.int and each.name}

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

    def _keep(self, key: tuple[Topic, int], data: bytes, rank: int | None = None) -> None:
        """Add the batches in `data`, fetched ones without a rank; one that is cut off at its end was not sent."""
        try:
            for batch in read_batches(data):
                batch.check()
                first, last = batch.base_offset, batch.last_offset
                if not 0 <= first <= last:
                    raise batch.corrupt("negative offsets")
                found = self._found.setdefault(key, _Spooled())
                found.firsts.append(first)
                found.lasts.append(last)
                found.ranks.append(RANKS[batch.magic] if rank is None else rank)
                found.checksums.append(batch.crc)
                found.positions.append(self.size_bytes)
                self._spool.write(batch.buffer)
                self.size_bytes += batch.size_bytes
        except CorruptBatch:
            self.result.corrupt += 1

    def _read(self, position: int) -> Batch:
        self._spool.seek(position)
        head = self._spool.read(FRAME_BYTES)
        self._spool.seek(position)
        return next(read_batches(self._spool.read(batch_bytes(head, 0))))
