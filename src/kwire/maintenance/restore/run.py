"""Restore a log directory to a moment, or to offsets: logs that agree with each other, on which Kafka starts.

    TARGET.part    while it is written; renamed to TARGET when everything is durable
    TARGET         a log directory after a clean shutdown, with a metadata log; with several nodes:
    TARGET/node-1  the log directory of each node

Logs keep their batches, segments, offsets, topic ids, leader epochs and producers up to the cut. Transactions that the
cut divides are ended, and committed offsets beyond their logs are moved back.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.internal_topics.groups_state import SHARE
from kwire.internal_topics.metadata_versions import MetadataRelease
from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC
from kwire.maintenance.cluster_metadata import METADATA_DIRECTORY, write_metadata_log
from kwire.maintenance.new_directory import name_of, write_clean_checkpoints
from kwire.maintenance.new_log import NewLog
from kwire.maintenance.restore.changes import Changes, DividedTransaction, Writes, plan_changes
from kwire.maintenance.restore.cluster import Source, assign_replicas, open_source, restored_cluster
from kwire.maintenance.restore.offsets import ChangedOffset, groups_at_cut, limit_offsets
from kwire.maintenance.restore.partition import end_after, write_partition
from kwire.maintenance.restore.points import AtOffsets, AtTime, RestorePoint
from kwire.maintenance.restore.shares import ShareGroups, limit_share_groups
from kwire.maintenance.restore.survey import Survey, survey_log
from kwire.storage.checkpoints import CLEANER_OFFSETS
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.staged_directory import StagedDirectory, check_target
from kwire.target_paths import path_inside

__all__ = ["RestoreOptions", "RestoreResult", "RestoredPartition", "restore_directory"]

MOST_NODES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """Options of a restore. nodes: number of nodes, with ids from 1. release: its features; default: the source's."""

    nodes: int = 1
    release: MetadataRelease | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredPartition:
    """A restored partition.

    log_end_offset: after the cut and the records that were added. cut_offset: end of the records of the source.
    source_end_offset: the source's log end offset. nodes: with a replica.
    """

    topic: str
    partition: int
    topic_id: str
    log_start_offset: int
    log_end_offset: int
    cut_offset: int
    source_end_offset: int
    size_bytes: int
    nodes: Sequence[int]


@dataclass(slots=True, kw_only=True)
class RestoreResult:
    """Result of a restore. offsets: committed offsets that were beyond their logs. share_offsets: of share groups."""

    cluster_id: str
    partitions: list[RestoredPartition]
    transactions: list[DividedTransaction]
    offsets: list[ChangedOffset]
    share_offsets: list[ChangedOffset]
    warnings: list[str]


def restore_directory(
    path: str,
    target: str,
    point: RestorePoint,
    options: RestoreOptions | None = None,
    *,
    now_ms: int,
    advance: Callable[[int], None] = lambda n: None,
    file_system: FileSystem | None = None,
) -> RestoreResult:
    """Restore the logs at a path or URL, as of a point, into a new directory.

    advance: called with bytes read; every log is read twice. Raises OptionError for a target in use and a point that
    the source does not have; LogError for a damaged source, and files that cannot be read or written. No directory is
    created on an error.
    """
    options, files = options or RestoreOptions(), file_system or FileSystem()
    if not 1 <= options.nodes <= MOST_NODES:
        raise OptionError(f"{options.nodes} nodes: expected 1 to {MOST_NODES}")
    check_target(target)
    staged = StagedDirectory(files, target)
    if staged.exists:
        raise OptionError(f"{staged.part}: left by an interrupted run; remove it")
    source = open_source(path, point)
    if os.path.abspath(target).startswith(os.path.abspath(path) + os.sep):
        raise OptionError(f"{target}: inside of {path}; use a directory outside of it")
    surveys = survey_all(source, point, advance)
    changes = plan_changes(surveys, now_ms)
    ends = {key: end_after(survey, changes.writes[key]) for key, survey in surveys.items()}
    offsets: list[ChangedOffset] = []
    shares = ShareGroups()
    for key, survey in surveys.items():
        if key[0] == GROUPS_TOPIC:
            state, deleted = groups_at_cut(survey, changes.writes[key])
            offsets += limit_offsets(state, changes.writes[key], ends)
            shares.deleted |= deleted
            shares.groups.update({name: each for name, each in state.groups.items() if each.kind == SHARE})
    whole = with_missing(source, surveys)
    topic_ids = ids_of_topics(source, whole)
    names = {topic_id: topic for topic, topic_id in topic_ids.items()}
    share_offsets, share_warnings = limit_share_groups(whole, names, shares, changes.writes)
    copies = assign_replicas(source, list(whole), options.nodes)
    need_space(files, target, sum(survey.kept_bytes * len(copies[key]) for key, survey in surveys.items()))
    staged.create()
    try:
        run = RestoreRun(
            source=source,
            files=files,
            directory=staged.part,
            surveys=whole,
            topic_ids=topic_ids,
            changes=changes,
            replicas=copies,
            options=options,
            now_ms=now_ms,
        )
        run.write(advance)
        staged.publish()
    except BaseException:  # Ctrl-C too: the same call can be repeated
        staged.discard()
        raise
    return RestoreResult(
        cluster_id=run.cluster_id,
        partitions=run.done,
        transactions=changes.transactions,
        offsets=offsets,
        share_offsets=share_offsets,
        warnings=[*source.warnings, *share_warnings, *warnings_of(source, surveys, point)],
    )


