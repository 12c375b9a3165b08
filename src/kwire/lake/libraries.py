"""The libraries of the formats: whether they are installed, and their exceptions as those of kwire."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from kwire.errors import KwireError, OptionError
from kwire.lake.table import CommitConflict

__all__ = ["need_library", "translating"]


def need_library(module: str, name: str, format: str) -> None:
    """Raise OptionError unless the library of a format is installed."""
    try:
        importlib.import_module(module)
    except ImportError:
        raise OptionError(f"{format.capitalize()} tables require {name}: pip install 'kwire[{format}]'") from None


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
