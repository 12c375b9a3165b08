"""Exceptions of deltalake as those of kwire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kwire.errors import KwireError, OptionError, TableError
from kwire.lake.table import CommitConflict

LONGEST = 500
UNSUPPORTED = "Unsupported table features"

__all__ = ["as_table_errors", "need_deltalake"]


def need_deltalake() -> None:
    """Raise OptionError unless deltalake is installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        raise OptionError("Delta tables require deltalake: pip install 'kwire[delta]'") from None


@contextmanager
def as_table_errors(table: str) -> Iterator[None]:
    """Raise TableError instead of a library's exceptions, and CommitConflict for a commit that came too late."""
    try:
        yield
    except (KwireError, CommitConflict):
        raise
    except Exception as error:
        # delta-rs puts causes on lines of their own, with arrows
        lines = [line.strip(" ↳├└─│\t") for line in str(error).splitlines()]
        what = ": ".join(filter(None, lines))[:LONGEST] or type(error).__name__
        if UNSUPPORTED in what:  # not a conflict, although delta-rs calls it a failed commit
            raise TableError(f"{what}; delta-rs does not write such tables, write with Spark", table) from error
        if type(error).__name__ == "CommitFailedError":
            raise CommitConflict(what) from error
        raise TableError(what, table) from error
