"""A registry in memory: the schemas of a folder of files, or of the topic `_schemas`.

Files in a folder and its subfolders, by name:

    *.json                              an object of the REST API (id, subject, version, schemaType, schema,
                                        references), or a list of them: what `GET /schemas` returns
    [SUBJECT.[VERSION.]]ID.avsc         the text of an Avro schema
    [SUBJECT.[VERSION.]]ID.proto        of a Protobuf file
    [SUBJECT.[VERSION.]]ID.schema.json  of a JSON schema

An object without an id has the one of its file name (`42.json`). A .proto file without an id is found by its path
when another one imports it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kwire.errors import RegistryError, UnknownSchema, did_you_mean
from kwire.schemas.registered import (
    LATEST,
    MAX_SCHEMA_CHARACTERS,
    Reference,
    RegisteredSchema,
    SchemaId,
    SchemaType,
    schema_from_json,
)

__all__ = ["EntrySource", "read_folder"]

ENDINGS: dict[str, SchemaType] = {".avsc": "AVRO", ".proto": "PROTOBUF", ".schema.json": "JSON"}
MAX_FILES = 100_000


class EntrySource:
    """A registry of given schemas. It can be pickled, so workers need no access to the files."""

    def __init__(self, location: str, entries: Iterable[RegisteredSchema]) -> None:
        self.location = location
        self.entries = tuple(entries)
        self._ids: dict[SchemaId, RegisteredSchema] = {}
        self._subjects: dict[str, dict[int, RegisteredSchema]] = {}
        for entry in self.entries:
            for key in (entry.id, entry.guid):
                if key is not None and _text(self._ids.setdefault(key, entry)) != _text(entry):
                    raise RegistryError(f"two schemas have the id {key}: {entry.label} and another", location)
            if entry.subject is not None and entry.version is not None:
                self._subjects.setdefault(entry.subject, {})[entry.version] = entry

    def __reduce__(self) -> tuple[type[EntrySource], tuple[str, tuple[RegisteredSchema, ...]]]:
        return EntrySource, (self.location, self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EntrySource) and (self.location, self.entries) == (other.location, other.entries)

    def __hash__(self) -> int:
        return hash((self.location, self.entries))

    def by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id or GUID."""
        try:
            return self._ids[schema_id]
        except KeyError:
            raise UnknownSchema(f"unknown schema id {schema_id}", self.location) from None

    def by_version(self, subject: str, version: int) -> RegisteredSchema:
        """Return a version of a subject, or its latest one."""
        versions = self.versions(subject)
        entry = self._subjects[subject].get(versions[-1] if version == LATEST else version)
        if entry is None:
            known = ", ".join(map(str, versions))
            raise UnknownSchema(
                f"subject '{subject}' has no version {version}; its versions are {known}", self.location
            )
        return entry

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        return sorted(
            each for each, versions in self._subjects.items() if any(not e.deleted for e in versions.values())
        )

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, in ascending order."""
        versions = sorted(v for v, entry in self._subjects.get(subject, {}).items() if not entry.deleted)
        if not versions:
            raise UnknownSchema(f"unknown subject '{subject}'{did_you_mean(subject, self.subjects())}", self.location)
        return versions

    def find(self, subject: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Return the registered form of a schema, with its id."""
        for version in reversed(self.versions(subject)):
            entry = self._subjects[subject][version]
            if entry.type == schema.type and _text(entry) == _text(schema):
                return entry
        raise UnknownSchema(f"the schema is not registered under '{subject}'", self.location)

    def register(self, subject: str, schema: RegisteredSchema) -> RegisteredSchema:
        """Raise RegistryError: files are read only."""
        raise RegistryError("schemas can be registered through the registry's URL only", self.location)


def _text(schema: RegisteredSchema) -> str:
    """Return the text without differences of white space in JSON."""
    if schema.type == "PROTOBUF":
        return schema.text.strip()
    try:
        return json.dumps(json.loads(schema.text))
    except (ValueError, RecursionError):
        return schema.text


def read_folder(folder: Path) -> EntrySource:
    """Read all schemas of a folder. Raises RegistryError with the file at fault."""
    if not os.path.isdir(folder):
        raise RegistryError("no such folder", str(folder))
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise RegistryError(f"cannot be listed: {error.filename}: {error.strerror}", str(folder)) from error
    if len(files) > MAX_FILES:
        raise RegistryError(f"has {len(files)} files, the limit is {MAX_FILES}", str(folder))
    entries = [entry for path in files for entry in _read_file(folder, path)]
    if not entries:
        raise RegistryError("no schemas; expected *.json, *.avsc, *.proto or *.schema.json", str(folder))
    return EntrySource(str(folder), _with_versions(entries, str(folder)))


def _read_file(folder: Path, path: Path) -> Iterator[RegisteredSchema]:
    ending = next((e for e in ENDINGS if path.name.endswith(e)), ".json" if path.suffix == ".json" else None)
    if ending is None:
        return
    try:
        if path.stat().st_size > 4 * MAX_SCHEMA_CHARACTERS:
            raise RegistryError(f"larger than {4 * MAX_SCHEMA_CHARACTERS} bytes", str(path))
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise RegistryError(f"cannot be read: {error}", str(path)) from None
    stem = path.name.removesuffix(ending)
    if ending in ENDINGS:
        yield _text_entry(text, ENDINGS[ending], stem, path.relative_to(folder).as_posix())
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RegistryError(f"not JSON: {error}", str(path)) from None
    known = RegisteredSchema(text="", id=int(stem)) if stem.isdecimal() else None
    for each in value if isinstance(value, list) else [value]:
        yield schema_from_json(each, str(path), known)


def _text_entry(text: str, kind: SchemaType, stem: str, path: str) -> RegisteredSchema:
    head, _, number = stem.rpartition(".")
    if not number.isdecimal():
        return RegisteredSchema(text=text, type=kind, subject=path, version=1)  # to be imported by others
    subject, _, version = head.rpartition(".")
    if subject and version.isdecimal():
        return RegisteredSchema(text=text, type=kind, id=int(number), subject=subject, version=int(version))
    return RegisteredSchema(text=text, type=kind, id=int(number), subject=head or None)


def _with_versions(entries: list[RegisteredSchema], location: str) -> Iterator[RegisteredSchema]:
    """Number the entries without a version in the order of ids; give .proto files references to their imports."""
    from dataclasses import replace

    counts: dict[str, int] = {}
    files = {e.subject: e for e in entries if e.type == "PROTOBUF" and e.id is None and e.guid is None}
    for entry in sorted(entries, key=lambda e: (e.version or 0, e.id or 0)):
        done = entry
        if entry.subject is not None and entry.version is None:
            counts[entry.subject] = counts.get(entry.subject, 0) + 1
            done = replace(done, version=counts[entry.subject])
        if entry.type == "PROTOBUF" and not entry.references and files:
            names = (name for name in files if name is not None and name != entry.subject and f'"{name}"' in entry.text)
            done = replace(done, references=tuple(Reference(name, name, 1) for name in sorted(names)))
        yield done