def survey_all(source: Source, point: RestorePoint, advance: Callable[[int], None]) -> dict[TopicPartition, Survey]:
    """Find the cut of every log. Raises OptionError for a point that they do not have."""
    directory = source.directory
    source.check_directories()
    keys = [key for key in directory if key[0] != METADATA_TOPIC]
    if isinstance(point, AtOffsets):
        for key in point.offsets:
            if key not in directory or key[0] == METADATA_TOPIC:
                there = ", ".join(sorted({topic for topic, _ in keys}))[:500]
                raise OptionError(f"{point.origin}: no partition {name_of(key)} in the source; topics: {there}")
    surveys = {}
    for key in keys:
        # what is made from responses of admin APIs has the time of the copy
        ours = AtOffsets(offsets={}) if source.is_made(key[0]) else point
        survey = survey_log(directory[key], ours, end_offset=source.end_offset(key), advance=advance)
        wanted = ours.offsets.get(key) if isinstance(ours, AtOffsets) else None
        if survey.cut_offset >= survey.source_end and (wanted is None or wanted > survey.source_end):
            source.check_end(survey.log, survey.source_end)  # what is missing would be below the cut
        surveys[key] = survey
    if isinstance(point, AtOffsets):
        for key, offset in point.offsets.items():
            survey = surveys[key]
            if not survey.log_start_offset <= offset <= survey.source_end:
                what = f"offset {offset} of {name_of(key)} is not in the source"
                raise OptionError(f"{point.origin}: {what}: {survey.log_start_offset} to {survey.source_end}")
    elif not any(survey.kept_bytes for survey in surveys.values()):
        firsts = [each.first_timestamp for each in surveys.values() if each.first_timestamp is not None]
        oldest = f"the oldest record is of {time_text(min(firsts))}" if firsts else "it has no records"
        raise OptionError(f"{directory.url}: no record is as old as {time_text(point.time_ms)}; {oldest}")
    return surveys


