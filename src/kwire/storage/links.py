"""Symbolic links in a log directory: those that lead out of it, and those that make two partitions of one directory.

A directory from somewhere else, such as an unpacked archive, may have links in place of its files: whoever truncates,
writes or replaces what they point to changes files of this machine. Kafka itself makes no links. A cluster whose
partitions are on other disks by links sets KWIRE_FOLLOW_LINKS=1.

A link to another partition's directory is never right: Kafka opens the files as two logs and appends to both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kwire.errors import LogError

__all__ = ["FOLLOW_LINKS", "explain_shared", "linked_twice", "refuse_links", "refuse_outside_links"]

FOLLOW_LINKS = "KWIRE_FOLLOW_LINKS"


def refuse_links(directory: str) -> None:
    """Raise LogError for links with which a log directory may not be changed. Cost: one listing of each directory."""
    for link, other in linked_twice([directory]).items():
        raise LogError(explain_shared(other), link)
    refuse_outside_links(directory)


def refuse_outside_links(directory: str) -> None:
    """Raise LogError for a link in a log directory, or in a directory of it, whose target is outside.

    With KWIRE_FOLLOW_LINKS=1 links are followed. Cost: one listing of each directory.
    """
    if os.environ.get(FOLLOW_LINKS) == "1":
        return
    root = os.path.realpath(directory)
    for link in _links(root):
        target = os.path.realpath(link)
        if target != root and not target.startswith(root + os.sep):
            raise LogError(
                f"a symbolic link to {target}, outside of the log directory, where files would be changed; "
                f"replace it by what it points to, or set {FOLLOW_LINKS}=1 in the environment to follow links",
                link,
            )


def linked_twice(roots: Iterable[str]) -> dict[str, str]:
    """Return the links in log directories that are one of these directories, or another directory in them, too.

    Links with the path of the other directory: a directory itself, or the first of several links to one place.
    """
    first_paths: dict[tuple[int, int], str] = {}
    shared = {}
    paths = [path for root in roots for path in (root, *_directories(root))]
    for path in sorted(paths, key=lambda path: (os.path.islink(path), path)):
        try:
            status = os.stat(path)
        except OSError:
            continue  # removed meanwhile
        other = first_paths.setdefault((status.st_dev, status.st_ino), path)
        if other != path and os.path.islink(path):
            shared[path] = other
    return shared


def explain_shared(other: str) -> str:
    """Return what is wrong with a link that is the directory of another path, for a message."""
    return (
        f"a symbolic link to {other}: two directories with the same files; remove the link, or copy what it points to"
    )


def _directories(root: str) -> list[str]:
    """Return the paths of the directories in a directory, links to directories included."""
    try:
        with os.scandir(root) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []  # whoever needs it reports that it cannot be read


def _links(root: str) -> Iterator[str]:
    """Yield the links in a directory and one level below."""
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        yield entry.path
                    elif folder == root and entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue  # whoever needs it reports that it cannot be read
