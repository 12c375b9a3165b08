"""Which schema of a registry values are decoded or encoded with: the choice of a user, and what the registry says.

    SchemaChoice(registry=..., topic="orders").resolve()

A SchemaChoice is made where options are parsed, and asks nobody. A ChosenSchema has what tasks need: the driver asks
the registry once, and sends it to them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from kwire.errors import InvalidSchema, OptionError, did_you_mean
from kwire.schemas.registered import RegisteredSchema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.schemas.avro.resolution import Names
    from kwire.schemas.registry import Registry

__all__ = ["ChosenSchema", "Mode", "SchemaChoice", "check_mode", "open_registry", "subject_name"]

Mode = Literal["failfast", "permissive", "deadletter"]
LATEST, UNION = "latest", "union"
JSON_SCHEMA_WORDS = {"$schema", "$id", "$ref", "properties", "oneOf", "anyOf", "allOf", "enum", "const"}
NAMES_ELSEWHERE = {
    "PROTOBUF": "a Protobuf message of another name is always a bad value",
    "JSON": "types of JSON Schema have no names",
}
AVRO_TYPES = {"record", "enum", "fixed", "map", "error"}


def check_mode(mode: str) -> None:
    """Raise OptionError for a mode that is none."""
    if mode not in get_args(Mode):
        raise OptionError(f"mode: expected one of {', '.join(get_args(Mode))}, got '{mode}'")


def subject_name(topic: str, *, key: bool = False) -> str:
    """Return the subject of a topic's values or keys: Confluent's TopicNameStrategy, the default of serializers."""
    return f"{topic}-{'key' if key else 'value'}"


def open_registry(registry: Registry | str | os.PathLike[str]) -> Registry:
    """Return the registry at a URL or in a folder, or the given one; a log directory or cluster has it as `_schemas`.

    Raises OptionError, RegistryError, LogError.
    """
    from kwire.schemas.registry import Registry

    if isinstance(registry, Registry):
        return registry
    text = os.fspath(registry)  # a topic is read here, on the driver
    if text.lower().startswith("kafka://") or os.path.isdir(os.path.join(text, "_schemas-0")):
        return Registry.from_topic(text)
    return Registry(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChoice:
    """The options of kwire.schemas.decode_arrow, which has their meaning, except for the array of headers."""

    registry: Registry | str | os.PathLike[str]
    subject: str | None = None
    topic: str | None = None
    key: bool = False
    schema: str | int | RegisteredSchema | None = None
    message: str | None = None
    mode: Mode = "failfast"
    names: Names = "any"
    columns: tuple[str, ...] | None = None
    recursive_field_max_depth: int = 0

    def __post_init__(self) -> None:
        """Raise OptionError for a value that no registry makes right."""
        if self.subject is not None and self.topic is not None:
            raise OptionError("subject and topic are mutually exclusive")
        check_mode(self.mode)
        if self.names != "any":
            from kwire.schemas.avro.resolution import check_names

            check_names(self.names)
        if self.recursive_field_max_depth:
            from kwire.schemas.avro.columns import check_depth

            check_depth(self.recursive_field_max_depth)

    @classmethod
    def of_options(
        cls, registry: Registry | str | os.PathLike[str] | None, options: Mapping[str, Any]
    ) -> SchemaChoice | None:
        """Return the choice of options, of which None is one that was not given; None without a registry.

        Raises OptionError, also for options without a registry.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if registry is not None:
            return cls(registry=registry, **given)
        if given:
            raise OptionError(f"{next(iter(given))}: requires registry, whose schemas values are decoded with")
        return None

    def of_topics(self, topics: Iterable[str]) -> SchemaChoice:
        """Return the choice with the subject of the one topic whose records are read, unless it has a subject.

        Raises OptionError for several topics, and for none.
        """
        if self.subject is not None or self.topic is not None:
            return self
        names = sorted(set(topics))
        if len(names) != 1:
            raise OptionError(
                "registry: requires one topic or a subject, since all values are one column; select one of the "
                f"topics: {', '.join(names)[:500] or 'none'}"
            )
        return replace(self, topic=names[0])

    def resolve(self) -> ChosenSchema:
        """Ask the registry for the schema to decode with.

        Raises OptionError, RegistryError, InvalidSchema; LogError for a topic `_schemas`.
        """
        registry = open_registry(self.registry)
        reader = self._registered(registry)
        self._check_reader(reader)
        union, messages = None, frozenset[str]()
        if reader is None and (subject := self.full_subject) is not None:
            from kwire.schemas.parsed_schemas import ParsedSchemas
            from kwire.schemas.unions import merge_types

            versions = [registry.version(subject, version) for version in registry.versions(subject)]
            values = ParsedSchemas(registry).named(versions, self.message)
            union = merge_types(each.arrow_type() for each in values)
            messages = frozenset(each.message_name for each in values if each.message_name is not None)
        return self._chosen(registry, reader, union, messages)

    def resolve_for_encoding(self) -> ChosenSchema:
        """Ask the registry for the schema to encode with. Raises as resolve(), also if it is not registered."""
        if self.schema == UNION:
            raise OptionError("schema: 'union' is for decoding; expected 'latest', an id or the text of a schema")
        registry = open_registry(self.registry)
        reader = self._registered(registry)
        if reader is not None and reader.id is None and self.full_subject is not None:
            reader = registry.find(self.full_subject, reader.text, reader.type, reader.references)
        if reader is None or reader.id is None:
            raise OptionError("one of subject and topic is required, or as schema the id of a registered one")
        return self._chosen(registry, reader, None)

    @property
    def full_subject(self) -> str | None:
        """The subject, also that of the topic."""
        return self.subject if self.topic is None else subject_name(self.topic, key=self.key)

    def _registered(self, registry: Registry) -> RegisteredSchema | None:
        """Return the reader's schema; None for a union."""
        subject, schema = self.full_subject, self.schema
        if isinstance(schema, RegisteredSchema):
            return schema
        if isinstance(schema, int):
            return registry.schema(schema)
        if schema is None or schema == LATEST:
            if subject is not None:
                return registry.latest(subject)
            if schema == LATEST:
                raise OptionError("schema: 'latest' requires subject or topic")
            return None
        if schema == UNION:
            return None
        return RegisteredSchema(text=schema, type=_type_of(schema, registry, subject))

    def _check_reader(self, reader: RegisteredSchema | None) -> None:
        """Raise OptionError for options that a union or the format of the reader's schema does not have."""
        if reader is None and self.names != "any":
            raise OptionError("names: strict requires the schema of a reader, not a union")
        if reader is None and self.columns is not None:
            raise OptionError("columns requires the schema of a reader, not a union")
        if reader is not None and reader.type != "AVRO" and self.names != "any":
            raise OptionError(f"names: strict is for Avro; {NAMES_ELSEWHERE[reader.type]}")
        if self.recursive_field_max_depth and (reader is None or reader.type != "AVRO"):
            what = "a union" if reader is None else f"a schema of type {reader.type}"
            raise OptionError(f"recursive_field_max_depth: requires an Avro schema of a reader, not {what}")

    def _chosen(
        self,
        registry: Registry,
        reader: RegisteredSchema | None,
        union: pa.DataType | None,
        messages: frozenset[str] = frozenset(),
    ) -> ChosenSchema:
        return ChosenSchema(
            registry=registry,
            reader=reader,
            union=union,
            messages=messages,
            message=self.message,
            key=self.key,
            mode=self.mode,
            names=self.names,
            columns=self.columns,
            recursive_field_max_depth=self.recursive_field_max_depth,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSchema:
    """A choice as a registry resolved it. Picklable; equal ones have equal hashes.

    reader: the schema to decode or encode with. union: without it, the type of all versions of a subject; None for that
    of the ids in each array. messages: the full names of Protobuf's messages in that type; others are bad values.
    """

    registry: Registry
    reader: RegisteredSchema | None
    union: pa.DataType | None
    message: str | None
    key: bool
    mode: Mode
    names: Names
    columns: tuple[str, ...] | None
    recursive_field_max_depth: int = 0
    messages: frozenset[str] = frozenset()


def _type_of(text: str, registry: Registry, subject: str | None) -> SchemaType:
    """Return the format of a schema's text; that of the subject if the text could be Avro or JSON Schema."""
    stripped = text.strip()
    if not stripped:
        raise OptionError("schema: empty; expected 'latest', 'union', an id or the text of a schema")
    if stripped[0] not in '{["':
        if "{" not in stripped:
            known = (LATEST, UNION)
            raise OptionError(
                f"schema: expected 'latest', 'union', an id or the text of a schema, got '{stripped[:40]}'"
                f"{did_you_mean(stripped[:40], known)}"
            )
        return "PROTOBUF"
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"not JSON: {error}") from None
    if isinstance(value, dict) and value.get("type") not in AVRO_TYPES:
        if JSON_SCHEMA_WORDS & value.keys():
            return "JSON"
        if subject is not None:
            return registry.latest(subject).type
    return "AVRO"
