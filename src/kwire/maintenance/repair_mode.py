"""Repair modes, in a module of their own that the command line can import cheaply."""

from __future__ import annotations

import enum

__all__ = ["Mode"]


class Mode(enum.StrEnum):
    """Whether valid batches after damaged ones are kept (SALVAGE) or cut off (TRUNCATE)."""

    SALVAGE = "salvage"
    TRUNCATE = "truncate"
