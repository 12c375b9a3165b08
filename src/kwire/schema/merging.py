"""Merge the definitions of one message from several Kafka releases.

Each version is defined as in the newest release that has it. Fields of older versions only are kept, after the field
that they follow in their own release. If two releases define a version differently, the newer one wins and the
difference is reported; the catalogue also keeps the older release's own definition.

A message that changed its kind or key between releases is a different message with the same name (the coordinators'
records in 4.0); only the newest release counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kwire.schema.model import ENCODABLE, Field, Message, Struct, normal_encodings
from kwire.schema.versions import MAX_VERSION, NONE, Versions


@dataclass(frozen=True, slots=True)
class Conflict:
    """Releases that disagree about one message. where: message, or field path; what: a sentence."""

    message: str
    release: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where} in Kafka {self.release}: {self.what}"


@dataclass(frozen=True, slots=True)
class _Source:
    """A release's definition and the versions that it decides."""

    release: str
    message: Message
    owned: frozenset[int]


def merge(definitions: Sequence[tuple[str, Message]]) -> tuple[Message, list[Conflict]]:
    """Merge (release, message) pairs of one name, newest first. Returns the message and what the releases disagree on.

    A release without valid versions of the message is ignored, unless no release has any.
    """
    live = [(release, message) for release, message in definitions if message.valid] or list(definitions[:1])
    newest = live[0][1]
    conflicts: list[Conflict] = []
    sources: list[_Source] = []
    taken: set[int] = set()
    for release, message in live:
        if (message.kind, message.api_key) != (newest.kind, newest.api_key):
            what = f"{_kind(message)} with versions {message.valid}, later {_kind(newest)}"
            conflicts.append(Conflict(newest.name, release, newest.name, what))
            continue
        sources.append(_Source(release, message, frozenset(set(message.valid) - taken)))
        taken |= set(message.valid)
    valid = Versions(min(taken), max(taken)) if taken else NONE
    if len(sources) == 1:
        return newest, conflicts
    merger = _Merger(newest.name, valid)
    root = merger.struct([(source, source.message.struct) for source in sources])
    merged = replace(
        newest,
        valid=valid,
        flexible=merger.flexible(sources),
        deprecated=merger.whole([(source, source.message.deprecated) for source in sources]),
        struct=root,
        structs=tuple(sorted(merger.built.values(), key=lambda struct: not struct.is_common)),
        listeners=tuple(dict.fromkeys(name for source in sources for name in source.message.listeners)),
        latest_version_unstable=newest.latest_version_unstable,
    )
    conflicts += merger.conflicts
    for source in sources:
        conflicts += _differences(source, merged)
    return merged, conflicts


def _kind(message: Message) -> str:
    key = "" if message.api_key is None else f" {message.api_key}"
    return f"{message.kind}{key}"


