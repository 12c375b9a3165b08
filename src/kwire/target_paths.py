"""Files to write: paths whose names come from outside, such as definitions or brokers; files that appear whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from kwire.errors import OptionError, UnsafePath

__all__ = ["path_inside", "whole_file", "write_whole"]


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


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that has its former bytes, or is missing, until the block has ended without an error.

    It is written beside its place, with `.part` after its name, and renamed. Links are followed; a device or pipe is
    written itself. Raises OptionError if it cannot be written, such as on a full disk.
    """
    target = os.path.realpath(path)
    part = f"{target}.part"
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as stream:
                yield stream
            return
        try:
            with open(part, "wb") as stream:
                yield stream
            if os.path.exists(target):
                shutil.copymode(target, part)
            os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
    except OSError as error:
        raise OptionError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from error


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file as whole_file does: pages, modules, messages. Raises OptionError."""
    with whole_file(path) as stream:
        stream.write(data)
