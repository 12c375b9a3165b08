"""Content of old log directories: their node, the replicas in them, and the state of each.

Nothing is written. Offsets and epochs are those that Kafka will have after it has loaded the log: after an unclean
shutdown, batches above the recovery point are checked, and the log ends before the first damaged one (rule G-08).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kwire.errors import CorruptBatch, KwireError, LogError, Malformed, OptionError
from kwire.identifiers import MAX_OFFSET, new_uuid, parse_uuid, render_uuid
from kwire.internal_topics.names import METADATA_TOPIC, TRANSACTIONS_TOPIC
from kwire.log import LogDirectory
from kwire.log.files.file_names import LONGEST_NAME, MARKED_DIRECTORY, MARKS, parse_partition_directory
from kwire.log.files.producer_snapshot import parse_producer_snapshot
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.topics import replay_transactions
from kwire.storage.checkpoints import (
    CLEANER_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_offset_checkpoint,
)
from kwire.storage.directory_lock import is_held
from kwire.storage.file_system import FileSystem
from kwire.storage.links import refuse_outside_links
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.open_store import open_store

__all__ = ["FoundDirectory", "Replica", "find_directory"]

NO_EPOCH = -1
DEFAULT_NODE_ID = 1

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A partition in a log directory.

    path: of its directory; a stray's is not named like the partition. topic_id: None without partition.metadata.
    leader_epoch: of the last record, -1 without. highest_epoch: of the leader epochs in its files, which may have no
    records. highest_producer_id: -1 without producers. open_transaction: the first offset of the oldest one. problem:
    what is wrong with its partition.metadata, if anything.
    """

    topic: str
    partition: int
    node_id: int
    directory_id: UUID
    path: str
    topic_id: UUID | None
    log_start_offset: int
    log_end_offset: int
    leader_epoch: int
    highest_epoch: int
    highest_producer_id: int
    size_bytes: int
    is_compacted: bool
    open_transaction: int | None = None
    problem: str | None = None

    @property
    def progress(self) -> tuple[int, int]:
        """Order of replicas of a partition: the one with the highest value has everything that was acknowledged."""
        return self.leader_epoch, self.log_end_offset


@dataclass(slots=True, kw_only=True)
class FoundDirectory:
    """An old log directory. path: absolute.

    properties: of meta.properties, with a new id for a directory that has none. is_current: whether the file has all of
    them. metadata_log: the old metadata log, if it has one. problems: what prevents adoption. notes: what a user should
    know.
    """

    path: str
    properties: MetaProperties
    is_current: bool
    replicas: list[Replica] = field(default_factory=list)
    metadata_log: PartitionLog | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    highest_producer_id: int = -1

    @property
    def node_id(self) -> int:
        """The node it belongs to."""
        return self.properties.node_id

    @property
    def directory_id(self) -> UUID:
        """Its id."""
        return parse_uuid(self.properties.directory_id)


