"""The options `value.*` and `key.*` of `kafka-log` and `kafka-live`: decode the column.

With a schema registry, they are the arguments of kwire.spark.functions.from_registry; without one, values are JSON or
CSV of a schema in DDL, or of one that is inferred. docs/schemas.md has them as a table. Standard library only;
kwire.spark.decoded_columns resolves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.schemas.choice import SchemaChoice
from kwire.spark.options.option import Option, choice, column_list, flag_option, number_option, text_option
from kwire.url_passwords import holds_password

if TYPE_CHECKING:
    from kwire.schemas.avro.resolution import Names
    from kwire.schemas.choice import Mode

__all__ = [
    "DECODED",
    "DECODE_OPTIONS",
    "VALUE_OPTIONS",
    "DecodeOptions",
    "TextOptions",
    "is_registry_setting",
    "parse_decoding",
]

DECODED = ("key", "value")
"""The columns that can be decoded."""
INFER = "infer"


def _schema(name: str, value: str) -> str | int:
    """Return the id of a schema as a number, anything else as text."""
    stripped = value.strip()
    return int(stripped) if stripped.isdecimal() and stripped.isascii() else stripped


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnOptions:
    """The options of one column."""

    format: Option[str | None]
    registry: Option[str | None]
    settings: Option[str | None]
    subject: Option[str | None]
    schema: Option[str | int | None]
    mode: Option[Mode]
    message: Option[str | None]
    columns: Option[tuple[str, ...] | None]
    names: Option[Names]
    depth: Option[int | None]
    headers: Option[bool]

    @property
    def all(self) -> tuple[Option[object], ...]:
        """All of them, in the order of the documentation."""
        return (
            *(self.format, self.registry, self.settings, self.subject, self.schema, self.mode),
            *(self.message, self.columns, self.names, self.depth, self.headers),
        )


def _options_of(column: str) -> _ColumnOptions:
    return _ColumnOptions(
        format=Option[str | None](
            name=f"{column}.format",
            parse=choice("json", "csv"),
            default=None,
            value="`json` or `csv`",
            shown_default="that of the registry's schema",
            meaning="[Values without a registry](#json-and-csv-without-a-registry).",
        ),
        registry=text_option(
            name=f"{column}.registry",
            value="string",
            shown_default="none: the column is binary",
            meaning="The registry: its URL, a folder of schemas, or a log directory or `kafka://` URL with `_schemas`.",
        ),
        settings=text_option(
            name=f"{column}.registry.*",
            value="string",
            meaning=f"[Settings of the registry](#registries) with dots: `{column}.registry.basic.auth.user.info`, ...",
        ),
        subject=text_option(
            name=f"{column}.subject",
            value="string",
            shown_default=f"`TOPIC-{column}` of the one topic that is read",
            meaning="The subject, whose latest schema is the reader's. Required for several topics.",
        ),
        schema=Option[str | int | None](
            name=f"{column}.schema",
            parse=_schema,
            default=None,
            value="`latest`, `union`, an id, or the text of a schema",
            shown_default="`latest`",
            meaning=f"[The reader's schema](#the-readers-schema). With `{column}.format`, DDL or `infer` (default).",
        ),
        mode=Option["Mode"](
            name=f"{column}.mode",
            parse=choice("failfast", "permissive", "deadletter"),
            default="failfast",
            value="`failfast`, `permissive` or `deadletter`",
            meaning="What becomes of [values that cannot be decoded](#errors).",
        ),
        message=text_option(
            name=f"{column}.message",
            value="string",
            shown_default="the first of the file",
            meaning="The name of a Protobuf message.",
        ),
        columns=Option[tuple[str, ...] | None](
            name=f"{column}.columns",
            parse=column_list,
            default=None,
            value="comma-separated list of fields",
            shown_default="all",
            meaning="The fields to decode, such as `id,lines.price`; dotted paths for Avro only. Others are skipped.",
        ),
        names=Option["Names"](
            name=f"{column}.names",
            parse=choice("any", "strict"),
            default="any",
            value="`any` or `strict`",
            meaning="Whether [Avro's names](#the-readers-schema) have to match.",
        ),
        depth=number_option(
            name=f"{column}.recursiveFieldMaxDepth",
            value="1 to 15",
            shown_default="none: an error",
            meaning="How many times an Avro record that [contains itself](avro.md#limits) is decoded.",
        ),
        headers=flag_option(
            name=f"{column}.headers",
            default=False,
            meaning=f"Whether schema ids may be in the header `__{column}_schema_id`; headers are then read too.",
        ),
    )


_OPTIONS = {column: _options_of(column) for column in DECODED}
VALUE_OPTIONS = _OPTIONS["value"].all
DECODE_OPTIONS = (*VALUE_OPTIONS, *_OPTIONS["key"].all)


def is_registry_setting(key: str) -> bool:
    """Return whether an option is a setting of a registry."""
    prefixes = [f"{column}.registry." for column in DECODED]
    return any(key.startswith(prefix) and len(key) > len(prefix) for prefix in prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOptions:
    """How a column is decoded: the arguments of from_registry, so far without the topic.

    settings: of the registry, secret, so not in repr. headers: whether schema ids may be in headers.
    """

    column: str
    registry: str
    settings: Mapping[str, str] = field(repr=False)
    choice: SchemaChoice
    headers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """How a column of JSON or CSV is decoded. schema: DDL; None for that of the topic's first values."""

    column: str
    format: str
    schema: str | None
    mode: Mode
    columns: tuple[str, ...] | None


