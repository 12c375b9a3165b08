"""Version negotiation and unknown fields: older and newer brokers."""

from __future__ import annotations

import dataclasses
from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import numbered, stored
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import consumed, records, written_once
from kwire.conformance.client.program import Outcome
from kwire.conformance.client.scenario import Chapter, Finding, Steps, expect
from kwire.conformance.client.stage import Stage
from kwire.conformance.client.task import Task, consume, produce, transact, transaction
from kwire.messages import registry
from kwire.messages.api_versions_response import ApiVersion
from kwire.messages.base import Struct
from kwire.protocol.versions import supported

__all__ = ["chapter"]

chapter = Chapter("Versions and tags")
FUTURE = 99
TAG, TAG_VALUE = 9000, b"from a newer release"


def produce_some(s: Stage, **settings: str) -> Task:
    """Return a task that writes three records."""
    return produce(s.topic(), records(3), **{"enable_idempotence": "false", **settings})


@chapter.scenario("VERSIONS-001", "KIP-511")
def fallback(s: Stage) -> Steps:
    """ApiVersions falls back to what the broker serves.

    The broker serves ApiVersions 0 to 2, and responds to a newer one in version 0 with UNSUPPORTED_VERSION.
    The client asks again in a version that is served.
    """
    s.versions("ApiVersions", 0, 2)
    task = produce_some(s)
    out = yield task
    written_once(s, out, task.topic, 3)
    newer = s.exchanges("ApiVersions", lambda each: each.version > 2)
    expect(newer, "the client asks in a version that the broker serves", Verdict.NOT_APPLICABLE)


@chapter.scenario("VERSIONS-002", "KIP-511")
def fallback_to_zero(s: Stage) -> Steps:
    """ApiVersions falls back to version 0.

    The broker serves ApiVersions 0 only.
    """
    s.versions("ApiVersions", 0, 0)
    task = produce_some(s)
    out = yield task
    written_once(s, out, task.topic, 3)
    newer = s.exchanges("ApiVersions", lambda each: each.version > 0)
    expect(newer, "the client asks in a version that the broker serves", Verdict.NOT_APPLICABLE)


@chapter.scenario("VERSIONS-003", "KIP-511: ApiVersionsRequest 3")
def software(s: Stage) -> Steps:
    """A client names itself in ApiVersions 3 and later.

    Name and version have letters, digits, dashes and dots only; the broker refuses others.
    """
    task = produce_some(s)
    out = yield task
    written_once(s, out, task.topic, 3)
    asked = s.exchanges("ApiVersions", lambda each: each.version >= 3 and each.body is not None)
    expect(asked, "the client uses ApiVersions 2 or older", Verdict.UNSUPPORTED)
    for each in asked:
        code = each.response.error_code if each.response is not None else 0
        expect(not code, f"ApiVersions {each.version}: the name or version is refused with error {code}")


@chapter.scenario("VERSIONS-004", "KIP-35")
def future(s: Stage) -> Steps:
    """A newer broker is used in versions that the client knows.

    The broker lists version 99 as the highest of each API, and APIs that nobody knows yet.
    """
    from kwire.conformance.client.script import served_versions

    for key, (low, _) in served_versions().items():
        s.front.versions[key] = (low, FUTURE)

    def more(exchange: Exchange, body: Any) -> None:
        body.api_keys = [*body.api_keys, *(ApiVersion(api_key=key, min_version=0, max_version=5) for key in (900, 901))]

    s.script.change("ApiVersions", more)
    task = produce_some(s)
    out = yield task
    written_once(s, out, task.topic, 3)
    out = yield consume(task.topic, 3)
    consumed(out, numbered(3))


