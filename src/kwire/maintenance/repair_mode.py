"""The two ways to repair a log. Apart from the rest: the command line names them before it loads anything."""

from __future__ import annotations

import enum

__all__ = ["Mode"]


class Mode(enum.StrEnum):
    """What becomes of good batches behind bad ones."""

    SALVAGE = "salvage"
    TRUNCATE = "truncate"
