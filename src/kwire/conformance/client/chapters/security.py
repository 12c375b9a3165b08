"""SASL: authentication, refusals, and reauthentication before a session ends."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import numbered, stored
from kwire.conformance.client.judging import consumed, records, reported, written_once
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.stage import PASSWORD, USER, Stage
from kwire.conformance.client.task import consume, produce

__all__ = ["chapter"]

chapter = Chapter("SASL")


def credentials(mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    """Return the settings of a user of the broker."""
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": USER,
        "sasl_password": password,
    }


def _authenticates(number: int, mechanism: str) -> None:
    def play(s: Stage) -> Steps:
        s.front.listener = "SASL_PLAINTEXT"
        topic = s.topic()
        out = yield produce(topic, records(3), enable_idempotence="false", **credentials(mechanism))
        written_once(s, out, topic, 3)

    steps = (f"The listener needs SASL; the client has a user of {mechanism}.", "Three records are written.")
    title = f"A client authenticates with {mechanism}"
    chapter.add(f"SASL-{number:03}", title, "KIP-43; KIP-84; KIP-152", play, steps=steps)


for _number, _mechanism in enumerate(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), 1):
    _authenticates(_number, _mechanism)


def _refused(number: int, mechanism: str) -> None:
    def play(s: Stage) -> Steps:
        s.front.listener = "SASL_PLAINTEXT"
        topic = s.topic()
        out = yield produce(topic, records(1), enable_idempotence="false", **credentials(mechanism, "wrong"))
        expect(not out.acked, "the record is acknowledged")
        reported(out, "the refusal")

    steps = ("The password is wrong.", "The application gets an error, without a storm of attempts.")
    title = f"A refusal of {mechanism} is reported"
    chapter.add(f"SASL-{number:03}", title, "KIP-152", play, steps=steps)


for _number, _mechanism in enumerate(("PLAIN", "SCRAM-SHA-256"), 4):
    _refused(_number, _mechanism)


@chapter.scenario("SASL-006", "KIP-368")
def reauthentication(s: Stage) -> Steps:
    """A client authenticates again before its session ends.

    Sessions last 1.5 s (connections.max.reauth.ms); records are written for 3 s.
    The client authenticates again on the same connection. One that does not is disconnected, and has to reconnect.
    """
    s.front.listener = "SASL_PLAINTEXT"
    topic = s.topic()
    spread = [{**each, "wait_ms": 250} for each in records(12)]
    out = yield produce(topic, spread, enable_idempotence="false", **credentials("PLAIN"))
    written_once(s, out, topic, 12)
    counts = Counter(each.connection for each in s.exchanges("SaslAuthenticate"))
    expect(max(counts.values(), default=0) > 1, "no SaslAuthenticate before the session ended", Verdict.DEVIATION)


@chapter.scenario("SASL-007", "KIP-368")
def ended_session(s: Stage) -> Steps:
    """A session that the broker ends is replaced.

    The broker ends the connection at a Fetch 600 ms after it was authenticated, as with an expired session.
    """
    s.front.listener = "SASL_PLAINTEXT"
    topic = stored(s, 3)
    began = time.monotonic()
    s.script.close("Fetch", times=2, when=lambda each: each.at > began)
    out = yield consume(topic, 3, **credentials("SCRAM-SHA-256"))
    consumed(out, numbered(3))