def time_text(timestamp: int) -> str:
    """Return a time in ms since the epoch as ISO 8601 in UTC."""
    try:
        moment = datetime.datetime.fromtimestamp(timestamp / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_missing(source: Source, surveys: Mapping[TopicPartition, Survey]) -> dict[TopicPartition, Survey | None]:
    """Return the logs, with None for partitions between them, which Kafka does not accept as missing."""
    counts: dict[str, int] = {}
    for topic, partition in surveys:
        counts[topic] = max(counts.get(topic, source.partition_count(topic)), partition + 1)
    keys = [(topic, partition) for topic, count in counts.items() for partition in range(count)]
    return {key: surveys.get(key) for key in sorted(keys)}


def ids_of_topics(source: Source, surveys: Mapping[TopicPartition, Survey | None]) -> dict[str, uuid.UUID]:
    """Return the ids of the topics; new ones where the source has none. Raises LogError if they contradict."""
    ids: dict[str, list[uuid.UUID | None]] = {}
    for (topic, _), survey in surveys.items():
        ids.setdefault(topic, []).append(None if survey is None else survey.log.topic_id)
    return {topic: source.topic_id(topic, each) for topic, each in ids.items()}


def warnings_of(source: Source, surveys: Mapping[TopicPartition, Survey], point: RestorePoint) -> list[str]:
    """Return what a reader of the result should know about the source."""
    warnings = []
    for key, survey in surveys.items():
        if survey.unread is not None:
            warnings.append(f"{survey.name}: damaged above the cut, {survey.unread.what}; later markers are unknown")
        end = source.end_offset(key)
        if end is not None and survey.source_end < end:
            warnings.append(
                f"{survey.name}: the copy ends at offset {survey.source_end}, below the high watermark {end}"
            )
        if isinstance(point, AtTime) and not survey.has_timestamps:
            warnings.append(f"{survey.name}: records without timestamps are kept")
    if isinstance(point, AtTime) and all(each.cut_offset >= each.source_end for each in surveys.values()):
        warnings.append(f"nothing was cut: no record is later than {time_text(point.time_ms)}")
    described = None if source.manifest is None else source.manifest.cluster
    if source.cluster is None and described is not None and described.users:
        names = ", ".join(sorted({each.user for each in described.users}))[:500]
        warnings.append(f"users need new passwords, which brokers do not return: {names}")
    if source.cluster is not None:
        with_configs = [name for kind, name in source.cluster.configs if kind == "broker"]
    else:
        with_configs = list((described.broker_configs if described is not None else None) or ())
    if brokers := sorted(filter(None, with_configs)):
        warnings.append(f"dynamic configs of single brokers are not restored: {', '.join(brokers)[:500]}")
    if source.cluster is not None and source.cluster.kraft_version:
        warnings.append("the quorum was dynamic, and will be static: set controller.quorum.voters on all nodes")
    missing = [name_of(key) for key, survey in with_missing(source, surveys).items() if survey is None]
    if missing:
        warnings.append(f"partitions that the source does not have are empty: {', '.join(missing)[:500]}")
    topics = set() if source.cluster is None else source.cluster.topics.keys() - {topic for topic, _ in surveys}
    if unknown := sorted(topics - {METADATA_TOPIC}):
        warnings.append(f"topics of the metadata log that the source has no partition of: {', '.join(unknown)[:500]}")
    if source.manifest is not None and not source.manifest.complete:
        warnings.append("the copy is not complete: run kwire log pull again if the cluster exists")
    return warnings


@dataclass(slots=True, kw_only=True)
class RestoreRun:
    """Writes a directory. directory: its path. topic_ids: by name. replicas: the nodes of each partition."""

    source: Source
    files: FileSystem
    directory: str
    surveys: Mapping[TopicPartition, Survey | None]
    topic_ids: Mapping[str, uuid.UUID]
    changes: Changes
    replicas: Mapping[TopicPartition, Sequence[int]]
    options: RestoreOptions
    now_ms: int
    cluster_id: str = ""
    done: list[RestoredPartition] = field(default_factory=list)

    def write(self, advance: Callable[[int], None]) -> None:
        """Write all partitions and the nodes' own files. Raises LogError."""
        nodes = range(1, self.options.nodes + 1)
        properties = {node: MetaProperties.new(node, self.source.cluster_id) for node in nodes}
        self.cluster_id = properties[1].cluster_id
        properties = {node: dataclasses.replace(each, cluster_id=self.cluster_id) for node, each in properties.items()}
        for node in nodes:
            if self.options.nodes > 1:
                self.files.make_directory(self.node_directory(node))
        for key, survey in self.surveys.items():
            self.write_partition(key, survey, self.topic_ids[key[0]], advance)
        cluster = restored_cluster(
            self.source,
            self.surveys,
            self.replicas,
            self.topic_ids,
            {node: each.directory_id for node, each in properties.items()},
            largest_producer_id=max(
                [
                    self.changes.largest_producer_id,
                    *(each.largest_producer_id for each in self.surveys.values() if each),
                ]
            ),
            release=self.options.release,
        )
        cleaned = self.cleaned()
        for node in nodes:
            directory = self.node_directory(node)
            ours = {
                (each.topic, each.partition): (each.log_start_offset, each.log_end_offset)
                for each in self.done
                if node in each.nodes
            }
            properties[node].write(self.files, directory, self.now_ms)
            write_metadata_log(self.files, f"{directory}/{METADATA_DIRECTORY}", cluster, now_ms=self.now_ms)
            write_clean_checkpoints(self.files, directory, ours, cleaned)
            self.files.sync_directory(directory)

    def node_directory(self, node: int) -> str:
        """Return the log directory of a node."""
        return self.directory if self.options.nodes == 1 else f"{self.directory}/node-{node}"

    def cleaned(self) -> dict[TopicPartition, int]:
        """Return the first dirty offsets of the source, up to the cuts."""
        checkpoint = self.source.checkpoint(CLEANER_OFFSETS)
        cuts = {key: survey.cut_offset for key, survey in self.surveys.items() if survey is not None}
        return {key: min(offset, cuts[key]) for key, offset in checkpoint.items() if key in cuts}

    def write_partition(
        self, key: TopicPartition, survey: Survey | None, topic_id: uuid.UUID, advance: Callable[[int], None]
    ) -> None:
        """Write a partition on its first node, and copy its files to the others."""
        first, *others = self.replicas[key]
        path = path_inside(self.node_directory(first), name_of(key))
        base = 0
        if survey is not None:
            segments = survey.log.segments
            base = min(segments[0].base_offset, survey.cut_offset) if segments else survey.cut_offset
        new = NewLog(self.files, path, *key, first_offset=base, now_ms=self.now_ms, topic_id=topic_id)
        try:
            if survey is None:
                new.finish(log_start_offset=0, log_end_offset=0)
            else:
                write_partition(survey, self.changes.writes[key], new, now_ms=self.now_ms, advance=advance)
        finally:
            new.abandon()
        for node in others:
            self.copy(path, path_inside(self.node_directory(node), name_of(key)))
        writes = self.changes.writes.get(key, Writes())
        self.done.append(
            RestoredPartition(
                topic=key[0],
                partition=key[1],
                topic_id=render_uuid(topic_id),
                log_start_offset=0 if survey is None else survey.log_start_offset,
                log_end_offset=0 if survey is None else end_after(survey, writes),
                cut_offset=0 if survey is None else survey.cut_offset,
                source_end_offset=0 if survey is None else survey.source_end,
                size_bytes=new.size_bytes,
                nodes=list(self.replicas[key]),
            )
        )

    def copy(self, source: str, target: str) -> None:
        """Copy a finished partition to another node."""
        self.files.make_directory(target)
        for name in self.files.list(source):
            self.files.copy(f"{source}/{name}", f"{target}/{name}")
            with self.files.open(f"{target}/{name}") as file:
                file.sync()
        self.files.sync_directory(target)
