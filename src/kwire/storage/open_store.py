"""The store behind a path or URL: files where they are, or segments in tiered storage as if they were files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kwire.storage.store import Store, open_files

__all__ = ["open_store"]


def open_store(url: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Store:
    """The store at a local path, `file://` URL or any other URL fsspec knows (`options`: its storage options).

    `tiered+` in front of any of them: segments in tiered storage there, see kwire.storage.tiered.
    Raises LogError when the URL's driver is unknown or not installed.
    """
    text = os.fspath(url)
    if text.startswith("tiered+"):
        from kwire.storage.tiered.store import TieredStore

        return TieredStore(text, options or {})
    return open_files(text, options or {})
