"""Compaction of a log directory without a broker: as a preview, in place, or in a copy.

Like a broker, it compacts closed segments from the cleaner checkpoint to the last stable offset. Topic configs come
from the metadata log of the directory, if any (KRaft). Source: kafka.log.LogCleaner; settings of TopicConfig and
CleanerConfig.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.cleaner import Cleaner, CleanerStats, CleaningPlan
from kwire.log.cleaner.cleaning_pass import CleaningPass
from kwire.log.cleaner.cleaning_plan import make_plan
from kwire.log.cleaner.log_state import stored_state
from kwire.log.cleaner.offset_map import DEFAULT_LOAD_FACTOR, DEFAULT_MEMORY_BYTES, OffsetMap
from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
from kwire.log.files.file_names import parse_partition_directory
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.writing.log_config import SETTINGS as TOPIC_CONFIGS
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.new_directory import without_others
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.storage.driver_errors import NO_ROOM, system_error
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from kwire.storage.staged_directory import check_empty
from kwire.target_paths import path_inside

__all__ = ["Compaction", "OfflineSettings", "compact", "copy_logs", "preview", "stored_topic_configs"]

Chosen = Callable[[str, int], bool]
Advance = Callable[[int], None]
LOCK = ".lock"
MEMORY, LOAD_FACTOR = "log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.load.factor"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineSettings:
    """Topic configs, and settings of the offset map. config: of topics that are not in topic_configs."""

    config: LogConfig
    topic_configs: Mapping[str, LogConfig] = field(default_factory=dict)
    dedupe_buffer_bytes: int = DEFAULT_MEMORY_BYTES
    load_factor: float = DEFAULT_LOAD_FACTOR

    @classmethod
    def parse(
        cls, settings: Mapping[str, str], topic_configs: Mapping[str, Mapping[str, str]] | None = None
    ) -> OfflineSettings:
        """Parse topic configs, log.cleaner.dedupe.buffer.size and log.cleaner.io.buffer.load.factor.

        topic_configs: of single topics, as from stored_topic_configs(); settings override them. Defaults are
        cleanup.policy=compact and min.cleanable.dirty.ratio=0. Raises OptionError.
        """
        rest = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", **settings}
        try:
            memory = int(rest.pop(MEMORY, DEFAULT_MEMORY_BYTES))
            load_factor = float(rest.pop(LOAD_FACTOR, DEFAULT_LOAD_FACTOR))
        except ValueError as error:
            raise OptionError(f"{MEMORY}, {LOAD_FACTOR}: expected numbers: {error}") from None
        OffsetMap(memory, load_factor, secret=bytes(16))  # validates both
        return cls(
            config=LogConfig.parse(rest),
            topic_configs={name: LogConfig.parse({**own, **rest}) for name, own in (topic_configs or {}).items()},
            dedupe_buffer_bytes=memory,
            load_factor=load_factor,
        )

    def config_of(self, topic: str) -> LogConfig:
        """Return the configs of a topic."""
        return self.topic_configs.get(topic, self.config)


def stored_topic_configs(directory: LogDirectory) -> dict[str, dict[str, str]]:
    """Return topic configs by topic from the metadata log of the directory; {} without one.

    Configs that do not concern logs are omitted. Raises LogError, DecodeError if the metadata log cannot be read.
    """
    if (METADATA_TOPIC, 0) not in directory:
        return {}
    from kwire.log.topics import replay_cluster

    return {
        name: {key: value for key, value in configs.items() if key in TOPIC_CONFIGS}
        for (kind, name), configs in replay_cluster(directory).configs.items()
        if kind == "topic"
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Result of the compaction of a partition, or its preview.

    plan: before the first pass. clean_offset: records below are clean. stats: zero if nothing was done. problem: the
    error that ended it, if any; segments not compacted until then are unchanged.
    """

    topic: str
    partition: int
    plan: CleaningPlan
    clean_offset: int
    stats: CleanerStats
    problem: CorruptBatch | LogError | None = None


