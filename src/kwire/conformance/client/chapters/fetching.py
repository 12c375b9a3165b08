"""Fetch: connections, throttling and sessions."""

from __future__ import annotations

from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import each_part, numbered, stored
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import consumed, obeyed_throttle, told_or
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.script import Delivery
from kwire.conformance.client.stage import Stage
from kwire.conformance.client.task import consume
from kwire.conformance.client.wire import STORM

__all__ = ["chapter", "first_batch_only"]

chapter = Chapter("Consumer: connections and sessions")


@chapter.scenario("CONSUME-026", "KIP-219")
def throttled(s: Stage) -> Steps:
    """A throttle time of a Fetch is obeyed.

    The first two Fetch responses are empty and have a throttle time of 400 ms.
    """
    topic = stored(s, 3)

    def change(exchange: Exchange, body: Any) -> None:
        body.responses, body.throttle_time_ms = [], 400

    s.script.change("Fetch", change, times=2, when=lambda each: each.version >= 8)
    out = yield consume(topic, 3)
    consumed(out, numbered(3))
    obeyed_throttle(s, "Fetch", 400)


@chapter.scenario("CONSUME-027", "NetworkClient")
def slow_bytes(s: Stage) -> Steps:
    """A response that arrives in small pieces is one response.

    Fetch responses arrive seven bytes at a time.
    """
    topic = stored(s, 5)
    s.script.trickle("Fetch", 7, 0.001, times=3)
    out = yield consume(topic, 5)
    consumed(out, numbered(5))


@chapter.scenario("CONSUME-028", "NetworkClient")
def cut_response(s: Stage) -> Steps:
    """A connection that ends inside a response delivers nothing of it twice.

    The first Fetch response ends in its middle, with the connection.
    """
    topic = stored(s, 5)
    s.script.add("Fetch", times=1, delivery=Delivery(cut_bytes=60))
    out = yield consume(topic, 5)
    consumed(out, numbered(5))


@chapter.scenario("CONSUME-029", "NetworkClient: request.timeout.ms")
def silent(s: Stage) -> Steps:
    """A Fetch without a response is sent again.

    The broker does not respond to the first Fetch; request.timeout.ms is 3 s.
    """
    topic = stored(s, 3)
    s.script.silence("Fetch")
    out = yield consume(topic, 3)
    consumed(out, numbered(3))


@chapter.scenario("CONSUME-030", "NetworkClient")
def closing(s: Stage) -> Steps:
    """A broker that closes connections is asked again.

    The broker closes the connection at the first three Fetch requests.
    """
    topic = stored(s, 3)
    s.script.close("Fetch", times=3)
    out = yield consume(topic, 3)
    consumed(out, numbered(3))


@chapter.scenario("CONSUME-031", "NetworkClient.correlate")
def wrong_correlation(s: Stage) -> Steps:
    """A response to something else is not taken.

    The first Fetch response has another correlation id.
    The client gives up the connection, or reports it.
    """
    topic = stored(s, 3)
    s.script.add("Fetch", times=1, encoded=lambda data: data[:4] + b"\x7f\x00\x00\x01" + data[8:])
    out = yield consume(topic, 3)
    told_or(out, lambda: consumed(out, numbered(3)))


@chapter.scenario("CONSUME-032", "NetworkReceive")
def impossible_length(s: Stage) -> Steps:
    """A response of an impossible size does not take the client down.

    The first Fetch response announces 2 GB, or a negative size.
    """
    topic = stored(s, 3)
    s.script.add("Fetch", times=1, encoded=lambda data: b"\xff\xff\xff\xf0" + data[4:])
    out = yield consume(topic, 3)
    told_or(out, lambda: consumed(out, numbered(3)))


@chapter.scenario("CONSUME-033", "FetchRequest: maxWaitMs")
def idle(s: Stage) -> Steps:
    """At the end of the log a client waits in its Fetch.

    After the last record, the client asks at most once in fetch.max.wait.ms.
    """
    topic = stored(s, 3)
    out = yield consume(topic, 3, fetch_max_wait_ms="100")
    consumed(out, numbered(3))
    at_end = [
        each.at
        for each in s.exchanges("Fetch")
        if each.body.topics and all(p.fetch_offset == 3 for t in each.body.topics for p in t.partitions)
    ]
    expect(at_end, "the client sent no Fetch at the end of the log", Verdict.NOT_APPLICABLE)
    expect(len(at_end) < STORM // 2, f"{len(at_end)} Fetch requests at the end of the log in 300 ms")


@chapter.scenario("CONSUME-034", "KIP-227")
def session(s: Stage) -> Steps:
    """Fetch sessions leave out what has not changed.

    The broker grants a session for ten partitions; responses have the partitions with news only.
    """
    s.front.sessions = True
    topic = s.topic(partitions=10)
    for partition in range(10):
        s.write(topic, f"p{partition}".encode(), partition=partition)
    out = yield consume(topic, 10, partitions=range(10))
    for partition in range(10):
        consumed(out, [(0, f"p{partition}")], partition)
    expect(s.exchanges("Fetch", _in_session), "the client does not use Fetch sessions", Verdict.UNSUPPORTED)


def first_batch_only(s: Stage, times: int | None = None) -> None:
    """Return a batch at a time, so that a consumer needs several requests."""

    def one(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            if part.records:
                data = bytes(part.records)
                part.records = data[: int.from_bytes(data[8:12], "big") + 12]

    s.script.change("Fetch", one, times=times)


def _in_session(exchange: Exchange) -> bool:
    return exchange.version >= 7 and exchange.body.session_id > 0


def _session_error(code: int) -> Any:
    def change(exchange: Exchange, body: Any) -> None:
        body.error_code, body.session_id, body.responses = code, 0, []

    return change


@chapter.scenario("CONSUME-035", "KIP-227: FETCH_SESSION_ID_NOT_FOUND")
def evicted(s: Stage) -> Steps:
    """A session that the broker has forgotten is begun again.

    The second Fetch of the session gets FETCH_SESSION_ID_NOT_FOUND.
    """
    s.front.sessions = True
    topic = stored(s, 2, 2)
    first_batch_only(s, times=1)
    refusal = s.script.change("Fetch", _session_error(70), times=1, when=_in_session, optional=True)
    out = yield consume(topic, 4)
    consumed(out, numbered(4))
    expect(refusal.count, "the client does not use Fetch sessions", Verdict.UNSUPPORTED)


@chapter.scenario("CONSUME-036", "KIP-227: INVALID_FETCH_SESSION_EPOCH")
def wrong_session_epoch(s: Stage) -> Steps:
    """A session epoch that the broker refuses begins a new session.

    The second Fetch of the session gets INVALID_FETCH_SESSION_EPOCH.
    """
    s.front.sessions = True
    topic = stored(s, 2, 2)
    first_batch_only(s, times=1)
    refusal = s.script.change("Fetch", _session_error(71), times=1, when=_in_session, optional=True)
    out = yield consume(topic, 4)
    consumed(out, numbered(4))
    expect(refusal.count, "the client does not use Fetch sessions", Verdict.UNSUPPORTED)
