"""Paths of files whose names come from outside: from definitions, log directories, archives, brokers."""

from __future__ import annotations

import os

from kwire.errors import UnsafePath

__all__ = ["path_inside"]


def path_inside(folder: str | os.PathLike[str], name: str) -> str:
    """Return the path of `name` below `folder`; called before every write to a name from the input.

    name: relative, with `/` as separator. Symbolic links are resolved before the check; the folder itself may be one.
    Raises UnsafePath if the path is outside of the folder, or not a valid path.
    """
    parts = name.split("/")
    if "\0" in name or any(part in ("", os.curdir, os.pardir) for part in parts):
        raise UnsafePath(f"{name[:300]!r} is not a valid file name in this folder", os.fspath(folder))
    path = os.path.join(folder, *parts)
    root = os.path.realpath(folder)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        raise UnsafePath(f"{name[:300]!r} is outside of this folder, through a symbolic link", os.fspath(folder))
    return path
