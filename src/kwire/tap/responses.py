"""Responses of the cluster as clients of the tap receive them: other addresses, and only what the tap can read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from kwire.messages import ApiVersionsResponse, registry
from kwire.protocol.requests import response_codec, response_version
from kwire.protocol.versions import API_VERSIONS, supported
from kwire.tap.addresses import carries_addresses, replace_addresses

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.tap.addresses import Place
    from kwire.tap.topics import SeenTopics

__all__ = ["KNOWN", "LISTINGS", "Answer", "api_name", "changes", "read_answer"]

KNOWN = supported()
"""The versions that the tap can read, by API."""
FETCH, METADATA, DESCRIBE_TOPIC_PARTITIONS = 1, 3, 75
LISTINGS = frozenset({METADATA, DESCRIBE_TOPIC_PARTITIONS})
"""APIs whose responses name topics."""


class Answer:
    """A response that was read. frame: its bytes, if they may be sent as they are; version: of the body."""

    __slots__ = ("api_key", "body", "frame", "header", "version")

    def __init__(self, api_key: int, version: int, header: Any, body: Message, frame: bytes | None) -> None:
        self.api_key, self.version, self.header, self.body, self.frame = api_key, version, header, body, frame

    def encode(self) -> bytes:
        """Return the frame to send."""
        if self.frame is None:
            return response_codec(self.api_key, self.version).encode((self.header, self.body))
        return self.frame


def api_name(api_key: int) -> str:
    """Return the name of an API, such as Produce, or its key if the tap does not know it."""
    return registry.request(api_key).__name__.removesuffix("Request") if api_key in KNOWN else f"api key {api_key}"


@functools.cache
def changes(api_key: int, version: int) -> bool:
    """Return whether responses of a version may have to be changed, or tell about topics."""
    return api_key == API_VERSIONS or api_key in LISTINGS or carries_addresses(api_key, version)


def read_answer(frame: bytes, api_key: int, version: int, place: Place, topics: SeenTopics) -> Answer:
    """Read a response and replace what clients of the tap must not see. Raises DecodeError."""
    version = response_version(frame, api_key, version)
    header, body = response_codec(api_key, version).decode(frame, api_key == FETCH, True, True)
    has_changed = replace_addresses(body, api_key, version, place)
    if isinstance(body, ApiVersionsResponse):
        has_changed = limit_versions(body) or has_changed
    elif api_key in LISTINGS:
        topics.learn(body)
    return Answer(api_key, version, header, body, None if has_changed else frame)


def limit_versions(body: ApiVersionsResponse) -> bool:
    """Leave out the APIs and versions that the tap cannot read; returns whether there were any."""
    before = [(each.api_key, each.min_version, each.max_version) for each in body.api_keys]
    kept = []
    for each in body.api_keys:
        known = KNOWN.get(each.api_key)
        if known is None or each.min_version > known.highest or each.max_version < known.lowest:
            continue
        each.min_version = max(each.min_version, known.lowest)
        each.max_version = min(each.max_version, known.highest)
        kept.append(each)
    body.api_keys[:] = kept
    return [(each.api_key, each.min_version, each.max_version) for each in kept] != before
