"""One case of the data set: bytes, their value, and whether a decoder has to accept them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["Case", "Encoding", "Outcome", "release_order"]

Outcome = Literal["accept", "reject", "either"]
Encoding = Literal["canonical", "kept", "free"]


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A line of the data set, with the fields in the order of the JSON.

    id: stable; chapter, type, version, case. type: what the bytes are, such as a message, a primitive or "records".
    version: of the message, 0 for what has no versions. since, until: first and last Kafka release with this layout;
    until is None if the newest has it. bytes: hex. value: Kafka's JSON form; None for bytes that are never accepted.
    verdict: of a decoder. encoding: "canonical" if an encoder has to write exactly these bytes for the value; "kept" if
    Kafka writes them again after it has read them, although the value does not say it all (unknown tagged fields);
    "free" if other bytes are written. reason: what the case is about, or what is wrong with it. source: KIP, Kafka
    class or rule of docs/spec. made: the release whose classes wrote the bytes, or those that were edited. kafka:
    outcome by release, if the verdict is "either".
    """

    id: str
    chapter: str
    type: str
    version: int
    since: str
    until: str | None
    bytes: str
    value: Any
    verdict: Outcome
    encoding: Encoding
    reason: str
    source: str
    made: str
    kafka: dict[str, str] | None = None

    @property
    def newest(self) -> str:
        """A release that has the layout: the newest, or the one whose classes wrote the bytes."""
        return self.until or self.made

    def is_in(self, release: str) -> bool:
        """Return whether a Kafka release, such as "4.4" or "3.9.1", has the layout."""
        order = release_order(release)
        if release_order(self.since)[: len(order)] > order:
            return False
        return self.until is None or order[:2] <= release_order(self.until)[:2]


def release_order(release: str) -> tuple[int, ...]:
    """Return a key that sorts releases."""
    return tuple(int(part) for part in release.split("."))