@chapter.scenario("VERSIONS-005", "KIP-35")
def group_of_the_future(s: Stage) -> Steps:
    """Groups work with a newer broker.

    The broker lists version 99 as the highest of each API; the client joins a group and commits.
    """
    from kwire.conformance.client.script import served_versions

    for key, (low, _) in served_versions().items():
        s.front.versions[key] = (low, FUTURE)
    out = yield consume(stored(s, 3), 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")


def _tag(value: Any) -> None:
    """Add an unknown tagged field to every structure of a message."""
    if isinstance(value, list):
        for each in value:
            _tag(each)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            _tag(getattr(value, name))
        if hasattr(value, "unknown_tagged_fields"):
            value.unknown_tagged_fields = [(TAG, TAG_VALUE)]


def _is_flexible(exchange: Exchange) -> bool:
    cls = registry.response(exchange.api_key)
    return exchange.api != "ApiVersions" and exchange.version in cls.FLEXIBLE_VERSIONS


def has_tags(s: Stage, *apis: str) -> None:
    """Expect that responses of one of these APIs had tagged fields."""
    used = any(s.exchanges(api, _is_flexible) for api in apis)
    expect(used, f"the client uses no version of {' or '.join(apis)} with tagged fields", Verdict.UNSUPPORTED)


def add_tags(exchange: Exchange, body: Any) -> None:
    """Add unknown tagged fields to a response of a flexible version."""
    version = 0 if exchange.request is None else exchange.request.response_version
    if version in type(body).FLEXIBLE_VERSIONS and not (exchange.api == "ApiVersions" and body.error_code):
        _tag(body)


@chapter.scenario("VERSIONS-006", "KIP-482")
def tags_producing(s: Stage) -> Steps:
    """Unknown tagged fields are skipped when producing.

    Every structure of every flexible response has a tagged field of a newer release.
    """
    s.script.change("*", add_tags)
    task = produce_some(s, enable_idempotence="true")
    out = yield task
    written_once(s, out, task.topic, 3)
    has_tags(s, "Produce")


@chapter.scenario("VERSIONS-007", "KIP-482")
def tags_consuming(s: Stage) -> Steps:
    """Unknown tagged fields are skipped when consuming.

    Every structure of every flexible response has a tagged field of a newer release.
    """
    topic = stored(s, 3)
    s.script.change("*", add_tags)
    out = yield consume(topic, 3)
    consumed(out, numbered(3))
    has_tags(s, "Fetch")


@chapter.scenario("VERSIONS-008", "KIP-482")
def tags_in_groups(s: Stage) -> Steps:
    """Unknown tagged fields are skipped in groups.

    Every structure of every flexible response has a tagged field of a newer release.
    """
    topic = stored(s, 3)
    s.script.change("*", add_tags)
    out = yield consume(topic, 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")
    has_tags(s, "JoinGroup", "FindCoordinator", "OffsetFetch", "OffsetCommit")


@chapter.scenario("VERSIONS-009", "KIP-482")
def tags_in_transactions(s: Stage) -> Steps:
    """Unknown tagged fields are skipped in transactions.

    Every structure of every flexible response has a tagged field of a newer release.
    """
    topic = s.topic()
    s.script.change("*", add_tags)
    out = yield transact(topic, s.name("txn"), [transaction(records(3))])
    expect(out.ended == ["commit"], f"the transaction was not committed: {out.complaints[:1]}")
    written_once(s, out, topic, 3)
    has_tags(s, "EndTxn", "AddPartitionsToTxn", "InitProducerId", "Produce")


@chapter.scenario("VERSIONS-010", "KIP-482: response header 1")
def header_tags(s: Stage) -> Steps:
    """Unknown tagged fields of response headers are skipped.

    The headers of all flexible responses but ApiVersions have a tagged field of 300 bytes.
    """
    topic = stored(s, 3)
    s.script.add("*", header_tags=((TAG, b"x" * 300),), when=_is_flexible)
    out = yield consume(topic, 3)
    consumed(out, numbered(3))
    has_tags(s, "Fetch")


def _unused(s: Stage, out: Outcome, api: str, what: str) -> None:
    """A client without the version is not supported, if it says so."""
    if not s.exchanges(api) and (out.complaints or out.late):
        why = out.complaints[0][:120] if out.complaints else "it waits, without a request"
        raise Finding(f"the client does not have {what}: {why}", Verdict.UNSUPPORTED)


def _with_produce(version: int) -> None:
    def play(s: Stage) -> Steps:
        s.versions("Produce", 0, version)
        task = produce_some(s)
        out = yield task
        _unused(s, out, "Produce", f"Produce {version} or older")
        written_once(s, out, task.topic, 3)

    steps = (f"The broker serves Produce 0 to {version}.", "Records are written in a format that the version has.")
    chapter.add(f"VERSIONS-PRODUCE-{version:02}", f"Produce {version} is the newest", "KIP-35", play, steps=steps)


def _with_fetch(version: int) -> None:
    def play(s: Stage) -> Steps:
        topic = stored(s, 3, 2)
        s.versions("Fetch", 0, version)
        out = yield dataclasses.replace(consume(topic, 5), deadline_s=8)
        _unused(s, out, "Fetch", f"Fetch {version} or older")
        consumed(out, numbered(5))

    magic = 0 if version < 2 else 1 if version < 4 else 2
    steps = (f"The broker serves Fetch 0 to {version}, whose records have magic {magic}.", "All are delivered.")
    chapter.add(f"VERSIONS-FETCH-{version:02}", f"Fetch {version} is the newest", "KIP-35", play, steps=steps)


def _with_release(release: str) -> None:
    def play(s: Stage) -> Steps:
        from kwire.conformance.client.script import served_versions

        listed = supported(release)
        for key, (low, high) in served_versions().items():
            known = listed.get(key)
            s.front.versions[key] = None if known is None else (max(low, known.lowest), min(high, known.highest))
        s.front.hides_features = True
        task = produce_some(s)
        out = yield task
        _unused(s, out, "Produce", f"the versions of Kafka {release}")
        written_once(s, out, task.topic, 3)
        out = yield consume(task.topic, 3, group=s.name("group"), commit=True)
        consumed(out, numbered(3))
        expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")

    steps = (f"The broker lists the APIs and versions of Kafka {release}.", "Produce, join a group, read, and commit.")
    chapter.add(f"VERSIONS-KAFKA-{release}", f"A broker of Kafka {release}", "KIP-896", play, steps=steps)


for _version in range(14):
    _with_produce(_version)
for _version in range(19):
    _with_fetch(_version)
_MINORS = {each.rpartition(".")[0]: each for each in sorted(registry.RELEASES)}
for _minor in ("0.11.0", "1.0", "1.1", "2.0", "2.1", "2.3", "2.4", "2.8", "3.0", "3.6", "3.9", "4.0", "4.1"):
    if _minor in _MINORS:
        _with_release(_MINORS[_minor])
