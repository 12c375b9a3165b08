"""Schemas as a registry stores them, and what every kind of registry gives."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from kwire.errors import RegistryError

__all__ = ["LATEST", "Reference", "RegisteredSchema", "SchemaId", "SchemaSource", "SchemaType", "schema_from_json"]

SchemaType = Literal["AVRO", "PROTOBUF", "JSON"]
SchemaId = int | str
"""An id, or a GUID in lower case."""
LATEST = -1
"""As a version: the latest one."""
MAX_SCHEMA_CHARACTERS = 16 << 20


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses. name: an Avro type, a .proto file or the URL of a JSON schema."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema of a registry. id, guid, subject, version: as far as the registry returned them.

    deleted: no version of its subject any more; values and references may still have its id or version.
    """

    text: str
    type: SchemaType = "AVRO"
    references: tuple[Reference, ...] = ()
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    deleted: bool = False

    @property
    def label(self) -> str:
        """Its name in messages."""
        version = f"of '{self.subject}' version {self.version}" if self.subject is not None else ""
        number = f"id {self.id}" if self.id is not None else self.guid or ""
        return " ".join(part for part in (number, version) if part) or "given by the caller"

    def to_json(self) -> dict[str, object]:
        """Return the form of the REST API."""
        references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in self.references]
        fields = {
            "id": self.id,
            "guid": self.guid,
            "subject": self.subject,
            "version": self.version,
            "schemaType": self.type,
            "references": references or None,
            "schema": self.text,
        }
        return {name: value for name, value in fields.items() if value is not None}


class SchemaSource(Protocol):
    """A registry. location: URL without credentials, or folder, for messages.

    All methods raise RegistryError for what the registry does not know, or if it cannot be used.
    """

    @property
    def location(self) -> str: ...

    def by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id or GUID."""
        ...

    def by_version(self, subject: str, version: int) -> RegisteredSchema:
        """Return a version of a subject, or its latest one."""
        ...

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        ...

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, in ascending order."""
        ...

    def find(self, subject: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Return the registered form of a schema, with its id."""
        ...

    def register(self, subject: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Register a schema, if it is new, and return its registered form."""
        ...


def schema_from_json(value: object, location: str, known: RegisteredSchema | None = None) -> RegisteredSchema:
    """Return the schema in a response of the REST API, a record of `_schemas` or a file.

    known: has the fields that value may lack. Raises RegistryError.
    """

    def fault(what: str) -> RegistryError:
        return RegistryError(f"not a schema of a registry: {what}", location)

    if not isinstance(value, Mapping) or not isinstance(value.get("schema"), str):
        raise fault("expected an object with the text 'schema'")
    if len(value["schema"]) > MAX_SCHEMA_CHARACTERS:
        raise fault(f"the text has {len(value['schema'])} characters, the limit is {MAX_SCHEMA_CHARACTERS}")
    kind = value.get("schemaType") or "AVRO"
    if kind not in get_args(SchemaType):
        raise fault(f"schemaType {str(kind)[:40]!r} is not one of {', '.join(get_args(SchemaType))}")
    base = known or RegisteredSchema(text="")
    fields: dict[str, object] = {}
    for name, expected in (("id", int), ("version", int), ("subject", str), ("guid", str)):
        given = value.get(name)
        if given is not None and (not isinstance(given, expected) or isinstance(given, bool)):
            raise fault(f"'{name}' is not {'a number' if expected is int else 'a string'}")
        fields[name] = getattr(base, name) if given is None else given
    guid = fields["guid"] or _guid_of_md5(value.get("md5"))
    fields["guid"] = str(guid).lower() if guid else None
    fields["deleted"] = value.get("deleted") is True
    references = _references(value.get("references") or [], fault)
    return replace(base, text=value["schema"], type=kind, references=references, **fields)  # type: ignore[arg-type]


def _references(value: object, fault: object) -> tuple[Reference, ...]:
    assert callable(fault)
    if not isinstance(value, list):
        raise fault("'references' is not a list")
    references = list[Reference]()
    for each in value:
        match each:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                references.append(Reference(name, subject, version))
            case _:
                raise fault("a reference lacks name, subject or version")
    return tuple(references)


def _guid_of_md5(value: object) -> str | None:
    """Return the GUID of a record of `_schemas`: its MD5 digest in base64."""
    try:
        return str(uuid.UUID(bytes=base64.b64decode(value))) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