class _Progress:
    """Progress of one partition, in bytes of its log. A pass reads a log about twice."""

    def __init__(self, size_bytes: int, advance: Advance) -> None:
        self._size, self._done, self._advance = size_bytes, 0, advance

    def reached(self, read_bytes: int) -> None:
        """Report that read_bytes have been read."""
        self._to(min(read_bytes // 2, self._size))

    def finish(self) -> None:
        """Report the rest of the partition as done."""
        self._to(self._size)

    def _to(self, done: int) -> None:
        if done > self._done:
            self._advance(done - self._done)
            self._done = done


def preview(
    path: str, chosen: Chosen, settings: OfflineSettings, now_ms: int, advance: Advance = lambda size_bytes: None
) -> Iterator[Compaction]:
    """Yield what compaction would do to the chosen partitions, without writing.

    If the offset map cannot hold all keys, only the first pass is shown. advance: called with bytes of finished logs.
    Raises LogError, OptionError.
    """
    directory = LogDirectory(path)
    checkpoints = CleanerCheckpoints(FileSystem(), path)
    for (topic, partition), log in directory.items():
        if topic == METADATA_TOPIC or not chosen(topic, partition) or not log.segments:
            continue
        config = settings.config_of(topic)
        state = stored_state(log, config, now_ms)
        plan = make_plan(state, checkpoints.get((topic, partition)), now_ms)
        offset_map = OffsetMap(settings.dedupe_buffer_bytes, settings.load_factor, secret=os.urandom(16))
        work = CleaningPass(
            state, plan, offset_map, now_ms=now_ms, max_decompressed_bytes=DEFAULT_MAX_DECOMPRESSED_BYTES
        )
        problem, progress = None, _Progress(log.size_bytes, advance)
        try:
            if plan.is_due(config):
                for _ in work.build_map():
                    progress.reached(work.read_bytes)
                for group in work.groups():
                    for _ in work.clean(group):
                        progress.reached(work.read_bytes)
        except (CorruptBatch, LogError) as error:
            problem = error
        progress.finish()
        yield Compaction(
            topic=topic,
            partition=partition,
            plan=plan,
            clean_offset=work.end_offset,
            stats=work.stats if plan.is_due(config) else CleanerStats(),
            problem=problem,
        )


def compact(
    path: str, chosen: Chosen, settings: OfflineSettings, now_ms: int, advance: Advance = lambda size_bytes: None
) -> Iterator[Compaction]:
    """Compact the chosen partitions in place, holding the lock of the directory.

    They are opened and cleanly closed like by a broker; others are not touched. advance: called with bytes of finished
    logs. Raises LogError if the directory is in use or not usable.
    """
    sizes = [segment.size_bytes for key, log in LogDirectory(path).items() if chosen(*key) for segment in log.segments]
    need_space(FileSystem(), path, max(sizes, default=0))  # a cleaned segment is written beside the ones it replaces
    manager = LogManager.open(
        path,
        now_ms=now_ms,
        default_config=settings.config.replace(file_delete_delay_ms=0),
        configs={topic: config.replace(file_delete_delay_ms=0) for topic, config in settings.topic_configs.items()},
        only=chosen,
    )
    with manager:
        cleaner = Cleaner(
            manager.cleaner_checkpoints,
            dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
            load_factor=settings.load_factor,
        )
        for (topic, partition), log in sorted(manager.logs.items()):
            plan, stats, problem = cleaner.plan(log, now_ms), CleanerStats(), None
            progress = _Progress(log.size_bytes, advance)
            try:
                if plan.is_due(log.config):
                    stats = cleaner.clean_fully(log, now_ms, progress.reached)
            except (CorruptBatch, LogError) as error:
                if system_error(error) in NO_ROOM:
                    raise  # a full disk does not mean that this partition is damaged
                problem = error
            progress.finish()
            log.local.delete_due_files(now_ms)
            reached = cleaner.checkpoints.get((topic, partition))
            yield Compaction(
                topic=topic,
                partition=partition,
                plan=plan,
                clean_offset=plan.first_dirty_offset if reached is None else reached,
                stats=stats,
                problem=problem,
            )


def copy_logs(path: str, target: str, chosen: Chosen, *, metadata: bool = True) -> None:
    """Copy a log directory: its checkpoints, the chosen partitions, and with `metadata` the metadata log.

    Raises OptionError if target exists and is not empty, LogError.
    """
    files = FileSystem()
    check_empty(target)
    copied = {
        key: log for key, log in LogDirectory(path).items() if (metadata and key[0] == METADATA_TOPIC) or chosen(*key)
    }
    need_space(files, target, sum(log.directory_bytes for log in copied.values()))
    files.make_directory(target)
    for name in files.list(path):
        source, which = f"{path}/{name}", parse_partition_directory(name)
        if not files.is_directory(source):
            if name != LOCK:
                files.write_atomically(path_inside(target, name), without_others(name, files.read_all(source), copied))
        elif which in copied:
            directory = path_inside(target, name)
            files.make_directory(directory)
            for each in files.list(source):
                files.copy(f"{source}/{each}", path_inside(directory, each))
