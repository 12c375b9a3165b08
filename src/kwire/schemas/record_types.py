"""Record types of a topic whose values have several: each value's by its writer's schema, and the schema to read it as.

    Avro          full name of the record
    Protobuf      full name of the message
    JSON Schema   title

The subject of a type is that of a serializer's naming strategy, with {topic} and {record} for their names:

    {topic}-{record}    TopicRecordNameStrategy, the default
    {record}            RecordNameStrategy
    {topic}-value       TopicNameStrategy: one subject has the schemas of all types

Source: Confluent's SubjectNameStrategy and its implementations, io.confluent.kafka.serializers.subject.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kwire.errors import InvalidSchema, OptionError, RegistryError, UnknownSchema
from kwire.schemas.choice import LATEST, SchemaChoice, open_registry
from kwire.schemas.record_values import VALUE, ValueDecoding

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.schemas.formats import ParsedSchema, ValueSchema
    from kwire.schemas.registered import RegisteredSchema
    from kwire.schemas.registry import Registry

__all__ = ["SUBJECT", "RecordRows", "RecordSplitter", "RecordTypes"]

SUBJECT = "{topic}-{record}"
PLACEHOLDERS = ("{topic}", "{record}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTypes:
    """How the values of each record type are decoded. Picklable. subject: of a type, with placeholders.

    choice: the options that all types share, with the registry.
    """

    registry: Registry
    choice: SchemaChoice
    subject: str = SUBJECT

    @classmethod
    def of(cls, choice: SchemaChoice) -> RecordTypes:
        """Open the registry of a choice, whose subject may have placeholders. Raises OptionError, RegistryError."""
        if choice.mode == "permissive":
            raise OptionError(
                "mode: tables by record type require failfast, or deadletter with a target of dead letters"
            )
        for name, value in (("schema", choice.schema), ("message", choice.message), ("columns", choice.columns)):
            if value is not None and value != LATEST:
                raise OptionError(f"{name}: does not apply to tables by record type, each of which has its own schema")
        subject = choice.subject or SUBJECT
        unknown = [each for each in re.findall(r"\{[^}]*\}", subject) if each not in PLACEHOLDERS]
        if unknown:
            raise OptionError(f"subject: unknown placeholder '{unknown[0]}'; available: {', '.join(PLACEHOLDERS)}")
        registry = open_registry(choice.registry)
        return cls(registry=registry, choice=replace(choice, registry=registry, subject=None), subject=subject)

    def subject_of(self, record: str, topic: str) -> str:
        """Return the subject of a record type of a topic."""
        parts = re.split(r"(\{topic\}|\{record\})", self.subject)
        return "".join({"{topic}": topic, "{record}": record}.get(part, part) for part in parts)

    def decoding(self, record: str, subject: str, *, is_wrapped: bool) -> ValueDecoding:
        """Return how values of a record type are decoded: as the newest version of its subject that has the type.

        is_wrapped: as of ValueDecoding. Raises OptionError for a subject without it, RegistryError, InvalidSchema.
        """
        reader = self._reader(record, subject)
        choice = replace(
            self.choice,
            subject=subject,
            schema=reader,
            message=record if reader.type == "PROTOBUF" else None,
            mode="deadletter" if is_wrapped else "failfast",
        )
        return ValueDecoding.resolve(choice, (), is_wrapped=is_wrapped)

    def _reader(self, record: str, subject: str) -> RegisteredSchema:
        from kwire.schemas.parsed_schemas import ParsedSchemas

        parsed = ParsedSchemas(self.registry)
        try:
            versions = self.registry.versions(subject)
        except UnknownSchema as error:
            raise RegistryError(
                f"record type '{record}' has no subject '{subject}', since option subject is '{self.subject}'; name "
                "the one that the serializer's strategy has, such as {record} or {topic}-value",
                self.registry.location,
            ) from error
        for version in reversed(versions):
            registered = self.registry.version(subject, version)
            if record in names_of(parsed.parse(registered)):
                return registered
        raise RegistryError(
            f"no version of subject '{subject}' has the record type '{record}'; option subject is '{self.subject}'",
            self.registry.location,
        )


@dataclass(slots=True, kw_only=True)
class RecordRows:
    """Rows of a batch by record type. errors: rows whose type is not known, and why."""

    by_record: Mapping[str, pa.Array]
    errors: Mapping[int, str]


class RecordSplitter:
    """Finds the record types of values, which it asks a registry for."""

    def __init__(self, registry: Registry) -> None:
        from kwire.schemas.grouping import ValueGrouper

        self._grouper = ValueGrouper(registry, key=False)

    def split(self, batch: pa.RecordBatch) -> RecordRows:
        """Return the indexes of the rows of each type. Raises OptionError if values are not binary, RegistryError."""
        import numpy as np
        import pyarrow as pa

        values = batch.column(VALUE)
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        grouped = self._grouper.group(values, headers)
        errors = {error.row: error.what for error in reversed(grouped.errors)}
        places = dict[str, list[int]]()
        for number, schema in enumerate(grouped.schemas):
            rows = np.flatnonzero(grouped.index == number)
            try:
                places.setdefault(name_of(schema), []).extend(rows.tolist())
            except InvalidSchema as error:
                errors.update(dict.fromkeys(rows.tolist(), str(error)))
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        errors.update(dict.fromkeys(np.flatnonzero(nulls).tolist(), "value is null, so it has no record type"))
        return RecordRows(by_record={name: pa.array(sorted(rows)) for name, rows in places.items()}, errors=errors)


def name_of(schema: ValueSchema) -> str:
    """Return the record type of a value. Raises InvalidSchema for a schema without a name."""
    from kwire.schemas import avro, protobuf

    match schema.schema:
        case protobuf.Message():
            return schema.schema.name
        case avro.Schema():
            if schema.schema.type != "record":
                raise InvalidSchema(
                    f"type {schema.schema.type} is not a record, which would name its type", schema.label
                )
            return schema.schema.name
    document = schema.schema.document
    title = document.get("title") if isinstance(document, dict) else None
    if not isinstance(title, str) or not title.strip():
        raise InvalidSchema("has no title, which names the type of its values", schema.label)
    return title


def names_of(schema: ParsedSchema) -> tuple[str, ...]:
    """Return the record types that values of a schema may have."""
    from kwire.schemas import protobuf

    if isinstance(schema.parsed, protobuf.File):
        return schema.message_names
    try:
        return (name_of(schema.value()),)
    except InvalidSchema:
        return ()
