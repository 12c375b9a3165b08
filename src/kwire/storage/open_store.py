"""Open the store at a path or URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from kwire.storage.store import Store, open_files

__all__ = ["open_store"]


def open_store(
    url: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    opener: Callable[[str, Mapping[str, Any]], Store] = open_files,
) -> Store:
    """Open the store at a local path, `file://` URL or any other URL that fsspec supports.

    url: the prefix `tiered+` presents segments in tiered storage as files (`kwire.storage.tiered`).
    options: fsspec storage options. opener: of the store that has the objects of tiered storage.
    Raises LogError when the URL's driver is unknown or not installed.
    """
    text = os.fspath(url)
    if text.startswith("tiered+"):
        from kwire.storage.tiered.store import TieredStore

        return TieredStore(text, options or {}, opener)
    return open_files(text, options or {})
