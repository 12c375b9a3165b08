"""From the option `path` to log directories: globs, several paths, and no partition twice. Standard library only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from kwire.errors import LogError
from kwire.identifiers import TopicPartition
from kwire.log import LogDirectory, PartitionLog
from kwire.log.file_names import MARKED_DIRECTORY
from kwire.storage.cached_store import OpenStore
from kwire.storage.open_store import open_store

_MAGIC = re.compile(r"[*?\[{]")
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def open_logs(
    paths: Iterable[str], storage: Mapping[str, Any], opener: OpenStore = open_store, *, is_stream: bool = False
) -> dict[TopicPartition, PartitionLog]:
    """The partitions below all paths and globs.

    is_stream: topics may come later, so log directories of a broker that has none yet are fine.
    Raises LogError for a path without logs and for a partition twice.
    """
    found: dict[TopicPartition, PartitionLog] = {}
    places = [place for path in paths for place in expand_glob(path, storage, opener)]
    for place in places:
        may_be_empty = is_stream or len(places) > 1  # one of several disks
        directory = LogDirectory(place, opener=opener, may_be_empty=may_be_empty, **storage)
        for key, log in directory.partitions.items():
            if key in found:
                raise LogError(
                    f"{key[0]}-{key[1]} is here and in {found[key].url}; read such places one at a time", log.url
                )
            found[key] = log
    if places and not found and not is_stream:
        raise LogError("no partition in any of these log directories", ", ".join(places))
    return found


def expand_glob(path: str, storage: Mapping[str, Any], opener: OpenStore = open_store) -> list[str]:
    """The places that a path means, sorted: itself, or what matches `*`, `?`, `[ab]` and `{a,b}` in its components.

    Works on local paths and URLs; of a chained URL (`zip://*::/tmp/logs.zip`) the first part may hold a pattern. What
    a broker marked as deleted, stray or future is passed over, and so are files that are no segments. Raises LogError
    when nothing matches.
    """
    if not _MAGIC.search(path.partition("::")[0]) or ("://" not in path and os.path.exists(path)):
        return [path]
    found = {place for variant in _variants(path) for place in _matches(variant, storage, opener)}
    if not found:
        raise LogError("nothing matches this pattern", path)
    return sorted(found)


def expand_files(path: str, storage: Mapping[str, Any]) -> list[str]:
    """The files that a path means, sorted: itself, those in a directory, or what matches a pattern in its last part.

    Names that begin with a dot or an underscore are passed over, as Spark does. Raises LogError where nothing is.
    """
    if _MAGIC.search(path.partition("::")[0]) and not ("://" not in path and os.path.exists(path)):
        found = {place for variant in _variants(path) for place in _matches(variant, storage, any_file=True)}
        if not found:
            raise LogError("nothing matches this pattern", path)
        return sorted(found)
    store = open_store(path, storage)
    if store.is_file():
        return [path]
    names = [entry.name for entry in store.list("") if not entry.is_directory and entry.name[0] not in "._"]
    if not names:
        raise LogError("no files in this directory", path)
    return [store.url_of(name) for name in sorted(names)]


def _variants(path: str) -> Iterator[str]:
    """The path once for each of the alternatives in `{a,b}`."""
    alternatives = _ALTERNATIVES.search(path)
    if alternatives is None:
        yield path
        return
    for choice in alternatives[1].split(","):
        yield from _variants(path[: alternatives.start()] + choice + path[alternatives.end() :])


def _matches(
    path: str, storage: Mapping[str, Any], opener: OpenStore = open_store, *, any_file: bool = False
) -> list[str]:
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
    return [store.url_of(place) for place in below]
