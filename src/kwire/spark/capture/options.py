"""The options of `kafka-capture`; docs/capture.md has them as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from kwire.errors import OptionError
from kwire.log.reading.paths import StorageOptions
from kwire.spark.message_types import message_class, struct_type
from kwire.spark.options.decoding import DECODE_OPTIONS
from kwire.spark.options.option import COLUMNS as COLUMNS_OPTION
from kwire.spark.options.option import (
    PATH,
    PATHS,
    STORAGE,
    Option,
    check_names,
    choice,
    parse_paths,
    parse_storage,
    user_options,
    word_list,
)
from kwire.spark.schema import select_columns

__all__ = [
    "BODY",
    "BODY_COLUMNS",
    "COLUMNS",
    "OPTIONS",
    "CaptureOptions",
    "available_types",
    "column_types",
    "parse_options",
]

PAGE = "docs/capture.md"

Mode = Literal["FAILFAST", "PERMISSIVE"]
Bodies = Literal["json", "bytes", "none"]

COLUMNS = {
    "file": "string",
    "connection": "bigint",
    "client": "string",
    "server": "string",
    "client_id": "string",
    "api_key": "int",
    "api": "string",
    "api_version": "int",
    "correlation_id": "int",
    "request_time": "timestamp",
    "response_time": "timestamp",
    "latency_ms": "double",
    "request_bytes": "bigint",
    "response_bytes": "bigint",
    "problem": "string",
    "request": "string",
    "response": "string",
}
BODY_COLUMNS = ("request", "response")
BODY = "body"
"""The column of option message: that request or response as a struct."""


def _names(name: str, value: str) -> tuple[str, ...]:
    names = word_list(name, value)
    if not names:
        raise OptionError(f"Option '{name}': expected a comma-separated list, got '{value}'")
    return names


def _ports(name: str, value: str) -> tuple[int, ...]:
    ports = _names(name, value)
    for port in ports:
        if not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise OptionError(f"Option '{name}': expected a comma-separated list of ports, got '{port}'")
    return tuple(int(port) for port in ports)


def _apis(name: str, value: str) -> tuple[str, ...]:
    from kwire.messages.registry import check_api_pattern

    apis = _names(name, value)
    for each in apis:
        check_api_pattern(each, f"Option '{name}'")
    return apis


def _message(name: str, value: str) -> str:
    kind = message_class(value.strip()).SPEC.kind
    if kind not in ("request", "response"):
        raise OptionError(f"Option '{name}': '{value}' is not a request or response but of kind '{kind}'")
    return value.strip()


PORTS = Option[tuple[int, ...]](
    name="ports",
    parse=_ports,
    default=(),
    value="comma-separated list of ports",
    shown_default="detected",
    meaning="Ports that brokers listen on. By default Kafka's connections are detected from their first bytes.",
)
APIS = Option[tuple[str, ...]](
    name="apis",
    parse=_apis,
    default=(),
    value="comma-separated list of names",
    shown_default="all",
    meaning="The APIs to read, such as `Fetch`. Patterns with `*` and `?` are supported.",
)
CLIENTS = Option[tuple[str, ...]](
    name="clients",
    parse=_names,
    default=(),
    value="comma-separated list of names",
    shown_default="all",
    meaning="The client ids to read. Patterns with `*` and `?` are supported.",
)
BODIES = Option[Bodies](
    name="bodies",
    parse=choice("json", "bytes", "none"),
    default="json",
    value="`json`, `bytes` or `none`",
    meaning="The form of the columns `request` and `response`: Kafka's JSON form, the captured frame, or no columns.",
)
MESSAGE = Option[str | None](
    name="message",
    parse=_message,
    default=None,
    value="name of a request or response, such as `FetchRequest`",
    meaning="Adds the column `body`, a struct with the fields of all versions of the message. Fields that a version "
    "does not have are null; the column is null for other messages and for bodies that cannot be decoded. Types are "
    "as in [from_kafka](functions.md#types).",
)
MODE = Option[Mode](
    name="mode",
    parse=choice("FAILFAST", "PERMISSIVE"),
    default="FAILFAST",
    value="`FAILFAST` or `PERMISSIVE`",
    meaning="How to handle a damaged file: fail the query, or end the file with a row of `file` and `problem`.",
)
OPTIONS: tuple[Option[object], ...] = (
    replace(PATH, meaning="A file, directory, glob or URL. Each file is read by one task."),
    PATHS,
    PORTS,
    APIS,
    CLIENTS,
    replace(COLUMNS_OPTION, meaning="The columns to read. Other columns are not computed."),
    BODIES,
    MESSAGE,
    MODE,
    STORAGE,
)
UNSUPPORTED = {
    option.name: "rows are requests and responses, which have no column value or key; use kafka-live or kafka-log"
    for option in DECODE_OPTIONS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """The options of a query. ports, apis, clients: empty for all."""

    paths: tuple[str, ...]
    storage: StorageOptions = field(default_factory=dict, repr=False)
    ports: tuple[int, ...] = ()
    apis: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    bodies: Bodies = "json"
    message: str | None = None
    mode: Mode = "FAILFAST"


def parse_options(options: Mapping[str, str]) -> CaptureOptions:
    """Parse the options of one query. Raises OptionError."""
    given = user_options(options)
    check_names(given, OPTIONS, UNSUPPORTED, source="kafka-capture", page=PAGE)
    return CaptureOptions(
        paths=parse_paths(given),
        storage=parse_storage(given),
        ports=PORTS.of(given),
        apis=APIS.of(given),
        clients=CLIENTS.of(given),
        columns=COLUMNS_OPTION.of(given),
        bodies=BODIES.of(given),
        message=MESSAGE.of(given),
        mode=MODE.of(given),
    )


def column_types(options: CaptureOptions) -> dict[str, str]:
    """Return the columns of a query, with types. Raises OptionError for unknown and repeated columns."""
    types = available_types(options)
    return types if options.columns is None else select_columns(types, options.columns)


def available_types(options: CaptureOptions) -> dict[str, str]:
    """Return all columns that a query can select, with types."""
    types = {
        name: "binary" if name in BODY_COLUMNS and options.bodies == "bytes" else kind
        for name, kind in COLUMNS.items()
        if name not in BODY_COLUMNS or options.bodies != "none"
    }
    if options.message is not None:
        types[BODY] = struct_type(message_class(options.message).SPEC, None).simpleString()
    return types
