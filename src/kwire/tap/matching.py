"""Requests of a client matched with those of a recording: by API and version, by content, in order.

Not compared is what differs in each run: timestamps, producer ids and checksums of records, ids of members, secrets.
Requests that only read may come more often than in the recording: the last response to them is repeated. Those that
change something may not. Fetches are matched by partition, see kwire.tap.fetches.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from kwire.capture import Exchange, read_capture
from kwire.capture.bodies import bodies_of
from kwire.errors import KwireError, Malformed, OptionError
from kwire.messages import FetchRequest, FetchResponse, registry
from kwire.messages.base import Message, Struct
from kwire.protocol.secrets import hide_secrets
from kwire.records import read_batches
from kwire.tap.fetches import Fetches
from kwire.tap.responses import api_name

__all__ = ["Match", "Mismatch", "Recording"]

PRODUCE, FETCH = 0, 1
READS = ("Describe", "List", "Find", "Get")
ALSO_READS = frozenset(
    {
        "ApiVersions", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "Heartbeat", "Metadata", "OffsetFetch",
        "OffsetForLeaderEpoch", "PushTelemetry", "ShareGroupDescribe", "ShareGroupHeartbeat", "StreamsGroupDescribe",
        "StreamsGroupHeartbeat",
    }
)  # fmt: skip
"""APIs, or beginnings of names, whose requests may be repeated: they read, ask whether anything is new, or report."""
OWN_IDS = frozenset({68, 76, 88})
"""Heartbeats of members that choose their ids."""
SHOWN = 120


class Mismatch(NamedTuple):
    """A request that the recording does not have. what: the difference."""

    api: str
    version: int
    client_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.api} v{self.version} from {self.client_id or 'a client without an id'}: {self.what}"


class Recorded:
    """An exchange of a recording."""

    def __init__(self, number: int, exchange: Exchange, body: Message, response: bytes | None) -> None:
        self.number, self.response = number, response
        self.content = content_of(body)
        self.version = exchange.response_version()
        self.is_used = False


class Match(NamedTuple):
    """The exchange to respond with, None to close the connection, and what does not match."""

    recorded: Recorded | None
    mismatch: str = ""


class Recording:
    """The requests of a capture with their responses. problems: what the capture lacks.

    Raises OptionError for a file without requests that can be replayed, LogError and Malformed for one that cannot be
    read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems = self.count = 0
        self.fetches = Fetches()
        self.all: list[Recorded] = []
        self._by_api: dict[tuple[int, int], list[Recorded]] = defaultdict(list)
        self._by_content: dict[tuple[int, int, Any], deque[Recorded]] = defaultdict(deque)
        self._last: dict[tuple[int, int, Any], Recorded] = {}
        if "://" not in path and not os.path.exists(path):
            raise OptionError(f"{path}: no such file or directory")
        self._load(path)
        if not self.count:
            raise OptionError(f"{path}: has no requests with their responses to replay")

    def _load(self, path: str) -> None:
        writes = 0
        try:
            for exchange in read_capture(path):
                key, version = exchange.api_key, exchange.api_version
                if key == FETCH:
                    self._add_fetch(exchange, writes)
                    continue
                body = next((made for made in _requests(exchange)), None)
                response = None if exchange.response is None else exchange.response.data
                if key is None or version is None or body is None or (exchange.expects_response and response is None):
                    self.problems += 1
                    continue
                recorded = Recorded(len(self.all) + 1, exchange, body, response)
                writes += key == PRODUCE
                self.all.append(recorded)
                self.count += 1
                self._by_api[key, version].append(recorded)
                self._by_content[key, version, recorded.content].append(recorded)
        except Malformed as error:
            raise OptionError(str(error)) from None

    def _add_fetch(self, exchange: Exchange, writes: int) -> None:
        try:
            request, response = exchange.request_message(), exchange.response_message()
        except KwireError:
            self.problems += 1
            return
        if isinstance(request, FetchRequest) and (response is None or isinstance(response, FetchResponse)):
            self.fetches.add(request, response, writes)
            self.count += 1

    @property
    def unused(self) -> int:
        """How many recorded requests have not been sent."""
        return sum(not each.is_used for each in self.all)

    def match(self, api_key: int, version: int, body: Message) -> Match:
        """Return the exchange that a request matches. `use` makes it the past."""
        content = content_of(body)
        waiting = self._by_content.get((api_key, version, content))
        while waiting and waiting[0].is_used:
            waiting.popleft()
        if waiting:
            return Match(waiting[0])
        last = self._last.get((api_key, version, content))
        if last is not None and may_repeat(api_key):
            return Match(last)
        others = self._by_api.get((api_key, version), [])
        following = next((each for each in others if not each.is_used), None)
        if last is not None:
            return Match(last, "sent more often than in the recording")
        if following is not None:
            return Match(
                following, f"differs from request {following.number}: {difference(following.content, content)}"
            )
        if others:
            return Match(others[-1], f"not in the recording: {difference(others[-1].content, content)}")
        versions = sorted({known for key, known in self._by_api if key == api_key})
        what = f"recorded with version {', '.join(map(str, versions))}" if versions else "not in the recording"
        return Match(None, what)

    def use(self, api_key: int, version: int, body: Message, recorded: Recorded) -> None:
        """Note that a recorded exchange has been replayed."""
        if not recorded.is_used and api_key == PRODUCE:
            self.fetches.writes += 1
        recorded.is_used = True
        self._last[api_key, version, content_of(body)] = recorded


def may_repeat(api_key: int) -> bool:
    """Return whether requests of an API change nothing, and may come more often than in the recording."""
    name = api_name(api_key)
    return name.startswith(READS) or name in ALSO_READS


def _requests(exchange: Exchange) -> Iterator[Message]:
    """Yield the decoded request of an exchange, if it can be decoded."""
    for cls, version, data in bodies_of(exchange):
        if cls is registry.request(exchange.api_key or 0):
            try:
                yield hide_secrets(cls.decode(data, version=version))
            except KwireError:
                return


def content_of(body: Message) -> Any:
    """Return what is compared of a request, in a form that can be a key."""
    return _frozen(hide_secrets(body), "")


def _frozen(value: Any, name: str) -> Any:
    if isinstance(value, Struct):
        fields = ((each, getattr(value, each)) for each in value.__struct_fields__ if each != "unknown_tagged_fields")
        return tuple((each, _frozen(found, each)) for each, found in fields if each != "member_id")
    if isinstance(value, list):
        return tuple(_frozen(each, name) for each in value)
    if name == "records" and value is not None:
        return _records(bytes(value))
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _records(data: bytes) -> Any:
    try:
        return tuple(
            (record.key, record.value, tuple(record.headers))
            for batch in read_batches(data)
            for record in batch.records()
        )
    except KwireError:
        return data


def difference(recorded: Any, sent: Any, path: str = "") -> str:
    """Return where two contents first differ, with both values."""
    if isinstance(recorded, tuple) and isinstance(sent, tuple) and len(recorded) == len(sent):
        for place, (one, other) in enumerate(zip(recorded, sent, strict=True)):
            if one != other:
                is_field = isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and one[0] == other[0]
                step = one[0] if is_field else str(place)
                below = (one[1], other[1]) if is_field else (one, other)
                return difference(*below, f"{path}.{step}" if path else step)
    return f"{path or 'content'} was {shown(recorded)}, is {shown(sent)}"


def shown(value: Any) -> str:
    """Return a value, cut to a length that fits a line."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
