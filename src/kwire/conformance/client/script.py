"""The script of a scenario: rules that change how the broker responds.

A rule applies to requests of an API, `times` of them after the first `after`, at one node or at all. All rules that
match a request apply to it, in the order in which they were added: the first that responds takes the place of the
broker, every change is made to the decoded response, and the last word is how its bytes are sent.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from kwire.broker.apis import SERVED
from kwire.broker.context import Peer
from kwire.broker.dispatch import error_response, make_call
from kwire.broker.faults import entities, parse_api, parse_error
from kwire.broker.faults.names import FETCH
from kwire.errors import BrokerError
from kwire.messages.base import Message

if TYPE_CHECKING:
    from kwire.conformance.client.exchange import Exchange
    from kwire.protocol.error_codes import ErrorCode

__all__ = ["Delivery", "Rule", "Script", "failed"]

SCRIPTED = "scripted"
Change = Callable[["Exchange", Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How a response is sent.

    closes: not at all, and the connection ends. silent: never, and the connection stays. delay_s: later. chunk_bytes,
    pause_s: in pieces. cut_bytes: that many of it, then the connection ends.
    """

    closes: bool = False
    silent: bool = False
    delay_s: float = 0.0
    chunk_bytes: int = 0
    pause_s: float = 0.0
    cut_bytes: int | None = None


@dataclass(slots=True, kw_only=True)
class Rule:
    """A rule. reply: makes the response without the broker; change: gets that or the broker's; encoded: its bytes.

    then: called when a request has matched, before it is handled. unhandled: the broker never sees the request.
    optional: the scenario is about something even if no request matches.
    """

    api_key: int | None
    times: int | None = None
    after: int = 0
    node: int | None = None
    when: Callable[[Exchange], bool] | None = None
    reply: Callable[[Exchange], Message | Awaitable[Message]] | None = None
    change: Change | None = None
    encoded: Callable[[bytes], bytes] | None = None
    then: Callable[[Exchange], object] | None = None
    delivery: Delivery | None = None
    unhandled: bool = False
    header_tags: tuple[tuple[int, bytes], ...] = ()
    optional: bool = False
    count: int = 0

    def takes(self, exchange: Exchange) -> bool:
        """Return whether the rule applies to a request, and count it."""
        if self.api_key not in (None, exchange.api_key) or self.node not in (None, exchange.node):
            return False
        if self.times == 0 or (self.when is not None and not self.when(exchange)):
            return False
        if self.after:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        self.count += 1
        return True


def failed(exchange: Exchange, error: ErrorCode) -> Message:
    """Return the response of kwire's broker to a request that fails as a whole, as its faults do."""
    assert exchange.request is not None
    if exchange.api_key == FETCH:  # the error of each partition, not that of the response, which later versions have
        body: Any = entities.failed(exchange.body, FETCH, exchange.version, error, SCRIPTED)
        for partition in (each for topic in body.responses for each in topic.partitions):
            partition.high_watermark = -1
        return cast("Message", body)
    peer = Peer(connection_id="", host="", port=0, listener="")
    return error_response(make_call(exchange.request, peer), BrokerError(SCRIPTED, error))


class Script:
    """The rules of a scenario. Thread-safe."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def add(self, api: str, **fields: Any) -> Rule:
        """Add a rule. Raises OptionError for an unknown API."""
        rule = Rule(api_key=parse_api(api), **fields)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules.clear()

    def take(self, exchange: Exchange) -> list[Rule]:
        """Return the rules that apply to a request."""
        with self._lock:
            return [rule for rule in self._rules if rule.takes(exchange)]

    def idle(self) -> list[Rule]:
        """Return the rules that no request has matched, though the scenario is about them."""
        with self._lock:
            return [rule for rule in self._rules if not rule.count and not rule.optional]

    # What scenarios say

    def fail(self, api: str, error: str, *, times: int | None = 1, **fields: Any) -> Rule:
        """Respond with an error, and do nothing else."""
        code = parse_error(error)
        if api == "Metadata":  # which tells of errors topic by topic, beside brokers
            fields.setdefault("when", _asks_for_topics)
            return self.add(api, times=times, change=lambda exchange, body: _fail_topics(body, code), **fields)
        return self.add(api, times=times, unhandled=True, reply=lambda exchange: failed(exchange, code), **fields)

    def lose(self, api: str, *, times: int | None = 1, **fields: Any) -> Rule:
        """Handle the request, and close the connection instead of a response."""
        return self.add(api, times=times, delivery=Delivery(closes=True), **fields)

    def close(self, api: str, *, times: int | None = 1, **fields: Any) -> Rule:
        """Close the connection; the request is not handled."""
        return self.add(api, times=times, unhandled=True, delivery=Delivery(closes=True), **fields)

    def silence(self, api: str, *, times: int | None = 1, **fields: Any) -> Rule:
        """Never respond; the request is not handled."""
        return self.add(api, times=times, unhandled=True, delivery=Delivery(silent=True), **fields)

    def delay(self, api: str, seconds: float, *, times: int | None = 1, **fields: Any) -> Rule:
        """Respond later."""
        return self.add(api, times=times, delivery=Delivery(delay_s=seconds), **fields)

    def trickle(self, api: str, chunk_bytes: int, pause_s: float, *, times: int | None = 1, **fields: Any) -> Rule:
        """Send the response in pieces."""
        return self.add(api, times=times, delivery=Delivery(chunk_bytes=chunk_bytes, pause_s=pause_s), **fields)

    def change(self, api: str, change: Change, *, times: int | None = None, **fields: Any) -> Rule:
        """Change the decoded response: change(exchange, body)."""
        return self.add(api, times=times, change=change, **fields)

    def throttle(self, api: str, ms: int, *, times: int | None = 1, **fields: Any) -> Rule:
        """Respond without delay, with a throttle time, as brokers do since KIP-219."""

        def change(exchange: Exchange, body: Any) -> None:
            body.throttle_time_ms = ms

        return self.add(api, times=times, change=change, **fields)


def _asks_for_topics(exchange: Exchange) -> bool:
    topics = exchange.body.topics
    return topics is None or bool(topics) or exchange.version == 0


def _fail_topics(body: Any, code: ErrorCode) -> None:
    for topic in body.topics:
        topic.error_code, topic.partitions = int(code), []


def served_versions() -> dict[int, tuple[int, int]]:
    """Return the versions that kwire's broker serves, by API key."""
    return {key: (api.lowest, api.highest) for key, api in SERVED.items()}
