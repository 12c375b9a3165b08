"""Resolve paths, globs and URLs to logs and files. Standard library only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from kwire.errors import LogError, OptionError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import MARKED_DIRECTORY
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.storage.cached_store import OpenStore
from kwire.storage.open_store import open_store

__all__ = ["StorageOptions", "available_topics", "check_selection", "expand_files", "expand_glob", "open_logs"]

StorageOptions = Mapping[str, Any]
"""Arguments of a file system driver, whose types the driver defines."""

_MAGIC = re.compile(r"[*?\[{]")
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def open_logs(
    paths: Iterable[str], storage: StorageOptions, opener: OpenStore = open_store, *, is_stream: bool = False
) -> dict[TopicPartition, PartitionLog]:
    """Open the partitions in all paths and globs.

    is_stream: accept the log directory of a broker without topics, which may be created later.
    Raises LogError for a path without logs, and for a partition in two of them.
    """
    logs: dict[TopicPartition, PartitionLog] = {}
    urls = [url for path in paths for url in expand_glob(path, storage, opener)]
    for url in urls:
        may_be_empty = is_stream or len(urls) > 1  # one of several disks
        directory = LogDirectory(url, opener=opener, may_be_empty=may_be_empty, **storage)
        for key, log in directory.partitions.items():
            if key in logs:
                raise LogError(
                    f"duplicate of {key[0]}-{key[1]} in {logs[key].url}; read these directories separately", log.url
                )
            logs[key] = log
    if urls and not logs and not is_stream:
        raise LogError("no partitions in these log directories", ", ".join(urls))
    return logs


def available_topics(logs: Iterable[TopicPartition]) -> str:
    """Render `available topics: ...`, for errors about missing topics; at most 500 characters."""
    return f"available topics: {', '.join(sorted({topic for topic, _ in logs}))[:500]}"


def check_selection(logs: Iterable[TopicPartition], topics: Sequence[str], partitions: Sequence[int]) -> None:
    """Raise OptionError for a topic pattern (*, ?) that matches no topic, or a number that no selected topic has."""
    keys = list(logs)
    names = {topic for topic, _ in keys}
    for pattern in topics:
        if not any(fnmatchcase(topic, pattern) for topic in names):
            raise OptionError(f"no topic matches '{pattern}'{did_you_mean(pattern, names)}; {available_topics(keys)}")
    numbers = {number for topic, number in keys if not topics or any(fnmatchcase(topic, pattern) for pattern in topics)}
    for number in partitions:
        if number not in numbers:
            raise OptionError(
                f"no selected topic has partition {number}; the highest is {max(numbers, default='none')}"
            )


def expand_glob(path: str, storage: StorageOptions, opener: OpenStore = open_store) -> list[str]:
    """Expand `*`, `?`, `[ab]` and `{a,b}` in the components of a path or URL; return sorted matches.

    A path without a pattern is returned unchanged. In a chained URL (`zip://*::/tmp/logs.zip`) the first part may have
    a pattern. Directories that a broker marked as deleted, stray or future are skipped, and so are files other than
    segments. Raises LogError if nothing matches.
    """
    return _expand(path, storage, opener) or [path]


def expand_files(path: str, storage: StorageOptions) -> list[str]:
    """Expand a path to files: the file, the files of a directory, or the matches of a pattern; sorted.

    Names that start with a dot or an underscore are skipped, as in Spark. Raises LogError for no files.
    """
    if files := _expand(path, storage, any_file=True):
        return files
    store = open_store(path, storage)
    if store.is_file():
        return [path]
    names = [entry.name for entry in store.list("") if not entry.is_directory and entry.name[0] not in "._"]
    if not names:
        raise LogError("no files in this directory", path)
    return [store.url_of(name) for name in sorted(names)]


def _expand(path: str, storage: StorageOptions, opener: OpenStore = open_store, *, any_file: bool = False) -> list[str]:
    """Return the sorted matches of a path with a pattern; [] for any other path. Raises LogError if nothing matches."""
    if not _MAGIC.search(path.partition("::")[0]) or ("://" not in path and os.path.exists(path)):
        return []
    urls = {url for variant in _variants(path) for url in _matches(variant, storage, opener, any_file=any_file)}
    if not urls:
        raise LogError("nothing matches this pattern", path)
    return sorted(urls)


def _variants(path: str) -> Iterator[str]:
    """Yield a path for each of the alternatives in `{a,b}`."""
    alternatives = _ALTERNATIVES.search(path)
    if alternatives is None:
        yield path
        return
    for choice in alternatives[1].split(","):
        yield from _variants(path[: alternatives.start()] + choice + path[alternatives.end() :])


def _matches(path: str, storage: StorageOptions, opener: OpenStore, *, any_file: bool) -> list[str]:
    head, separator, tail = path.partition("::")
    scheme, mark, rest = head.rpartition("://")
    parts = rest.split("/")
    fixed = next((n for n, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    base = "/".join(parts[:fixed]) or ("/" if rest.startswith("/") else "" if mark else ".")
    store = opener(f"{scheme}{mark}{base}{separator}{tail}", storage)
    below = [""]
    for depth, part in enumerate(parts[fixed:]):
        is_last = fixed + depth == len(parts) - 1
        if not part:
            continue  # a slash at the end, or two in a row
        below = [
            f"{folder}/{entry.name}" if folder else entry.name
            for folder in below
            for entry in store.list(folder)
            if fnmatchcase(entry.name, part)
            and not MARKED_DIRECTORY.fullmatch(entry.name)
            and (not any_file or is_last != entry.is_directory)
            and (entry.is_directory or (is_last and (any_file or entry.name.endswith(".log"))))
        ]
    return [store.url_of(name) for name in below]
