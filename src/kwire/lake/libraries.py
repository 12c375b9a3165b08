"""Exceptions of kwire for those that the formats' libraries raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from kwire.errors import KwireError
from kwire.lake.table import CommitConflict

__all__ = ["translating"]


def translating(translate: Callable[[Exception, str], Exception]) -> Callable[[str], AbstractContextManager[None]]:
    """Return a context manager for a table's name that raises translate(error, name) instead of a library's errors."""

    @contextmanager
    def as_table_errors(table: str) -> Iterator[None]:
        try:
            yield
        except (KwireError, CommitConflict):
            raise
        except Exception as error:
            raise translate(error, table) from error

    return as_table_errors
