"""Read a broker's log directory: its partitions and checkpoints.

Supported paths: a log directory or any directory of partition directories, one partition's directory, or one `.log`
file; local or any URL that fsspec supports. Nothing is written and `.lock` is ignored, so a running broker does not
matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from kwire.errors import LogError, Malformed
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import SEGMENT_FILE, Ignored, explain_directory, is_capture, parse_partition_directory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.readable_log import LogSource
from kwire.storage.cached_store import OpenStore, StoreCache
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_offset_checkpoint,
    parse_properties,
)
from kwire.storage.links import explain_shared, linked_twice
from kwire.storage.store import Entry, Store, parent_of

T = TypeVar("T")

SEARCHED_DIRECTORIES = 8

# What a broker writes beside partitions when it starts, and in each of them.
KAFKAS_FILES = frozenset(
    {CLEAN_SHUTDOWN, CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, META_PROPERTIES, RECOVERY_POINTS}
)
PARTITIONS_FILES = frozenset({LEADER_EPOCHS, PARTITION_METADATA})

EXPECTED = (
    "expected a Kafka log directory (with directories like orders-0), a partition's directory "
    "(with files like 00000000000000000000.log) or one .log file"
)


class LogDirectory(LogSource[PartitionLog]):
    """The partitions at a path or URL: a mapping from (topic, partition) to PartitionLog, sorted.

    The directory is listed at construction, and each partition on first use. Create a new object, or call reopened(),
    to see newer topics and segments.

    url: of the directory, absolute. ignored: directories that are not logs and unreadable checkpoints, with reasons.
    shared: names of partition directories that are links to another directory here, with its path.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        opener: OpenStore | None = None,
        may_be_empty: bool = False,
        may_share: bool = False,
        **storage_options: Any,
    ) -> None:
        """path: a local path, or a URL for fsspec with storage_options.

        opener: StoreCache.open; by default one that caches what is read of remote files, but no listings.
        may_be_empty: accept the directory of a broker that has no topics yet. may_share: accept partition directories
        that are links to another one here, which verification reports.
        Raises LogError if path does not exist, cannot be read, or contains no logs.
        """
        self.storage_options = storage_options
        self._open_store: OpenStore = opener or StoreCache(keeps_listings=False).open
        self._may_share = may_share
        self.ignored: list[Ignored] = []
        self.shared: dict[str, str] = {}
        text = os.fspath(path)
        store = self._open_store(text, storage_options)
        only: int | None = None
        if store.is_file():
            store, only = self._beside_file(store)
        self.url = store.url
        entries = store.list("")
        self._store = store
        self._names = {entry.name for entry in entries if not entry.is_directory}
        if any(_is_log(entry) for entry in entries):
            self.partitions = self._one_partition(store, only)
        else:
            self.partitions = self._all_partitions(store, entries)
            if KAFKAS_FILES.isdisjoint(self._names) and not any(
                self._is_partition(log.directory) for log in self.partitions.values()
            ):
                self.partitions = {}  # "polkit-1" is a name that a partition could have
        if not self.partitions and not (may_be_empty and not KAFKAS_FILES.isdisjoint(self._names)):
            inside = self._log_directories_inside(entries)
            hint = f"; use {inside[0]}" if len(inside) == 1 else f"; use one of {', '.join(inside)}" if inside else ""
            raise LogError(f"no Kafka logs: {EXPECTED}; found {_describe(entries)}{hint}", self.url)

    def reopened(self) -> LogDirectory:
        """Return the same directory with a new listing."""
        return LogDirectory(self.url, opener=self._open_store, may_share=self._may_share, **self.storage_options)

    # ---- the directory's own files

    @cached_property
    def meta_properties(self) -> dict[str, str]:
        """Properties in meta.properties: cluster.id, node.id (broker.id in version 0), directory.id; {} if missing."""
        return self._read(META_PROPERTIES, parse_properties, {})

    @property
    def is_clean_shutdown(self) -> bool:
        """Whether the broker was shut down cleanly and has not been started since (G-01)."""
        return CLEAN_SHUTDOWN in self._names

    def read_file(self, name: str) -> bytes | None:
        """Return the contents of one of the directory's own files, None if it is missing. Raises LogError."""
        return self._store.read_all(name) if name in self._names else None

    def _read(self, name: str, parse: Callable[[bytes], T], default: T) -> T:
        """Read one of the directory's files; an unreadable one counts as empty (F-03) and is listed in `ignored`."""
        if name not in self._names:
            return default
        try:
            return parse(self._store.read_all(name))
        except (LogError, Malformed) as error:
            self.ignored.append(Ignored(name=name, reason=f"unreadable: {error}"))
            return default

    def _is_partition(self, directory: str) -> bool:
        """Return whether a directory has a file of Kafka's; its name alone is not enough."""
        try:
            entries = self._store.list(directory)
        except LogError:
            return True  # reading it raises a better error
        return any(SEGMENT_FILE.fullmatch(each.name) or each.name in PARTITIONS_FILES for each in entries)

    def _log_directories_inside(self, entries: list[Entry]) -> list[str]:
        """Return log directories among the first few subdirectories, in case the parent was given by mistake."""
        directories = []
        for entry in [entry for entry in entries if entry.is_directory][:SEARCHED_DIRECTORIES]:
            try:
                inside = self._store.list(entry.name)
            except LogError:
                continue
            named = [each.name for each in inside if each.is_directory and parse_partition_directory(each.name)]
            if any(self._is_partition(f"{entry.name}/{name}") for name in named):
                directories.append(self._store.url_of(entry.name))
        return directories

    # ---- the three kinds of path

    def _all_partitions(self, store: Store, entries: list[Entry]) -> dict[TopicPartition, PartitionLog]:
        none: dict[TopicPartition, int] = {}
        checkpoints = [self._read(name, parse_offset_checkpoint, none) for name in (LOG_START_OFFSETS, HIGH_WATERMARKS)]
        partitions = {}
        for entry in entries:
            if not entry.is_directory:
                continue
            key = parse_partition_directory(entry.name)
            if key is None:
                self.ignored.append(Ignored(name=entry.name, reason=explain_directory(entry.name)))
                continue
            partitions[key] = _partition_log(store, entry.name, key, checkpoints)
        self._find_shared(store, entries)
        return dict(sorted(partitions.items()))

    def _find_shared(self, store: Store, entries: list[Entry]) -> None:
        """Find the partition directories that are links to another directory here. Raises LogError."""
        if not any(each.is_link and each.is_directory for each in entries):
            return
        for path, other in linked_twice([store.url]).items():
            name = os.path.basename(path)
            if parse_partition_directory(name) is None:
                continue  # is ignored anyway
            if not self._may_share:
                raise LogError(explain_shared(other), path)
            self.shared[name] = other

    def _one_partition(self, store: Store, only: int | None) -> dict[TopicPartition, PartitionLog]:
        """Open a partition's own directory; its checkpoints, if they exist, are in the parent."""
        above = parent_of(store.url)
        name = above[1] if above else "log"
        key = parse_partition_directory(name) or (name, 0)
        checkpoints: list[dict[TopicPartition, int]] = []
        for checkpoint in (LOG_START_OFFSETS, HIGH_WATERMARKS):
            try:
                data = self._open_store(above[0], self.storage_options).read_all(checkpoint) if above else b""
                checkpoints.append(parse_offset_checkpoint(data))
            except (LogError, Malformed):
                checkpoints.append({})
        return {key: _partition_log(store, "", key, checkpoints, only)}

    def _beside_file(self, store: Store) -> tuple[Store, int]:
        """Return the directory of one `.log` file, and the file's base offset."""
        above = parent_of(store.url)
        match = SEGMENT_FILE.fullmatch(above[1]) if above else None
        if above is None or match is None or match["kind"] != "log" or match["suffix"]:
            hint = "; `kwire capture FILE --logs DIR` makes one of a packet capture" if is_capture(store.url) else ""
            raise LogError(f"not a segment: {EXPECTED}{hint}", store.url)
        return self._open_store(above[0], self.storage_options), int(match["base"])


