"""What scenarios expect, in words that several of them share. Each raises Finding with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.program import Outcome
from kwire.conformance.client.scenario import Finding, expect
from kwire.conformance.client.stage import Stage

__all__ = [
    "acknowledged",
    "batches_sent",
    "consumed",
    "obeyed_throttle",
    "records",
    "reported",
    "retried",
    "spaced",
    "told_or",
    "values",
    "written_once",
]

CROSSING_S = 0.005
"""A request that arrives this soon after a response may have crossed it."""


def records(count: int, partition: int = 0, *, start: int = 0) -> list[dict[str, Any]]:
    """Return records of a task with values v0, v1, ..."""
    return [{"partition": partition, "key": f"k{i}", "value": f"v{i}"} for i in range(start, start + count)]


def values(count: int, start: int = 0) -> list[str]:
    """Return the values of `records`."""
    return [f"v{i}" for i in range(start, start + count)]


def acknowledged(out: Outcome, count: int) -> None:
    """Expect that each of the records was acknowledged once, and nothing else was reported."""
    missing = [i for i in range(count) if i not in out.acked]
    expect(not missing, f"records without an acknowledgement: {_some(missing)}{_said(out)}")
    expect(not out.failed, f"records that failed, though they are acknowledged: {_some(sorted(out.failed))}")
    expect(not out.doubled, f"records acknowledged twice: {_some(out.doubled)}")


def written_once(
    s: Stage, out: Outcome, topic: str, count: int, *, partition: int = 0, may_double: bool = False
) -> None:
    """Expect `count` records with an acknowledgement each, in the log once and in order.

    may_double: without idempotence, records whose response was lost may be there twice.
    """
    acknowledged(out, count)
    log, wanted = s.log(topic, partition), values(count)
    if may_double:
        log = list(dict.fromkeys(log))
    expect(set(wanted) <= set(log), f"acknowledged and not in the log: {_some([v for v in wanted if v not in log])}")
    expect(len(log) == len(wanted), f"the log has {len(log)} records instead of {len(wanted)}: {_some(log)}")
    expect(log == wanted, f"the records are in another order: {_some(log)}")
    if not may_double:
        wrong = {i: line.get("offset", i) for i, line in out.acked.items() if line.get("offset", i) not in (i, -1)}
        expect(not wrong, f"offsets that the program printed are wrong (record: offset): {wrong}")


def consumed(out: Outcome, wanted: Sequence[tuple[int, str | None]], partition: int = 0) -> None:
    """Expect these (offset, value) of a partition, in order, each once."""
    found = [(line["offset"], line["value"]) for line in out.received if line.get("partition", 0) == partition]
    missing = [offset for offset, _ in wanted if offset not in {each for each, _ in found}]
    expect(not missing, f"offsets that were not delivered: {_some(missing)}{_said(out)}")
    expect(len(found) == len({offset for offset, _ in found}), f"offsets delivered twice: {_some(_twice(found))}")
    extra = [offset for offset, _ in found if offset not in {each for each, _ in wanted}]
    expect(not extra, f"delivered, and should not be: offsets {_some(extra)}")
    expect(sorted(found, key=_offset) == found, f"delivered out of order: {_some([each for each, _ in found])}")
    changed = [offset for (offset, value), (_, other) in zip(found, wanted, strict=True) if value != other]
    expect(not changed, f"values are not those that were stored, at offsets {_some(changed)}")


def _offset(entry: tuple[int, object]) -> int:
    return entry[0]


def _twice(found: Sequence[tuple[int, object]]) -> list[int]:
    counts = Counter(offset for offset, _ in found)
    return [offset for offset, count in counts.items() if count > 1]


def retried(s: Stage, api: str, at_least: int = 2, when: Callable[[Exchange], bool] = lambda each: True) -> None:
    """Expect that a request was sent again."""
    count = len(s.exchanges(api, when))
    expect(count >= at_least, f"{count} {api} request{'s' * (count != 1)} instead of at least {at_least}")


def reported(out: Outcome, what: str) -> None:
    """Expect that the program was told of an error, before its deadline."""
    expect(not out.late, f"the client did not report {what}: it was still waiting at the deadline")
    expect(out.told, f"the client did not report {what}{_said(out)}")


def told_or(out: Outcome, judge: Callable[[], None], reason: str = "the application gets an error") -> None:
    """Judge; a client that reports the error to the application instead deviates, and loses nothing silently."""
    try:
        judge()
    except Finding:
        if out.told and not out.late:
            raise Finding(f"{reason}: {out.told[0][:120]}", Verdict.DEVIATION) from None
        raise


def spaced(s: Stage, api: str, seconds: float, when: Callable[[Exchange], bool] = lambda each: True) -> None:
    """Expect a pause between attempts."""
    times = [each.at for each in s.exchanges(api, when)]
    gaps = [b - a for a, b in pairwise(times)]
    expect(all(gap >= seconds for gap in gaps), f"{api} was sent again after {min(gaps, default=0) * 1000:.0f} ms")


def obeyed_throttle(s: Stage, api: str, ms: int) -> None:
    """Expect that nothing was sent on a connection for the time that a response of the API has asked for (KIP-219)."""
    asked = [each for each in s.exchanges(api) if each.answered_at and getattr(each.response, "throttle_time_ms", 0)]
    expect(asked, f"the client uses no version of {api} with a throttle time of KIP-219", Verdict.UNSUPPORTED)
    later = [
        other
        for each in asked
        for other in s.front.exchanges
        if other.connection == each.connection and other.at > (each.answered_at or 0)
    ]
    expect(later, "nothing was sent on the connection after the throttle time", Verdict.NOT_APPLICABLE)
    for each in asked:
        assert each.answered_at is not None
        early = [
            other
            for other in s.front.exchanges
            if other.connection == each.connection
            and each.answered_at + CROSSING_S < other.at < each.answered_at + 0.9 * ms / 1000
        ]
        if early:
            after = (early[0].at - each.answered_at) * 1000
            raise Finding(f"{early[0].api} was sent {after:.0f} ms after a response with throttle time {ms} ms")


def batches_sent(s: Stage, at_least: int) -> None:
    """Expect several Produce requests; with fewer there is nothing to judge."""
    count = len(s.exchanges("Produce"))
    what = f"{count} Produce request{'s' * (count != 1)}, and the scenario is about {at_least} or more"
    expect(count >= at_least, f"the client sent {what}", Verdict.NOT_APPLICABLE)


def _said(out: Outcome) -> str:
    if out.late:
        return "; the program was still running at the deadline"
    return f"; the program reported: {out.complaints[0][:160]}" if out.complaints else ""


def _some(found: Sequence[object]) -> str:
    text = ", ".join(str(each) for each in found[:8])
    return f"{text}, ..." if len(found) > 8 else text
