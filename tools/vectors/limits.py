"""Limits of Kafka 4.4 on numbers of elements and tagged fields: the largest that it reads, and one more."""

from __future__ import annotations

from collections.abc import Iterator

from tools.vectors.draft import Draft
from tools.vectors.edits import varint

__all__ = ["limits"]

TAGS = 10_000
ELEMENTS = 1_000_000


def limits() -> Iterator[Draft]:
    """Return the cases, for one message with a tag section and one array."""
    for count in (TAGS, TAGS + 1):
        tags = b"".join(varint(1000 + number) + b"\0" for number in range(count))
        yield _draft(
            "ApiVersionsRequest", 3, f"tags-{count}", b"\2a\2b" + varint(count) + tags, f"{count} tagged fields"
        )
    for count in (ELEMENTS, ELEMENTS + 1):
        data = varint(count + 1) + b"\1" * count + b"\0"
        yield _draft("ListGroupsRequest", 4, f"elements-{count}", data, f"an array of {count} empty strings")


def _draft(name: str, version: int, case: str, data: bytes, reason: str) -> Draft:
    return Draft(
        chapter="messages",
        type=name,
        version=version,
        case=case,
        since={"ApiVersionsRequest": "2.4.1", "ListGroupsRequest": "2.6.3"}[name],
        until=None,
        maker="4.4.0",
        data=data,
        judge={"op": "decode", "type": name, "version": version},
        encoding="free",
        reason=reason,
        source="generated classes of Kafka 4.4: at most 10000 tagged fields, 1000000 elements",
    )
