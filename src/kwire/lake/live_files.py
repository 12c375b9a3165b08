"""Data files that a table has, to read their rows and to replace them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

__all__ = ["LiveFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A data file of a table, as of its last refresh.

    rows: in the file, also those that were deleted in a file of their own. partition: equal for the files of one
    partition, and of one partitioning. deletes: what deletes rows of it; a file with others is another one. entry: of
    the format's library.
    """

    path: str
    size_bytes: int
    rows: int
    partition: Hashable
    deletes: frozenset[str]
    entry: Any
