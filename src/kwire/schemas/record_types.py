"""Record types of a topic whose values have several: each value's by its writer's schema, and the schema to read it as.

    Avro          full name of the record; of a union of records at the top level, the one that the value has
    Protobuf      full name of the message
    JSON Schema   title

The subject of a type is that of a serializer's naming strategy, with {topic} and {record} for their names:

    {topic}-{record}    TopicRecordNameStrategy, the default
    {record}            RecordNameStrategy
    {topic}-value       TopicNameStrategy: one subject has the schemas of all types

Source: Confluent's SubjectNameStrategy and its implementations, io.confluent.kafka.serializers.subject.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kwire.errors import InvalidSchema, OptionError, RegistryError, UnknownSchema
from kwire.schemas.choice import LATEST, SchemaChoice, open_registry
from kwire.schemas.record_values import VALUE, ValueDecoding

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from kwire.schemas.formats import ParsedSchema, ValueSchema
    from kwire.schemas.grouping import GroupedValues
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

    def is_subject_of(self, record: str, subject: str) -> bool:
        """Return whether a subject is that of a record type of any topic."""
        parts = re.split(r"(\{topic\}|\{record\})", self.subject)
        pattern = {"{topic}": ".*", "{record}": re.escape(record)}
        return (
            re.fullmatch("".join(pattern.get(part, re.escape(part)) for part in parts), subject, re.DOTALL) is not None
        )

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
            schema = parsed.parse(registered)
            if record in names_of(schema):
                return self._of_union(record, schema) or registered
        raise RegistryError(
            f"no version of subject '{subject}' has the record type '{record}'; option subject is '{self.subject}'",
            self.registry.location,
        )

    def _of_union(self, record: str, schema: ParsedSchema) -> RegisteredSchema | None:
        """Return the schema of a record that is a branch of a union; None if the schema is not a union.

        Raises RegistryError for a branch that is defined elsewhere than in the union or the schemas it refers to.
        """
        branches = json.loads(schema.registered.text) if schema.type == "AVRO" else None
        if not isinstance(branches, list):
            return None
        from kwire.schemas.parsed_schemas import ParsedSchemas

        parsed = ParsedSchemas(self.registry)
        for branch in branches:
            if isinstance(branch, dict):
                made = replace(schema.registered, text=json.dumps(branch))
                if record in names_of(parsed.parse(made)):
                    return made
        for reference in schema.registered.references:
            used = self.registry.version(reference.subject, reference.version)
            if record in names_of(parsed.parse(used)):
                return used
        raise RegistryError(
            f"schema {schema.registered.label}: record type '{record}' is neither defined in the union nor a schema "
            "that it refers to",
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
        places: dict[str, list[npt.NDArray[np.int64]]] = {}
        for number, schema in enumerate(grouped.schemas):
            of_schema = np.flatnonzero(grouped.index == number)
            for one, rows in _by_branch(schema, values, grouped, of_schema, errors):
                try:
                    places.setdefault(name_of(one), []).append(rows)
                except InvalidSchema as error:
                    errors.update(dict.fromkeys(rows.tolist(), str(error)))
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        errors.update(dict.fromkeys(np.flatnonzero(nulls).tolist(), "value is null, so it has no record type"))
        by_record = {name: pa.array(np.sort(np.concatenate(parts))) for name, parts in places.items()}
        return RecordRows(by_record=by_record, errors=errors)


def _by_branch(
    schema: ValueSchema,
    values: pa.Array,
    grouped: GroupedValues,
    rows: npt.NDArray[np.int64],
    errors: dict[int, str],
) -> Iterator[tuple[ValueSchema, npt.NDArray[np.int64]]]:
    """Return the branches of a union and the rows of each, or the schema itself; add rows without one to errors."""
    import numpy as np

    from kwire.plan.nested_columns import message_bounds
    from kwire.schemas import avro

    if not isinstance(schema.schema, avro.Schema) or schema.schema.type != "union":
        yield schema, rows
        return
    source, bounds = message_bounds(values)
    starts, ends = bounds[rows, 0] + grouped.skip[rows], bounds[rows, 1]
    # the number of a branch is a zigzag varint; above 63 branches, it has a second byte
    first, second = (source[np.minimum(at, len(source) - 1)].astype(np.int64) for at in (starts, starts + 1))
    is_short, is_long = (first < 0x80) & (starts < ends), (first >= 0x80) & (second < 0x80) & (starts + 1 < ends)
    zigzag = np.where(is_long, (first & 0x7F) | (second << 7), first)
    branches = schema.schema.branches
    is_one = (is_short | is_long) & (zigzag % 2 == 0) & (zigzag < 2 * len(branches))
    numbers = np.where(is_one, zigzag // 2, -1)
    for row in rows[~is_one].tolist():
        errors[row] = f"schema {schema.label}: the value begins with the number of none of {len(branches)} branches"
    for number in np.unique(numbers[numbers >= 0]).tolist():
        yield replace(schema, schema=branches[number]), rows[numbers == number]


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
    from kwire.schemas import avro, protobuf

    if isinstance(schema.parsed, protobuf.File):
        return schema.message_names
    value = schema.value()
    if isinstance(value.schema, avro.Schema) and value.schema.type == "union":
        return tuple(branch.name for branch in value.schema.branches if branch.type == "record")
    try:
        return (name_of(value),)
    except InvalidSchema:
        return ()
