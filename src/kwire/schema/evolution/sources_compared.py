"""Compare the definitions of two sources: findings with their file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kwire.schema.evolution.comparison import review
from kwire.schema.evolution.findings import Finding, Note, Violation
from kwire.schema.evolution.kafka_checker import kafka_violations
from kwire.schema.evolution.sources import Definition, Source
from kwire.schema.model import Message
from kwire.schema.versions import Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A finding with its file and line (from 1) in the new definition, or in the old one if it was removed."""

    finding: Finding
    file: str
    line: int


def compare_sources(
    old: Source, new: Source, *, history: Mapping[str, Sequence[Message]] | None = None, like_kafka: bool = False
) -> list[Located]:
    """List all findings about the definitions of two sources, notes included, by message name.

    Definitions are matched by name; the remaining ones by kind and API key (a renamed message, V-10). An unstable
    version of a request is unstable in its response, too. Removed messages are V-04, added ones are noted as V-20.
    """
    return [
        Located(finding=finding, file=place.file, line=_line(place.message, finding.where))
        for a, b in _matched(old, new)
        for finding, place in (
            *_compare(a, b, old, history or {}, like_kafka),
            *([] if like_kafka else _other_versions_than_the_response(b, old, new)),
        )
    ]


def _compare(
    a: Definition | None,
    b: Definition | None,
    old: Source,
    history: Mapping[str, Sequence[Message]],
    like_kafka: bool,
) -> Iterator[tuple[Finding, Definition]]:
    if a is None:
        assert b is not None
        what = f"new {b.message.kind}, versions {b.message.valid}"
        yield Note(rule="V-20", where=b.message.name, message=what), b
    elif b is None:
        released = _released(a.message, old)
        if released:
            yield _removed(a.message, released), a
        else:
            yield Note(rule="V-22", where=a.message.name, message="removed; no version of it was released"), a
    elif like_kafka:
        for violation in kafka_violations(a.message, b.message, as_written=True):
            yield violation, b
    else:
        older = history.get(b.message.name, ())
        for finding in review(a.message, b.message, released=_released(a.message, old), history=older):
            yield finding, b


def _other_versions_than_the_response(
    request: Definition | None, old: Source, new: Source
) -> Iterator[tuple[Finding, Definition]]:
    """V-56, unless the old definitions differ in the same way."""
    if request is None or request.message.kind != "request":
        return
    response = _by_key(new, "response", request.message.api_key)
    if response is None or response.valid == request.message.valid:
        return
    was = _by_key(old, "request", request.message.api_key), _by_key(old, "response", request.message.api_key)
    if [message and message.valid for message in was] != [request.message.valid, response.valid]:
        what = f"versions {request.message.valid} differ from those of {response.name}, {response.valid}"
        advice = "give a request and its response the same versions"
        yield Note(rule="V-56", where=request.message.name, message=what, advice=advice), request


def _removed(message: Message, released: Versions) -> Violation:
    what = f"removed, with versions {released}"
    advice = 'keep the definition, with "validVersions": "none" if a KIP removes it: the name and the key stay reserved'
    return Violation(rule="V-04", where=message.name, message=what, advice=advice)


def _matched(old: Source, new: Source) -> list[tuple[Definition | None, Definition | None]]:
    if old.is_file and new.is_file:
        return [(next(iter(old.definitions.values())), next(iter(new.definitions.values())))]
    pairs: list[tuple[Definition | None, Definition | None]] = []
    removed = {name: d for name, d in old.definitions.items() if name not in new.definitions}
    added = {name: d for name, d in new.definitions.items() if name not in old.definitions}
    by_key = {_key(d.message): name for name, d in added.items() if d.message.api_key is not None}
    for name, a in old.definitions.items():
        b = new.definitions.get(name)
        if b is None and _key(a.message) in by_key:
            b = added.pop(by_key.pop(_key(a.message)))
            del removed[name]
        if b is not None:
            pairs.append((a, b))
    if not new.is_file:
        pairs += [(a, None) for a in removed.values()]
    if not old.is_file:
        pairs += [(None, b) for b in added.values()]
    return sorted(pairs, key=lambda pair: next(d.message.name for d in pair if d is not None))


def _key(message: Message) -> tuple[str, int | None]:
    return message.kind, message.api_key


def _released(message: Message, source: Source) -> Versions:
    if message.kind != "response" or message.api_key is None:
        return message.stable
    request = _by_key(source, "request", message.api_key)
    return message.valid if request is None else request.stable.intersect(message.valid)


def _by_key(source: Source, kind: str, api_key: int | None) -> Message | None:
    messages = (definition.message for definition in source.definitions.values())
    return next((message for message in messages if _key(message) == (kind, api_key)), None)


def _line(message: Message, where: str) -> int:
    """Return the line of the field that `where` names, or of its closest parent in the definition."""
    line, struct = message.line, message.struct
    for step in where.split(".")[1:]:
        field = next((field for field in struct.fields if field.name == step), None)
        if field is None:
            break
        line = field.line
        if field.struct is None:
            break
        struct = field.struct
    return line
