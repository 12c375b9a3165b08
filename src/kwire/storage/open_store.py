"""Open the store at a path or URL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kwire.storage.store import Store, open_files

__all__ = ["open_store"]


def open_store(url: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Store:
    """Open the store at a local path, `file://` URL or any other URL that fsspec supports.

    url: the prefix `tiered+` presents segments in tiered storage as files (`kwire.storage.tiered`).
    options: fsspec storage options.
    Raises LogError when the URL's driver is unknown or not installed.
    """
    text = os.fspath(url)
    if text.startswith("tiered+"):
        from kwire.storage.tiered.store import TieredStore

        return TieredStore(text, options or {})
    return open_files(text, options or {})