def parse_decoding(given: Mapping[str, str]) -> tuple[DecodeOptions | TextOptions, ...]:
    """Parse the options of all columns. given: names in lower case. Raises OptionError."""
    columns = (_parse_column(column, options, given) for column, options in _OPTIONS.items())
    return tuple(each for each in columns if each is not None)


def _parse_text(column: str, options: _ColumnOptions, given: Mapping[str, str]) -> TextOptions:
    taken = (options.format, options.schema, options.mode, options.columns)
    names = {each.name.lower() for each in taken}
    for key in given:
        if key.startswith(f"{column}.") and key not in names:
            raise OptionError(
                f"Option '{key}': does not apply to option '{options.format.name}', which takes "
                f"{', '.join(each.name for each in taken[1:])}; remove one of them"
            )
    schema = options.schema.of(given)
    if isinstance(schema, int) or schema == "":
        raise OptionError(
            f"Option '{options.schema.name}': expected DDL, such as 'id BIGINT, name STRING', or 'infer', got "
            f"'{schema}'"
        )
    return TextOptions(
        column=column,
        format=options.format.of(given) or "",
        schema=None if schema is None or schema.lower() == INFER else schema,
        mode=options.mode.of(given),
        columns=options.columns.of(given),
    )


def _parse_column(column: str, options: _ColumnOptions, given: Mapping[str, str]) -> DecodeOptions | TextOptions | None:
    if options.format.of(given) is not None:
        return _parse_text(column, options, given)
    prefix = f"{options.registry.name}."
    settings = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    registry = options.registry.of(given)
    if registry is None:
        for key in given:
            if key.startswith(f"{column}."):
                raise OptionError(
                    f"Option '{key}': requires option '{options.registry.name}' or '{options.format.name}'"
                )
        return None
    if not registry.strip():
        raise OptionError(f"Option '{options.registry.name}': expected a URL or a folder, got '{registry}'")
    if holds_password(registry):
        raise OptionError(
            f"Option '{options.registry.name}': holds a password, which plans and errors show; use option "
            f"'{prefix}basic.auth.user.info'"
        )
    choice = SchemaChoice(
        registry=registry,
        subject=options.subject.of(given),
        key=column == "key",
        schema=options.schema.of(given),
        message=options.message.of(given),
        mode=options.mode.of(given),
        names=options.names.of(given),
        columns=options.columns.of(given),
        recursive_field_max_depth=options.depth.of(given) or 0,
    )
    return DecodeOptions(
        column=column, registry=registry, settings=settings, choice=choice, headers=options.headers.of(given)
    )
