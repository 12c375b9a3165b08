"""Open a log directory for writing: its partitions, checkpoints and clean shutdown.

    meta.properties                    cluster, node and directory ids; created if missing
    .lock                              held while the directory is open
    .kafka_cleanshutdown               written by close(), removed by open(): the next open skips recovery (G-01)
    recovery-point-offset-checkpoint   per partition: records below are durable
    replication-offset-checkpoint      per partition: the high watermark
    cleaner-offset-checkpoint          per partition: records below are compacted; written by the cleaner
    log-start-offset-checkpoint        of partitions whose log start offset is inside their first segment

Kafka and kwire open each other's directories. One thread owns a LogManager, and nothing runs in the background: the
owner calls flush_due, write_checkpoints and apply_retention periodically.
Source: kafka.log.LogManager, ReplicaManager.checkpointHighWatermarks 3.9.1; rules F-01 to F-03, G-01, G-11, G-14.
"""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from kwire.errors import LogError, Malformed, OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
from kwire.log.files.file_names import LONGEST_NAME, MARKED_DIRECTORY, check_topic, parse_partition_directory
from kwire.log.writing.delayed_removal import DelayedRemoval
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.recovery import NO_CHECKPOINTS, PartitionCheckpoints
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_offset_checkpoint,
    render_clean_shutdown,
    render_offset_checkpoint,
)
from kwire.storage.directory_lock import DirectoryLock
from kwire.storage.file_system import FileSystem
from kwire.storage.meta_properties import MetaProperties

__all__ = ["LogManager"]

NO_LOGS = ("remote-log-index-cache",)


