"""Exceptions of PyIceberg, its catalogs and file systems, as those of kwire."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kwire.errors import KwireError, OptionError, TableError
from kwire.lake.table import CommitConflict, CommitRefused

UNREACHABLE = ("ConnectionError", "ConnectTimeout", "ProxyError", "SSLError")
REFUSED = ("UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError")

__all__ = ["as_table_errors", "need_pyiceberg"]


def need_pyiceberg() -> None:
    """Raise OptionError unless PyIceberg is installed."""
    try:
        import pyiceberg  # noqa: F401
    except ImportError:
        raise OptionError("Iceberg tables require PyIceberg: pip install 'kwire[iceberg]'") from None


@contextmanager
def as_table_errors(table: str) -> Iterator[None]:
    """Raise TableError instead of a library's exceptions, and CommitConflict for a commit that came too late."""
    try:
        yield
    except (KwireError, CommitConflict):
        raise
    except Exception as error:
        kind = type(error)
        text = str(error).strip().splitlines()
        what = text[0] if text else kind.__name__
        if kind.__name__ in ("CommitFailedException", "ValidationException"):
            raise CommitConflict(what) from error
        if kind.__module__.startswith("sqlalchemy") and "locked" in what:  # SQLite: another process is writing
            raise CommitConflict(what) from error
        if isinstance(error, ImportError):
            what += "; install what this catalog or store needs, such as pip install 'pyiceberg[s3fs,glue]'"
        if kind.__module__.startswith("requests.") and kind.__name__ in UNREACHABLE:
            what = f"the catalog cannot be reached: {_reason(error)}; check catalog.uri"
        if kind.__name__ in REFUSED or kind.__name__ == "OAuthError":
            reason = re.sub(r"^\w+: ", "", what)  # without the name of the server's exception
            what = f"the catalog refuses access: {reason}; check its credentials"
            raise CommitRefused(what, table) from error
        raise TableError(what, table) from error


def _reason(error: BaseException) -> str:
    """Return the innermost reason of a connection that failed, without objects' names."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)
