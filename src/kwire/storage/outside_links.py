"""Symbolic links that lead out of a log directory, which nobody has to follow to change files.

A directory from somewhere else, such as an unpacked archive, may have links in place of its files: whoever truncates,
writes or replaces what they point to changes files of this machine. Kafka itself makes no links. A cluster whose
partitions are on other disks by links sets KWIRE_FOLLOW_LINKS=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kwire.errors import LogError

__all__ = ["FOLLOW_LINKS", "refuse_outside_links"]

FOLLOW_LINKS = "KWIRE_FOLLOW_LINKS"


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
