"""Tiered storage as a log directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kwire.log.log_directory import LogDirectory
from kwire.log.tiered.store import SCHEME

__all__ = ["open_tiered"]


def open_tiered(
    url: str | os.PathLike[str], *, private_keys: Mapping[str, str] | None = None, **storage_options: Any
) -> LogDirectory:
    """The partitions in tiered storage below a local path or URL, as a LogDirectory: read, read_arrow and all else.

    url: the bucket with the plugin's `key.prefix`, if that is a folder. private_keys: PEM files by the ids of the key
    pairs, for encrypted segments. storage_options go to the driver of the URL.
    Raises LogError, OptionError.
    """
    text = SCHEME + os.fspath(url).removeprefix(SCHEME)
    if private_keys:
        text += "#" + "&".join(f"{key_id}={path}" for key_id, path in private_keys.items())
    return LogDirectory(text, **storage_options)