def find_directory(
    path: str, *, is_only: bool = False, strays: bool = False, advance: Advance = lambda n: None
) -> FoundDirectory:
    """Read an old log directory. is_only: no other directory is adopted, so it may lack meta.properties.

    strays: whether partitions that Kafka set aside as strays are replicas too, where no other directory has their name.
    advance: called with the bytes read. Raises OptionError for a path that is not a local log directory, LogError.
    """
    if not os.path.isdir(path):
        what = "not a local directory" if os.path.exists(path) or "://" in path else "no such directory"
        raise OptionError(f"{path}: {what}")
    path = os.path.abspath(path)
    try:
        logs = LogDirectory(path, may_be_empty=True, may_share=True)
    except LogError as error:
        raise OptionError(str(error)) from error
    if any(not log.directory for log in logs.values()):
        raise OptionError(f"{path}: a partition's directory; name the log directory {os.path.dirname(path)}")
    properties, is_current = read_properties(path, is_only=is_only)
    directory = FoundDirectory(path=path, properties=properties, is_current=is_current)
    if is_held(path):
        directory.problems.append(f"{path}: in use by a process, such as a Kafka broker; stop it first")
    try:
        refuse_outside_links(path)
    except LogError as error:
        directory.problems.append(str(error))
    partitions = dict(logs)
    for ignored in logs.ignored:
        stray = stray_log(path, ignored.name) if strays else None
        if stray is not None and (stray.topic, stray.partition) not in partitions:
            partitions[stray.topic, stray.partition] = stray
        else:
            note_ignored(directory, ignored.name, ignored.reason)
    recovery_points = None if logs.is_clean_shutdown else checkpoint(logs, RECOVERY_POINTS)
    compacted = checkpoint(logs, CLEANER_OFFSETS)
    for (topic, partition), log in sorted(partitions.items()):
        if topic == METADATA_TOPIC:
            directory.metadata_log = log
            continue
        start = None if recovery_points is None else recovery_points.get((topic, partition), 0)
        try:
            replica = find_replica(directory, log, start, (topic, partition) in compacted, advance)
        except KwireError as error:
            directory.problems.append(f"{topic}-{partition}: cannot be read: {error}")
            continue
        directory.replicas.append(replica)
        directory.highest_producer_id = max(directory.highest_producer_id, replica.highest_producer_id)
    directory.highest_producer_id = max(directory.highest_producer_id, *transactional_producer_ids(directory, logs), -1)
    return directory


def read_properties(path: str, *, is_only: bool) -> tuple[MetaProperties, bool]:
    """Return the ids of a directory, and whether its file has all of them in the newest version. Raises OptionError."""
    file = f"{path}/{META_PROPERTIES}"
    if not os.path.exists(file):
        if not is_only:
            raise OptionError(f"{file}: missing; write the line node.id=N into it, with the id of the directory's node")
        return MetaProperties.new(DEFAULT_NODE_ID), False
    try:
        data = FileSystem().read_all(file)
        properties = MetaProperties.parse(data)
        if properties.directory_id:
            parse_uuid(properties.directory_id)
    except (Malformed, LogError) as error:
        raise OptionError(f"{file}: {error}") from error
    if properties.directory_id:
        return properties, b"node.id" in data and bool(properties.cluster_id)
    return MetaProperties(
        node_id=properties.node_id, cluster_id=properties.cluster_id, directory_id=render_uuid(new_uuid())
    ), False


def note_ignored(directory: FoundDirectory, name: str, reason: str) -> None:
    """Note a directory or file that is not part of any log."""
    match = MARKED_DIRECTORY.fullmatch(name)
    if match is None and os.path.isdir(f"{directory.path}/{name}") and name != "remote-log-index-cache":
        directory.notes.append(f"{directory.path}/{name}: {reason}; Kafka does not start until it is moved out")
    elif match is not None and match["mark"] == "stray":
        exists = os.path.lexists(f"{directory.path}/{name.rpartition('.')[0]}")
        remedy = "its partition has another directory: move one of the two away" if exists else "--strays adopts it"
        directory.notes.append(f"{directory.path}/{name}: set aside by Kafka, not adopted; {remedy}")
    elif match is not None and match["mark"] == "future":
        directory.notes.append(f"{directory.path}/{name}: {MARKS['future']}, not adopted")
    elif match is None:
        directory.notes.append(f"{directory.path}/{name}: {reason}")


def stray_log(path: str, name: str) -> PartitionLog | None:
    """Return the log of a directory that Kafka set aside; None for others, and for names that Kafka has cut."""
    match = MARKED_DIRECTORY.fullmatch(name)
    key = parse_partition_directory(name.rpartition(".")[0])
    if match is None or match["mark"] != "stray" or key is None or len(name) >= LONGEST_NAME:
        return None
    return PartitionLog(open_store(path, {}), name, *key)


def checkpoint(logs: LogDirectory, name: str) -> Mapping[tuple[str, int], int]:
    """Return a checkpoint of offsets; a missing or unreadable one is empty (F-03)."""
    try:
        data = logs.read_file(name)
        return {} if data is None else parse_offset_checkpoint(data)
    except (LogError, Malformed):
        return {}


