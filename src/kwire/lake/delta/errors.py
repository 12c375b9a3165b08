"""Exceptions of kwire for those that deltalake raises."""

from __future__ import annotations

from kwire.errors import TableError
from kwire.lake.data_files import without_colors
from kwire.lake.libraries import translating
from kwire.lake.table import CommitConflict

LONGEST = 500
UNSUPPORTED = "Unsupported table features"

__all__ = ["as_table_errors"]


def _table_error(error: Exception, table: str) -> Exception:
    """Return a TableError, or CommitConflict for a commit that came too late."""
    # delta-rs puts causes on lines of their own, with arrows, which are red also outside of a terminal
    lines = [line.strip(" ↳├└─│\t") for line in without_colors(str(error)).splitlines()]
    what = ": ".join(filter(None, lines))[:LONGEST] or type(error).__name__
    if UNSUPPORTED in what:  # not a conflict, although delta-rs calls it a failed commit
        return TableError(f"{what}; delta-rs does not write such tables, write with Spark", table)
    if type(error).__name__ == "CommitFailedError":
        return CommitConflict(what)
    return TableError(what, table)


as_table_errors = translating(_table_error)
