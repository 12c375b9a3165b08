"""Where a file goes whose name came from outside: a definition, a log directory, an archive, a broker."""

from __future__ import annotations

import os

from kwire.errors import UnsafePath

__all__ = ["path_inside"]


def path_inside(folder: str | os.PathLike[str], name: str) -> str:
    """The path of `name` below `folder`. Every command asks it before it writes a file that its input names.

    name: relative, with `/` between its parts. Existing symbolic links are followed before the path is
    checked; the folder itself may be one.
    Raises UnsafePath when the path would be outside the folder, or is not one that can be made.
    """
    parts = name.split("/")
    if "\0" in name or any(part in ("", os.curdir, os.pardir) for part in parts):
        raise UnsafePath(f"{name[:300]!r} is not a name that a file below this folder can have", os.fspath(folder))
    path = os.path.join(folder, *parts)
    root = os.path.realpath(folder)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        raise UnsafePath(f"{name[:300]!r} leads outside this folder through a symbolic link", os.fspath(folder))
    return path