@dataclass(slots=True)
class Tail:
    """Offsets and epochs at the end of a log, from its last batches."""

    end_offset: int
    leader_epoch: int = NO_EPOCH
    producer_id: int = -1


def find_replica(
    directory: FoundDirectory, log: PartitionLog, recovery_point: int | None, is_compacted: bool, advance: Advance
) -> Replica:
    """Read a replica. recovery_point: None after a clean shutdown. Raises LogError, CorruptBatch."""
    problem = None
    try:
        topic_id = log.topic_id
    except LogError as error:
        topic_id, problem = None, str(error)
    try:
        epochs = [(each.leader_epoch, each.start_offset) for each in log.leader_epochs]
    except LogError:
        epochs = []  # Kafka rebuilds it from the batches
    snapshot, snapshot_id = newest_snapshot(log)
    if recovery_point is None:
        tail = Tail(log.log_end_offset)
        if not epochs or (snapshot is not None and snapshot < tail.end_offset):
            tail = read_tail(log, log.segments[-1].base_offset if log.segments else 0, advance, check=False)
    else:
        tail = read_tail(log, min(recovery_point, snapshot or 0), advance, check=True)
    kept = [epoch for epoch, start in epochs if start < tail.end_offset]
    return Replica(
        topic=log.topic,
        partition=log.partition,
        node_id=directory.node_id,
        directory_id=directory.directory_id,
        path=log.url,
        topic_id=topic_id,
        log_start_offset=log.log_start_offset,
        log_end_offset=tail.end_offset,
        leader_epoch=max(tail.leader_epoch, *kept, NO_EPOCH),
        highest_epoch=max(tail.leader_epoch, *(epoch for epoch, _ in epochs), NO_EPOCH),
        highest_producer_id=max(tail.producer_id, snapshot_id),
        size_bytes=log.size_bytes,
        is_compacted=is_compacted,
        open_transaction=oldest_transaction(log, tail.end_offset),
        problem=problem,
    )


def oldest_transaction(log: PartitionLog, end_offset: int) -> int | None:
    """Return the first offset of the oldest open transaction; None without one, and if damage hides it."""
    try:
        stable = log.last_stable_offset
    except CorruptBatch:
        return None
    return stable if stable < end_offset else None


def newest_snapshot(log: PartitionLog) -> tuple[int | None, int]:
    """Return the offset of the newest readable producer snapshot, and the highest producer id in it; None, -1."""
    for offset in reversed(log.snapshots):
        try:
            producers = parse_producer_snapshot(log.read_file(log.snapshots[offset]))
        except (LogError, Malformed):
            continue
        return offset, max((each.producer_id for each in producers), default=-1)
    return None, -1


def read_tail(log: PartitionLog, start_offset: int, advance: Advance, *, check: bool) -> Tail:
    """Read the batches from the segment of start_offset on, up to the first damaged one. check: their checksums."""
    segments = log.segments_between(start_offset, MAX_OFFSET)
    start = segments[0].base_offset if segments else 0
    tail = Tail(max(start, log.log_start_offset))
    try:
        for _, batch in log.batches(start):
            if check:
                batch.check()
            tail.end_offset = max(tail.end_offset, batch.last_offset + 1)
            if batch.magic == 2:
                tail.leader_epoch = max(tail.leader_epoch, batch.partition_leader_epoch)
                tail.producer_id = max(tail.producer_id, batch.producer_id)
            advance(batch.size_bytes)
    except CorruptBatch:
        pass  # Kafka truncates the log here
    return tail


def transactional_producer_ids(directory: FoundDirectory, logs: LogDirectory) -> Sequence[int]:
    """Return the producer ids of transactional ids, which may be in no other log."""
    if not any(topic == TRANSACTIONS_TOPIC for topic, _ in logs):
        return ()
    try:
        state = replay_transactions(logs)
    except LogError as error:
        directory.notes.append(f"{TRANSACTIONS_TOPIC}: cannot be read: {error}")
        return ()
    return [max(each.producer_id, each.next_producer_id) for each in state.transactions.values()]