class LogManager:
    """An open log directory. Created by open().

    path: the directory. logs: the partitions, by topic and number. node_id, cluster_id, directory_id: of
    meta.properties; directory_id is "" if missing. was_clean: whether the last shutdown was clean. ignored: directories
    that are not opened. cleaner_checkpoints: the cleaner's progress.
    default_config, configs: defaults, and the configs of topics that have their own.
    """

    def __init__(self, path: str, file_system: FileSystem, default_config: LogConfig, now_ms: int) -> None:
        """Internal: use open()."""
        self.path, self._files, self.default_config = os.path.abspath(path), file_system, default_config
        self.configs: dict[str, LogConfig] = {}
        self.logs: dict[TopicPartition, PartitionWriter] = {}
        self.node_id, self.cluster_id, self.directory_id = -1, "", ""
        self.was_clean = False
        self.ignored: list[str] = []
        self._now_ms = now_ms
        self._partitions: defaultdict[str, set[int]] = defaultdict(set)  # of `logs`, by topic
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self._only: Callable[[str, int], bool] | None = None
        self._found_clean_shutdown: bytes | None = None
        self._removal = DelayedRemoval(file_system)  # of deleted partitions
        self._lock: DirectoryLock | None = None
        self.cleaner_checkpoints: CleanerCheckpoints

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        now_ms: int,
        file_system: FileSystem | None = None,
        default_config: LogConfig | None = None,
        configs: Mapping[str, LogConfig] | None = None,
        node_id: int | None = None,
        cluster_id: str | None = None,
        only: Callable[[str, int], bool] | None = None,
    ) -> LogManager:
        """Lock and open a log directory, creating it if necessary; recover it after a crash.

        configs: of topics that have their own. node_id, cluster_id: for a new directory, by default 1 and a random id;
        an existing directory must match them if given. only: selects the partitions to open; their controller opens
        the metadata log.
        Raises LogError for a directory in use, of another node, or with unknown subdirectories; OptionError.
        """
        manager = cls(os.fspath(path), file_system or FileSystem(), default_config or LogConfig(), now_ms)
        manager.configs, manager._only = dict(configs or {}), only
        if not manager._files.is_directory(manager.path):
            manager._files.make_directory(manager.path)
        manager._lock = DirectoryLock(manager.path)
        try:
            properties = manager._load_properties(node_id, cluster_id)
            manager.node_id, manager.cluster_id = properties.node_id, properties.cluster_id
            manager.directory_id = properties.directory_id
            manager._load_logs()
            manager.cleaner_checkpoints = CleanerCheckpoints(manager._files, manager.path)
        except BaseException:
            manager._give_up()
            raise
        return manager

    def __repr__(self) -> str:
        return f"LogManager({self.path!r}, {len(self.logs)} partitions)"

    def __enter__(self) -> LogManager:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close()

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"

    # ---- opening

    def _load_properties(self, node_id: int | None, cluster_id: str | None) -> MetaProperties:
        path = self._path(META_PROPERTIES)
        if not self._files.exists(path):
            properties = MetaProperties.new(node_id, cluster_id)
            properties.write(self._files, self.path, self._now_ms)
            return properties
        try:
            loaded = MetaProperties.parse(self._files.read_all(path))
        except Malformed as error:
            raise LogError(error.what, path) from error
        if node_id is not None and node_id != loaded.node_id:
            raise LogError(f"the directory belongs to node {loaded.node_id}, not to node {node_id}", path)
        if cluster_id is not None and cluster_id != loaded.cluster_id:
            raise LogError(f"the directory belongs to cluster {loaded.cluster_id}, not to {cluster_id}", path)
        return loaded

    def _load_logs(self) -> None:
        self.was_clean = self._files.exists(self._path(CLEAN_SHUTDOWN))
        if self.was_clean:
            self._found_clean_shutdown = self._files.read_all(self._path(CLEAN_SHUTDOWN))
            self._files.remove(self._path(CLEAN_SHUTDOWN))
            self._files.sync_directory(self.path)
        recovery_points = self._read_checkpoint(RECOVERY_POINTS)
        self._read_checkpoint(HIGH_WATERMARKS)
        log_starts = self._read_checkpoint(LOG_START_OFFSETS)
        for name in self._files.list(self.path):
            if not self._files.is_directory(self._path(name)) or name in NO_LOGS:
                continue
            marked = MARKED_DIRECTORY.fullmatch(name)
            which = parse_partition_directory(name)
            if self._only is not None and (which is None or not self._only(*which)):
                continue
            if marked is not None and marked["mark"] == "delete":
                self._removal.add(self._path(name), self._now_ms + self.default_config.file_delete_delay_ms)
            elif marked is not None or (which is not None and which[0] == METADATA_TOPIC):
                self.ignored.append(name)
            elif which is None:
                raise LogError("not named like a partition; move it out of the log directory", self._path(name))
            else:
                checkpoints = PartitionCheckpoints(
                    is_clean=self.was_clean,
                    log_start_offset=log_starts.get(which, 0),
                    recovery_point=recovery_points.get(which, 0),
                )
                self._open(*which, self._now_ms, checkpoints)

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Read a checkpoint; an unreadable one counts as empty (F-03)."""
        path = self._path(name)
        if not self._files.exists(path):
            return {}
        try:
            self._written[name] = parse_offset_checkpoint(self._files.read_all(path))
        except Malformed:
            return {}
        return dict(self._written[name])

    def _give_up(self) -> None:
        """Close after a failed open, leaving the directory as it was."""
        try:
            for log in self.logs.values():
                log.close() if self.was_clean else log.abandon()
            if self._found_clean_shutdown is not None:
                self._files.write_atomically(self._path(CLEAN_SHUTDOWN), self._found_clean_shutdown)
        finally:
            assert self._lock is not None
            self._lock.release()

    # ---- partitions

    def _open(
        self,
        topic: str,
        partition: int,
        now_ms: int,
        checkpoints: PartitionCheckpoints = NO_CHECKPOINTS,
        topic_id: uuid.UUID | None = None,
        sync: bool = True,
    ) -> PartitionWriter:
        """Open a partition, creating it if necessary, and add it to `logs`."""
        log = self.logs[topic, partition] = PartitionWriter.open(
            self._files,
            self._path(f"{topic}-{partition}"),
            topic,
            partition,
            self.config_of(topic),
            now_ms=now_ms,
            checkpoints=checkpoints,
            topic_id=topic_id,
            sync=sync,
        )
        self._partitions[topic].add(partition)
        return log

    def config_of(self, topic: str) -> LogConfig:
        """Return the configs of a topic."""
        return self.configs.get(topic, self.default_config)

    def set_config(self, topic: str, config: LogConfig | None) -> None:
        """Set the configs of a topic, None for the defaults; they apply to its open logs immediately."""
        if config is None:
            self.configs.pop(topic, None)
        else:
            self.configs[topic] = config
        for partition in self._partitions.get(topic, ()):
            self.logs[topic, partition].config = self.config_of(topic)

    def create(
        self,
        topic: str,
        partition: int,
        *,
        now_ms: int,
        topic_id: uuid.UUID | None = None,
        config: LogConfig | None = None,
        sync: bool = True,
    ) -> PartitionWriter:
        """Create a partition. config: of the topic. sync: False if sync_directory() is called before it is used.

        Raises OptionError for an invalid name or an existing partition.
        """
        check_topic(topic, partition)
        if (topic, partition) in self.logs or self._files.exists(self._path(f"{topic}-{partition}")):
            raise OptionError(f"partition {partition} of {topic!r} already exists")
        if config is not None and config is not self.config_of(topic):
            self.set_config(topic, config)
        if any((topic, partition) in offsets for offsets in self._written.values()):
            self.write_checkpoints()  # without the entries of a deleted partition of this name
        return self._open(topic, partition, now_ms, topic_id=topic_id, sync=sync)

    def sync_directory(self) -> None:
        """Make the creation and deletion of partitions durable.

        The partition.metadata of a partition created without sync may be lost in a crash of the machine: its topic's id
        has to be assigned again.
        """
        self._files.sync_directory(self.path)

    def reopen(self, topic: str, partition: int, *, now_ms: int, topic_id: uuid.UUID | None = None) -> PartitionWriter:
        """Recover a partition after a failed write or creation, as after a crash.

        Raises LogError if that fails too; the old log stays readable.
        """
        old = self.logs.get((topic, partition))
        checkpoints = NO_CHECKPOINTS
        if old is not None:
            checkpoints = PartitionCheckpoints(log_start_offset=old.log_start_offset, recovery_point=old.recovery_point)
        log = self._open(topic, partition, now_ms, checkpoints, topic_id)
        if old is not None:
            old.abandon()
        return log

    def delete(self, topic: str, partition: int, *, now_ms: int, sync: bool = True) -> None:
        """Delete a partition: its directory is renamed now and removed after file.delete.delay.ms.

        sync: False if sync_directory() is called afterwards.
        """
        marked = self._mark(topic, partition, "delete", sync=sync)
        self._removal.add(marked, now_ms + self.config_of(topic).file_delete_delay_ms)

    def set_aside(self, topic: str, partition: int) -> None:
        """Close a partition and keep its directory as NAME-PARTITION.ID-stray, as Kafka does with stray partitions."""
        self._mark(topic, partition, "stray")

    def _mark(self, topic: str, partition: int, mark: str, *, sync: bool = True) -> str:
        """Close a partition and mark its directory; return the new path. Raises OptionError if it is missing.

        Its entries stay in the checkpoints until these are written the next time, at the latest before a partition of
        the same name is created.
        """
        log = self.logs.pop((topic, partition), None)
        if log is None:
            raise OptionError(f"no partition {partition} of topic {topic!r}")
        self._partitions[topic].discard(partition)
        log.abandon()
        suffix = f"-{partition}.{uuid.uuid4().hex}-{mark}"
        marked = self._path(topic[: LONGEST_NAME - len(suffix)] + suffix)
        self._files.rename(log.directory, marked)
        if sync:
            self.sync_directory()
        self.cleaner_checkpoints.remove((topic, partition))
        return marked

    def truncate_to(self, topic: str, partition: int, offset: int, *, now_ms: int) -> bool:
        """Truncate a partition to offset, and checkpoint its recovery point immediately."""
        is_truncated = self.logs[topic, partition].truncate_to(offset, now_ms=now_ms)
        if is_truncated:
            self.write_checkpoints()
            self.cleaner_checkpoints.truncate((topic, partition), offset)
        return is_truncated

    # ---- periodic work

    def flush_due(self, now_ms: int, executor: Executor | None = None) -> None:
        """Sync rolled segments, and logs whose flush.ms has passed.

        executor: syncs rolled segments in the background; one thread is sufficient.
        """
        for log in self.logs.values():
            if now_ms - log.local.flushed_ms >= log.config.flush_ms:
                log.flush(now_ms=now_ms)
            else:
                log.flush_rolled(executor)

    def write_checkpoints(self) -> None:
        """Write the checkpoints of recovery points, high watermarks and log start offsets that have changed."""
        logs = self.logs
        self._write_checkpoint(RECOVERY_POINTS, {which: log.recovery_point for which, log in logs.items()})
        self._write_checkpoint(HIGH_WATERMARKS, {which: log.high_watermark for which, log in logs.items()})
        inside = {which: log for which, log in logs.items() if log.log_start_offset > log.segments[0].base_offset}
        self._write_checkpoint(LOG_START_OFFSETS, {which: log.log_start_offset for which, log in inside.items()})
        for log in logs.values():
            log.leader_epochs.flush()

    def _write_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        if self._only is not None:
            kept = {key: offset for key, offset in self._written.get(name, {}).items() if not self._only(*key)}
            offsets = kept | offsets
        if self._written.get(name) != offsets:
            self._files.write_atomically(self._path(name), render_offset_checkpoint(offsets))
            self._written[name] = offsets

    def apply_retention(self, now_ms: int) -> dict[TopicPartition, list[int]]:
        """Remove segments beyond retention, files and directories whose delay has passed, and idle producers.

        Returns the base offsets of the removed segments.
        """
        removed_segments = {}
        for which, log in self.logs.items():
            removed = log.delete_old_segments(now_ms)
            if removed:
                removed_segments[which] = removed
            log.local.delete_due_files(now_ms)
            log.producers.remove_expired(now_ms)
        if self._removal.is_due(now_ms):
            self.write_checkpoints()  # a partition that they name without a directory counts as lost
            self._removal.remove_due(now_ms)
        return removed_segments

    def take_clock_back(self, ms: int) -> None:
        """Keep the delay of deleted partitions when the clock of the caller goes back."""
        self._removal.bring_forward(ms)

    # ---- closing

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Flush and close all logs, write the checkpoints and finally the clean shutdown file; release the lock.

        clean=False leaves the directory as a crash would. broker_epoch: of KRaft, if any.
        """
        if self._lock is None:
            return
        try:
            if clean:
                for log in self.logs.values():
                    log.close()
                self.write_checkpoints()
                clean_shutdown = (
                    render_clean_shutdown(broker_epoch) if self._only is None else self._found_clean_shutdown
                )
                if clean_shutdown is not None:
                    self._files.write_atomically(self._path(CLEAN_SHUTDOWN), clean_shutdown)
            else:
                for log in self.logs.values():
                    log.abandon()
        finally:
            self._lock.release()
            self._lock = None
