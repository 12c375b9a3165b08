"""The model of the site: messages, their sources, pairs of messages, and the uses of names."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kwire.errors import OptionError
from kwire.pages.quantities import plural
from kwire.schema.merging import merge
from kwire.schema.model import Field, Message, Struct
from kwire.schema.versions import Versions

__all__ = ["Api", "Entry", "Place", "Protocol", "kafka", "of_definitions", "slug"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """A message of the site.

    page: stem of its file. module: its part of Kafka, or its directory. releases: its definition by release, oldest
    first; empty for users' own definitions. conflicts: differences between releases, as sentences.
    """

    message: Message
    module: str
    page: str
    releases: Mapping[str, Message]
    conflicts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The message's name."""
        return self.message.name


@dataclass(frozen=True, slots=True)
class Api:
    """A pair of messages: request and response, or the key and value of a coordinator record."""

    key: int | None
    name: str
    first: Entry | None
    second: Entry | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The existing ones of the two."""
        return tuple(entry for entry in (self.first, self.second) if entry is not None)


@dataclass(frozen=True, slots=True)
class Place:
    """One use of a name. path: of the field, from the message down. versions: those with the field."""

    entry: Entry
    path: tuple[str, ...]
    field: Field
    versions: Versions


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """All contents of the site. releases: oldest first. origin: the source of the definitions, as text."""

    title: str
    origin: str
    releases: tuple[str, ...]
    entries: tuple[Entry, ...]

    @functools.cached_property
    def by_name(self) -> dict[str, Entry]:
        """Entries by their message's name."""
        return {entry.name: entry for entry in self.entries}

    @functools.cached_property
    def apis(self) -> list[Api]:
        """Requests with their responses, by api key."""
        return self._pairs("request", "response", "Request", "Response")

    @functools.cached_property
    def records(self) -> list[Api]:
        """Coordinator records: key and value, by module and record type."""
        return self._pairs("coordinator-key", "coordinator-value", "Key", "Value")

    def of_kind(self, kind: str) -> list[Entry]:
        """Entries of one kind, by api key and name."""
        entries = [entry for entry in self.entries if entry.message.kind == kind]
        return sorted(entries, key=lambda entry: (entry.module, entry.message.api_key or 0, entry.name))

    def _pairs(self, first: str, second: str, *suffixes: str) -> list[Api]:
        """Pair by key and name without suffix. A key may have had several APIs; the older one comes first."""
        pairs: dict[tuple[str, int, str], list[Entry | None]] = {}
        for place, (kind, suffix) in enumerate(zip((first, second), suffixes, strict=True)):
            for entry in self.of_kind(kind):
                key = -1 if entry.message.api_key is None else entry.message.api_key
                module = "" if first == "request" else entry.module
                pairs.setdefault((module, key, entry.name.removesuffix(suffix)), [None, None])[place] = entry
        newest = self.releases[-1] if self.releases else None

        def order(item: tuple[tuple[str, int, str], list[Entry | None]]) -> tuple[str, int, bool, str]:
            (module, key, name), pair = item
            return module, key, any(entry is not None and newest in entry.releases for entry in pair), name

        return [Api(None if key < 0 else key, name, *pair) for (_, key, name), pair in sorted(pairs.items(), key=order)]

    @functools.cached_property
    def fields(self) -> dict[str, list[Place]]:
        """Every field name with all its uses, sorted."""
        return self._places(lambda field: field.name)

    @functools.cached_property
    def structs(self) -> dict[str, list[Place]]:
        """Every struct name with the fields of that type, sorted."""
        return self._places(lambda field: field.struct.name if field.struct is not None else None)

    def _places(self, name_of: Callable[[Field], str | None]) -> dict[str, list[Place]]:
        places: dict[str, list[Place]] = {}
        for entry in self.entries:
            for place in _walk(entry, entry.message.struct, (), entry.message.valid):
                name = name_of(place.field)
                if name is not None:
                    places.setdefault(name, []).append(place)
        return dict(sorted(places.items(), key=lambda item: (item[0].lower(), item[0])))


def _walk(entry: Entry, struct: Struct, path: tuple[str, ...], within: Versions) -> Iterator[Place]:
    for field in struct.fields:
        here, versions = (*path, field.name), field.versions.intersect(within)
        yield Place(entry, here, field, versions)
        if field.struct is not None:
            yield from _walk(entry, field.struct, here, versions)


def kafka() -> Protocol:
    """Return Kafka's own protocol: all releases merged, and the newest release of each major version."""
    from kwire.messages import registry

    newest_of_major = {release.partition(".")[0]: release for release in reversed(registry.RELEASES)}
    releases = tuple(newest_of_major.values())
    entries = []
    for name in registry.names():
        own = {r: registry.get(name, r).SPEC for r in releases if name in _names(r)}
        merged, module = registry.get(name).SPEC, _module(name)
        conflicts: list[str] = []
        if any(message is not merged for message in own.values()):
            conflicts = [str(conflict) for conflict in merge([(r, own[r]) for r in reversed(own)])[1]]
        entries.append(Entry(message=merged, module=module, page=name, releases=own, conflicts=tuple(conflicts)))
    return Protocol(
        title="Kafka's wire protocol",
        origin=f"the definitions of Apache Kafka {', '.join(releases)}",
        releases=releases,
        entries=tuple(entries),
    )


@functools.cache
def _names(release: str) -> frozenset[str]:
    from kwire.messages import registry

    return frozenset(registry.names(release))


def _module(name: str) -> str:
    from kwire.messages.index import MESSAGES

    return MESSAGES[name][0]


def of_definitions(messages: Sequence[Message]) -> Protocol:
    """Return the protocol of users' own messages. Raises OptionError for duplicate names."""
    duplicates = sorted({m.name for m in messages if sum(other.name == m.name for other in messages) > 1})
    if duplicates:
        raise OptionError(f"duplicate definitions: {', '.join(duplicates)}")
    pages: set[str] = set()
    entries = []
    for message in sorted(messages, key=lambda m: m.name):
        page, number = slug(message.name), 1
        while page.lower() in pages:  # some file systems ignore case
            number += 1
            page = f"{slug(message.name)}-{number}"
        pages.add(page.lower())
        folder = Path(message.file or "").parent.name
        entries.append(Entry(message=message, module=folder, page=page, releases={}))
    origin = plural(len(entries), "definition")
    return Protocol(title="Message definitions", origin=origin, releases=(), entries=tuple(entries))


def slug(name: str) -> str:
    """Return a name for file names and anchors, with special characters in hex."""
    safe = re.sub(r"[^A-Za-z0-9]", lambda match: f"_{ord(match[0]):x}", name)
    if len(safe) <= 80:
        return safe
    return f"{safe[:60]}_{hashlib.sha256(safe.encode()).hexdigest()[:12]}"