def open_tiered(
    url: str | os.PathLike[str], *, private_keys: Mapping[str, str] | None = None, **storage_options: Any
) -> LogDirectory:
    """Open tiered storage at a local path or URL as a LogDirectory.

    url: the bucket, with the plugin's `key.prefix` if that is a folder. private_keys: PEM files by key pair id, for
    encrypted segments. storage_options: for the URL's driver.
    Raises LogError, OptionError.
    """
    from kwire.storage.tiered.store import SCHEME

    text = SCHEME + os.fspath(url).removeprefix(SCHEME)
    if private_keys:
        text += "#" + "&".join(f"{key_id}={path}" for key_id, path in private_keys.items())
    return LogDirectory(text, **storage_options)


def _partition_log(
    store: Store,
    directory: str,
    key: TopicPartition,
    checkpoints: Sequence[Mapping[TopicPartition, int]],
    only: int | None = None,
) -> PartitionLog:
    """Return a partition's log. checkpoints: log start offsets, high watermarks."""
    start, watermark = (offsets.get(key) for offsets in checkpoints)
    return PartitionLog(
        store,
        directory,
        *key,
        log_start_checkpoint=start,
        high_watermark_checkpoint=watermark,
        only_base_offset=only,
    )


def _is_log(entry: Entry) -> bool:
    match = SEGMENT_FILE.fullmatch(entry.name)
    return match is not None and match["kind"] == "log" and not entry.is_directory


def _describe(entries: list[Entry]) -> str:
    """Summarize the entries of a directory for a message."""
    if not entries:
        return "an empty directory"
    names = [entry.name + "/" * entry.is_directory for entry in entries[:5]]
    return ", ".join(names) + (f" and {len(entries) - 5} more" if len(entries) > 5 else "")