class _Merger:
    def __init__(self, name: str, valid: Versions) -> None:
        self.name, self.valid = name, valid
        self.built: dict[str, Struct] = {}
        self.conflicts: list[Conflict] = []

    def flexible(self, sources: Sequence[_Source]) -> Versions:
        flexible = {v for source in sources for v in source.owned if v in source.message.flexible}
        return Versions(min(flexible), MAX_VERSION) if flexible else sources[0].message.flexible

    def struct(self, sources: Sequence[tuple[_Source, Struct]]) -> Struct:
        newest = sources[0][1]
        fields: dict[str, list[tuple[_Source, Field]]] = {}
        order: list[str] = []
        for source, struct in sources:
            at = 0
            for field in struct.fields:
                if field.name in fields:
                    at = order.index(field.name) + 1
                elif source is sources[0][0] or any(v in field.versions for v in source.owned):
                    fields[field.name] = []
                    order.insert(at, field.name)
                    at += 1
                else:
                    continue
                fields[field.name].append((source, field))
        merged = tuple(self.field(newest.name, fields[name]) for name in order)
        return replace(newest, versions=self.whole([(s, t.versions) for s, t in sources]), fields=merged)

    def field(self, struct: str, sources: Sequence[tuple[_Source, Field]]) -> Field:
        newest = sources[0][1]
        nested = None
        if newest.struct is not None:
            same = [(s, f.struct) for s, f in sources if f.struct is not None]
            known = self.built.get(newest.struct.name)
            nested = known if known is not None else self.struct(same)
            self.built[nested.name] = nested
        for source, field in sources[1:]:
            if (field.is_array, field.struct is None, field.struct or field.type) != (
                newest.is_array,
                newest.struct is None,
                field.struct or newest.type,
            ):
                self.conflict(source, struct, field, f"{field.type_text}, later {newest.type_text}")
            if field.tag is not None and newest.tag is not None and field.tag != newest.tag:
                self.conflict(source, struct, field, f"tag {field.tag}, later {newest.tag}")
            if field.default != newest.default:
                self.conflict(source, struct, field, f"{field.default!r} by default, later {newest.default!r}")
        versions = self.whole([(s, f.versions) for s, f in sources])
        tag = next((f.tag for _, f in sources if f.tag is not None), None)
        return replace(
            newest,
            struct=nested,
            versions=versions,
            encodings=self.encodings(sources, versions),
            nullable=self.whole([(s, f.nullable) for s, f in sources]),
            tag=tag,
            tagged=self.whole([(s, f.tagged) for s, f in sources]),
            ignorable=any(f.ignorable for _, f in sources),
        )

    def encodings(
        self, sources: Sequence[tuple[_Source, Field]], versions: Versions
    ) -> tuple[tuple[Versions, str], ...]:
        """Return each version's encoding (KIP-625), from the release that decides it, else from the newest."""
        newest = sources[0][1]
        if newest.type not in ENCODABLE or not any(field.encodings for _, field in sources):
            return ()
        # Any other type is a conflict, which has been reported.
        known = ENCODABLE[: ENCODABLE.index(newest.type) + 1]
        alike = [(source, f) for source, f in sources if f.type in known and f.is_array == newest.is_array]
        deciding = {v: f for source, f in alike for v in source.owned if v in f.versions}
        return normal_encodings(
            newest.type,
            ((Versions(v, v), deciding.get(v, newest).wire_type(v)) for v in versions),
        )

    def conflict(self, source: _Source, struct: str, field: Field, what: str) -> None:
        where = field.name if struct == self.name else f"{struct}.{field.name}"
        self.conflicts.append(Conflict(self.name, source.release, f"{self.name}.{where}", what))

    def whole(self, sources: Sequence[tuple[_Source, Versions]]) -> Versions:
        """Merge ranges into one. Each source contributes the versions that it decides."""
        versions = {v for source, declared in sources for v in source.owned if v in declared}
        if not versions:
            return sources[0][1]
        lowest, highest = min(versions), max(versions)
        newest = sources[0][1]
        if highest == self.valid.highest and (newest.is_open or highest < newest.highest):
            highest = newest.highest
        return Versions(lowest, highest)


def layout(message: Message, version: int) -> Iterator[tuple[str, str, object]]:
    """Yield the wire layout of a version: (path, type with its form, default), nested structs included.

    Two definitions with one layout read and write the same bytes.
    """
    yield "", f"flexible={version in message.flexible}", None
    yield from _layout(message, message.struct, version, "")


def _layout(message: Message, struct: Struct, version: int, path: str) -> Iterator[tuple[str, str, object]]:
    for field in struct.fields:
        if version not in field.versions:
            continue
        here = f"{path}.{field.name}" if path else field.name
        form = field.type_text if field.struct is None else "[]struct" if field.is_array else "struct"
        encoding = field.encoding(version)
        form = f"{'[]' * field.is_array}{encoding}" if encoding is not None else form
        form += f" tag {field.tag}" if version in field.tagged else ""
        form += " nullable" if version in field.nullable else ""
        form += " flexible" if field.is_flexible(message, version) else ""
        yield here, form, repr(field.default)
        if field.struct is not None:
            yield from _layout(message, field.struct, version, here)


def _differences(source: _Source, merged: Message) -> Iterator[Conflict]:
    """Yield the differences between a release's versions and the merged ones, each with its versions."""
    by_difference: dict[tuple[str, str], list[int]] = {}
    for version in source.message.valid:
        own = {path: (form, default) for path, form, default in layout(source.message, version)}
        new = {path: (form, default) for path, form, default in layout(merged, version)}
        for path in dict.fromkeys((*own, *new)):
            if own.get(path) != new.get(path):
                what = f"{_form(own.get(path))}, later {_form(new.get(path))}"
                by_difference.setdefault((path, what), []).append(version)
        if list(own) != list(new) and own.keys() == new.keys():
            by_difference.setdefault(("", "another order of fields"), []).append(version)
    for (path, what), versions in by_difference.items():
        text = f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]}-{versions[-1]}"
        where = f"{merged.name}.{path}" if path else merged.name
        yield Conflict(merged.name, source.release, where, f"{what} ({text})")


def _form(form: tuple[str, object] | None) -> str:
    if form is None:
        return "absent"
    return form[0] if form[1] is None else f"{form[0]} default {form[1]}"
