"""Frames (size, header, body) of every API and version, and records of internal topics with what precedes a body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.messages import registry
from tools.vectors import values
from tools.vectors.draft import Draft
from tools.vectors.messages import Body
from tools.vectors.releases import JUDGES, Layout

__all__ = ["data_drafts", "data_edits", "frame_drafts", "frame_edits"]

CLIENT_IDS = {"client": "client-1", "no-client": None, "empty-client": "", "long-client": "c" * 128}
PREFIXED = ("Key", "Value", "Assignment", "Subscription", "PrincipalData")
"""Ends of names of messages that follow their version; the other data messages stand alone."""


def frame_drafts(layout: Layout) -> Iterator[Draft]:
    """Return the frames of a request or response; none for a message that the three releases do not have."""
    if layout.spec.kind not in ("request", "response") or layout.maker not in JUDGES:
        return
    body = values.of(layout.spec, layout.version, values.Full())
    default = values.of(layout.spec, layout.version, values.Defaults())
    header_version = layout.spec.header_version(layout.version)
    if layout.spec.kind == "response":
        for case, correlation, value in (("full", 7, body), ("default", 2**31 - 1, default), ("negative", -1, default)):
            header = {"correlationId": correlation}
            reason = f"response with header version {header_version}, correlation id {correlation}"
            yield _frame(layout, case, header, value, reason, _header_source(layout))
        return
    for case, client in CLIENT_IDS.items():
        if header_version == 0 and client:
            continue
        header = {
            "requestApiKey": layout.spec.api_key,
            "requestApiVersion": layout.version,
            "correlationId": 7,
            **({"clientId": client} if header_version else {}),
        }
        reason = f"request with header version {header_version}, client id {values.dumped(client)}"
        yield _frame(layout, case, header, body if case == "client" else default, reason, _header_source(layout))


def _header_source(layout: Layout) -> str:
    return "KIP-511; W-81" if layout.spec.api_key == 18 else "KIP-482; W-80, W-81"


def _frame(layout: Layout, case: str, header: dict[str, Any], value: dict[str, Any], reason: str, source: str) -> Draft:
    return Draft(
        chapter="frames",
        type=layout.name,
        version=layout.version,
        suffix=layout.suffix,
        case=case,
        since=layout.since,
        until=layout.until,
        maker=layout.maker,
        judges=layout.judges,
        task={
            "op": "frame",
            "apiKey": layout.spec.api_key,
            "type": layout.name,
            "version": layout.version,
            "header": header,
            "value": value,
        },
        judge={"op": "unframe", "type": layout.name, "version": layout.version},
        reason=reason,
        source=source,
    )


def frame_edits(made: Draft) -> Iterator[Draft]:
    """Return invalid frames of a valid one: wrong sizes, and ends."""
    if made.case not in ("client", "full") or made.version % 4:
        return
    size, rest = len(made.data) - 4, made.data[4:]
    for case, data, reason in (
        ("size-short", (size - 1).to_bytes(4, "big") + rest[:-1], "the frame ends one byte before the message"),
        ("size-long", (size + 1).to_bytes(4, "big") + rest, "the size is one more than the bytes that follow"),
        ("size-negative", b"\xff\xff\xff\xff" + rest, "the size is -1"),
        ("size-only", made.data[:4], "only the size"),
        ("size-cut", made.data[:3], "three bytes of the size"),
        ("size-zero", bytes(4), "a size of 0, no header"),
        ("header-cut", (3).to_bytes(4, "big") + rest[:3], "the frame ends inside the header"),
    ):
        yield _changed(made, case, data, reason, "W-87; org.apache.kafka.common.network.NetworkReceive")
    if made.type.endswith("Request"):
        unknown = made.data[:4] + b"\x7f\xff" + made.data[6:]
        yield _changed(made, "api-unknown", unknown, "API key 32767, which no release has", "W-84")


def data_drafts(body: Body) -> Iterator[Draft]:
    """Return a record of an internal topic with the version or type before its body."""
    layout = body.layout
    kind = layout.spec.kind
    if layout.maker not in JUDGES:
        return
    # Remote log metadata has a serde of its own, and a record of it no case.
    if kind == "metadata" and registry.get(layout.name).SPEC.name.startswith("Remote"):
        return
    if kind == "data" and not layout.name.endswith(PREFIXED):
        return
    if kind not in ("metadata", "data", "coordinator-key", "coordinator-value"):
        return
    if kind != "metadata" and layout.maker == "2.8.2":
        return
    # The first frame version is of 2.8 only, and its classes have no other records.
    prefix = layout.spec.api_key if kind == "coordinator-key" else layout.version
    judge = {"op": "undata", "kind": kind, "type": layout.name, "version": layout.version, "prefix": prefix}
    about = {
        "metadata": "frame version, record type and version before the body, as varints",
        "coordinator-key": "record type before the body, an int16",
    }.get(kind, "version before the body, an int16")
    judges = layout.judges
    if kind == "metadata":  # 2.8's frame version was 0
        judges = tuple(each for each in judges if (each == "2.8.2") == (layout.maker == "2.8.2"))
    yield Draft(
        chapter="data",
        type=layout.name,
        version=layout.version,
        suffix=layout.suffix,
        case=body.case,
        since=layout.since,
        until=layout.maker if judges == ("2.8.2",) else layout.until,
        maker=layout.maker,
        judges=judges,
        task={**judge, "op": "data", "value": body.value, "tags": body.tags},
        judge=judge,
        encoding="kept" if body.tags else "canonical",
        reason=f"{body.reason}; {about}",
        source=body.source or ("KIP-631" if kind == "metadata" else "W-87"),
        is_spare=body.is_spare,
    )


def data_edits(made: Draft) -> Iterator[Draft]:
    """Return invalid records of a valid one."""
    if made.case != "full":
        return
    yield _changed(made, "empty", b"", "no bytes", "W-40")
    yield _changed(made, "cut-prefix", made.data[:1], "ends inside what precedes the body", "W-40")
    yield _changed(made, "cut-last", made.data[:-1], "the last byte is missing", "W-40")
    if made.judge["kind"] == "metadata":
        yield _changed(made, "trailing", made.data + b"\0", "one more byte after the record", "W-06")
        yield _changed(made, "frame-version", b"\x05" + made.data[1:], "frame version 5", "KIP-631")
        unknown = made.data[:1] + b"\xff\x7f" + made.data[2:]
        yield _changed(made, "record-type", unknown, "record type 16383, which no release has", "KIP-631")


def _changed(made: Draft, case: str, data: bytes, reason: str, source: str) -> Draft:
    return Draft(
        chapter=made.chapter,
        type=made.type,
        version=made.version,
        suffix=made.suffix,
        case=case,
        since=made.since,
        until=made.until,
        maker=made.maker,
        judges=made.judges,
        data=data,
        judge=made.judge,
        encoding="free",
        reason=reason,
        source=source,
    )
