"""Libraries that kwire works without: the extra that installs each, and the error where one is missing.

    with needing("records as Arrow columns"):
        import pyarrow as pa

A block that imports a module of kwire which needs such a library works the same way.
"""

from __future__ import annotations

import importlib.util
import sys
from types import TracebackType

from kwire.errors import MissingExtra

__all__ = ["EXTRAS", "MissingExtra", "is_installed", "need", "needing"]

EXTRAS = {
    "antlr4": "registry",
    "cryptography": "encryption",
    "deltalake": "delta",
    "duckdb": "sql",
    "fsspec": "s3",
    "gssapi": "kerberos",
    "jsonschema": "registry",
    "numpy": "arrow",
    "proto_schema_parser": "registry",
    "pyarrow": "arrow",
    "pyiceberg": "iceberg",
    "pyspark": "spark",
    "rich": "cli",
    "typer": "cli",
    "urllib3": "registry",
    "ziglang": "compiler",
}
"""The extra that installs a library, by the name of its module."""


def is_installed(library: str) -> bool:
    """Return whether the module of a library is found. Does not import it."""
    if library in sys.modules:
        return sys.modules[library] is not None
    return importlib.util.find_spec(library) is not None


def need(*libraries: str, what: str, extra: str | None = None) -> None:
    """Raise MissingExtra for the first of these libraries that is not installed.

    what: the thing that needs them. extra: to install, if it is another than that of the library alone.
    """
    for library in libraries:
        if not is_installed(library):
            command = f"pip install 'kwire[{extra or EXTRAS[library]}]'"
            raise MissingExtra(f"{what}: needs {library}, which is not installed; {command}")


class needing:  # noqa: N801  # reads as a statement
    """A block that imports libraries, and raises MissingExtra if one is not installed. Arguments: as for `need`."""

    def __init__(self, what: str, extra: str | None = None) -> None:
        self._what, self._extra = what, extra

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        library = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
        if library in EXTRAS:
            try:
                need(library, what=self._what, extra=self._extra)
            except MissingExtra as missing:
                raise missing from None
