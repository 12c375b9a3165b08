"""Registry: the schemas of a registry, by id and by subject, with caches."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.errors import InvalidSchema, OptionError, RegistryError, UnknownSchema
from kwire.schemas.entries import EntrySource, read_folder
from kwire.schemas.http import HttpSettings, HttpSource
from kwire.schemas.registered import (
    LATEST,
    Reference,
    RegisteredSchema,
    SchemaId,
    SchemaSource,
    SchemaType,
    schema_from_json,
)

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["Registry"]

UNKNOWN_S = 30.0
"""How long an unknown id is not asked for again."""
MAX_UNKNOWN = 1_000
"""Unknown ids that a registry behind HTTP is asked for in that time, one request each."""
MAX_REFERENCES = 1_000
MAX_REFERENCE_DEPTH = 100


class Registry:
    """A schema registry: schemas by id, GUID, and subject and version.

    It can be pickled. Schemas that an id or version denotes never change, so they are kept in memory, and in the folder
    `cache` if there is one. Thread-safe.
    """

    def __init__(self, url_or_folder: str | os.PathLike[str], *, cache: str | None = None, **settings: Any) -> None:
        """Open a registry; connections are made on first use.

        url_or_folder: http:// or https://, several separated by commas; or a folder of schema files.
        cache: a folder in which schemas are kept between processes; for one registry, since ids differ in others.
        settings: basic_auth_user_info, bearer_auth_token, ssl_ca_location, ssl_certificate_location, ssl_key_location,
        ssl_key_password, timeout_s, retries.
        Raises OptionError, RegistryError.
        """
        text = os.fspath(url_or_folder)
        if "://" in text:
            source: SchemaSource = HttpSource(text, HttpSettings.parse(settings))
            self._state: tuple[str, str | None, tuple[tuple[str, Any], ...]] | EntrySource
            self._state = (text, cache, tuple(sorted(settings.items())))
        elif settings or cache is not None:
            raise OptionError(f"{next(iter(settings), 'cache')}: only for the URL of a registry")
        else:
            source = read_folder(Path(text))
            self._state = source
        self._open(source, cache)

    def _open(self, source: SchemaSource, cache: str | None = None) -> None:
        self._source = source
        self._cache = None if cache is None else Path(cache).expanduser()
        self._by_id: dict[SchemaId, RegisteredSchema] = {}
        self._by_version: dict[tuple[str, int], RegisteredSchema] = {}
        self._unknown: dict[SchemaId, tuple[float, UnknownSchema]] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_topic(cls, log: ReadableLog | str) -> Registry:
        """Return the registry whose topic `_schemas` is in a log, or in the log directory or cluster at a path or URL.

        Raises LogError, RegistryError.
        """
        from kwire.schemas.topic import TOPIC, find_log, read_topic

        location = log if isinstance(log, str) else TOPIC
        return _of_entries(read_topic(find_log(log) if isinstance(log, str) else log, location))

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        if isinstance(self._state, EntrySource):
            return _of_entries, (self._state,)
        return _reopen, self._state

    def __repr__(self) -> str:
        return f"Registry({self.location!r})"

    @property
    def location(self) -> str:
        """URL without credentials, or folder."""
        return self._source.location

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema with an id or GUID. Raises RegistryError."""
        key = schema_id.lower() if isinstance(schema_id, str) else schema_id
        schema = self._by_id.get(key)
        if schema is not None:
            return schema
        with self._lock:
            if key in self._by_id:
                return self._by_id[key]
            when, error = self._unknown.get(key, (0.0, None))
            if error is not None and time.monotonic() - when < UNKNOWN_S:
                raise UnknownSchema(*error.args)
            schema = self._read_cached(key)
            if schema is None:
                self._limit_unknown()
                try:
                    schema = self._source.by_id(key)
                except UnknownSchema as failure:
                    self._unknown[key] = time.monotonic(), failure
                    raise
                self._write_cached(f"id-{key}", schema)
            self._by_id[key] = schema
            return schema

    def _limit_unknown(self) -> None:
        """Forget old unknown ids where there are many. Raises RegistryError if many have been requested recently."""
        if len(self._unknown) < MAX_UNKNOWN:
            return
        now = time.monotonic()
        self._unknown = {key: (when, e) for key, (when, e) in self._unknown.items() if now - when < UNKNOWN_S}
        if len(self._unknown) < MAX_UNKNOWN:
            return
        if not isinstance(self._source, HttpSource):
            self._unknown.clear()  # it costs no requests
            return
        last = next(reversed(self._unknown))
        raise RegistryError(
            f"{MAX_UNKNOWN} schema ids of the last {UNKNOWN_S:.0f} seconds are unknown, such as {last}: values are not "
            "in a wire format of schema registries, or their schemas are in another registry; read them without one, "
            "or name the other",
            self.location,
        )

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject; asks the registry every time. Raises RegistryError."""
        return self._source.by_version(subject, LATEST)

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return a version of a subject. Raises RegistryError."""
        key = subject, version
        if key not in self._by_version:
            self._by_version[key] = self._source.by_version(subject, version)
        return self._by_version[key]

    def subjects(self) -> list[str]:
        """Return the names of all subjects, sorted. Raises RegistryError."""
        return self._source.subjects()

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, sorted. Raises RegistryError."""
        return self._source.versions(subject)

    def find(
        self, subject: str, schema: str, type: SchemaType = "AVRO", references: Iterable[Reference] = ()
    ) -> RegisteredSchema:
        """Return the registered form of a schema, with its id. Raises RegistryError if the subject does not have it."""
        return self._source.find(subject, RegisteredSchema(text=schema, type=type, references=tuple(references)))

    def register(
        self, subject: str, schema: str, type: SchemaType = "AVRO", references: Iterable[Reference] = ()
    ) -> RegisteredSchema:
        """Register a schema under a subject, unless it is there, and return it with its id. Raises RegistryError."""
        return self._source.register(subject, RegisteredSchema(text=schema, type=type, references=tuple(references)))

    def references(self, schema: RegisteredSchema) -> dict[str, str]:
        """Return the texts that a schema refers to, directly and through others, by name; used ones first.

        Raises InvalidSchema for circular references, and RegistryError if one cannot be found.
        """
        texts: dict[str, str] = {}
        self._add_references(schema, texts, ())
        return texts

    def _add_references(self, schema: RegisteredSchema, texts: dict[str, str], path: tuple[Reference, ...]) -> None:
        for reference in schema.references:
            if any((r.subject, r.version) == (reference.subject, reference.version) for r in path):
                names = " -> ".join(r.name for r in (*path, reference))
                raise InvalidSchema(f"circular references: {names}", schema.label)
            if reference.name in texts:
                continue
            if len(texts) + len(path) >= MAX_REFERENCES:
                raise InvalidSchema(f"more than {MAX_REFERENCES} references", schema.label)
            if len(path) >= MAX_REFERENCE_DEPTH:
                raise InvalidSchema(f"references more than {MAX_REFERENCE_DEPTH} deep", schema.label)
            used = self.version(reference.subject, reference.version)
            self._add_references(used, texts, (*path, reference))
            texts[reference.name] = used.text

    def _read_cached(self, key: SchemaId) -> RegisteredSchema | None:
        if self._cache is None:
            return None
        path = self._cache / f"id-{key}.json"
        try:
            return schema_from_json(json.loads(path.read_bytes()), str(path))
        except (OSError, ValueError, RegistryError):
            return None  # missing, or not written by this class: the registry has it

    def _write_cached(self, name: str, schema: RegisteredSchema) -> None:
        if self._cache is None:
            return
        part = self._cache / f".{name}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(schema.to_json()), "utf-8")
            part.replace(self._cache / f"{name}.json")
        except OSError:
            with suppress(OSError):  # a full or read-only disk costs a request, not the query
                part.unlink()


@lru_cache(maxsize=16)
def _of_entries(source: EntrySource) -> Registry:
    made = Registry.__new__(Registry)
    made._state = source
    made._open(source)
    return made


@lru_cache(maxsize=16)
def _reopen(url: str, cache: str | None, settings: tuple[tuple[str, Any], ...]) -> Registry:
    """Return the registry of this process with these settings, whose caches serve all tasks of a worker."""
    return Registry(url, cache=cache, **dict(settings))
