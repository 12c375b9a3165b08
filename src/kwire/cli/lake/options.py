"""Options that several commands of `kwire lake` have, and the tables that they name."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.errors import OptionError
from kwire.url_passwords import holds_password

if TYPE_CHECKING:
    from kwire.lake import LakeTable

__all__ = [
    "CatalogProperties",
    "Isolation",
    "IsolationChoice",
    "Message",
    "Mode",
    "NamesChoice",
    "ReaderSchema",
    "RecursiveDepth",
    "RegistryConfig",
    "RegistryPath",
    "StorageOptions",
    "Subject",
    "TableName",
    "existing_table",
    "open_lake_table",
]


class BadValues(enum.StrEnum):
    """Values of --mode."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DEADLETTER = "deadletter"


class Names(enum.StrEnum):
    """Values of --names."""

    ANY = "any"
    STRICT = "strict"


class Isolation(enum.StrEnum):
    """Values of --isolation."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


TableName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="Iceberg table NAMESPACE.NAME, or the path or URL of a Delta table."),
]
CatalogProperties = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog",
        metavar="NAME=VALUE",
        help="Iceberg: property of the catalog by PyIceberg's name, such as uri=sqlite:///catalog.db. Repeatable. "
        "Secrets belong in ~/.pyiceberg.yaml or PYICEBERG_CATALOG__DEFAULT__... variables.",
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="NAME=VALUE",
        help="Delta: option of the object store by delta-rs' name, such as aws_region=eu-central-1. Repeatable. "
        "Secrets belong in environment variables.",
    ),
]
RegistryPath = Annotated[
    str | None,
    typer.Option(
        metavar="URL|PATH",
        help="Decode values with a schema registry: its URL, a folder of schemas, or a log directory or kafka:// "
        "URL with the topic _schemas.",
    ),
]
RegistryConfig = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Settings of the registry as NAME=VALUE lines, such as basic.auth.user.info."),
]
Mode = Annotated[
    BadValues | None,
    typer.Option(
        help="Values that cannot be decoded: failfast (default) fails, permissive makes them null, deadletter adds "
        "columns with the error and the bytes."
    ),
]
Subject = Annotated[
    str | None, typer.Option(metavar="NAME", help="Subject of the values, by default TOPIC-value of one topic.")
]
ReaderSchema = Annotated[
    str | None,
    typer.Option(metavar="SCHEMA", help="Reader's schema: latest (default), union, an id, or the file of one."),
]
Message = Annotated[
    str | None, typer.Option(metavar="NAME", help="Protobuf message, if it is not the first of its schema.")
]
NamesChoice = Annotated[
    Names | None,
    typer.Option(
        help="Names of Avro's records: any (default), or strict: a record of another full name is a bad value."
    ),
]
RecursiveDepth = Annotated[
    int | None,
    typer.Option(
        "--recursive-field-max-depth",
        metavar="N",
        min=1,
        max=15,
        help="How many times an Avro record that contains itself is decoded; it is an error by default.",
    ),
]
IsolationChoice = Annotated[Isolation, typer.Option(help="read_committed excludes aborted and open transactions.")]
# Names of properties and options of object stores whose value is a secret
SECRET = re.compile(
    r"secret|password|token|credential|access.?key|account.?key|sas.?key|connection.?string|authorization"
    r"|\.key$|^key$",
    re.IGNORECASE,
)


def existing_table(table: str, catalog: Sequence[str] | None, storage: Sequence[str] | None) -> LakeTable:
    """Return the table that a command names, loaded. Raises OptionError if it does not exist, TableError."""
    lake_table = open_lake_table(table, catalog, storage)
    lake_table.refresh()
    if not lake_table.exists:
        raise OptionError(f"{table}: no such table")
    return lake_table


def open_lake_table(table: str, catalog: Sequence[str] | None, storage: Sequence[str] | None) -> LakeTable:
    """Return the table that a command names, which may not exist yet. Raises OptionError."""
    from kwire.lake import open_table

    return open_table(table, catalog=dict(_pairs("--catalog", catalog)), storage=dict(_pairs("--storage", storage)))


def _pairs(option: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"{option}: expected NAME=VALUE")
        if SECRET.search(name):
            raise OptionError(f"{option} {name.strip()}: secrets on a command line are visible to others; see --help")
        if holds_password(value):
            raise OptionError(f"{option} {name.strip()}: a password on a command line is visible to others; see --help")
        pairs.append((name.strip(), value.strip()))
    return pairs
