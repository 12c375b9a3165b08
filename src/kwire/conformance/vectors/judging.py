"""The verdict on a codec for each case of the data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kwire.conformance.check import Check, Verdict
from kwire.conformance.report import Evidence, Result
from kwire.conformance.vectors.case import Case
from kwire.conformance.vectors.known import NOTHING_KNOWN, PREFIX, KnownFailures
from kwire.conformance.vectors.runner import RunnerFault

__all__ = ["Ask", "check_of", "judge", "judge_all"]

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""Return the response to a request. Raises RunnerFault."""

SHOWN = 120
RESPONSES = ("value", "bytes", "rejected", "unsupported", "accepted")


class _Finding(NamedTuple):
    """A verdict with its reason; expected and observed are values of JSON."""

    verdict: Verdict
    reason: str
    expected: Any = None
    observed: Any = None


def check_of(case: Case) -> Check:
    """Return a case as a check of a report."""
    return Check(
        id=case.id,
        chapter=case.chapter,
        title=case.reason,
        source=case.source,
        since=case.since,
        until=case.until,
    )


def judge_all(cases: Iterable[Case], ask: Ask, *, known_failures: KnownFailures = NOTHING_KNOWN) -> Iterator[Result]:
    """Judge cases one after the other."""
    for case in cases:
        started = time.perf_counter()
        finding = judge(case, ask)
        if finding.verdict is Verdict.FAIL and known_failures.covers(case.id, finding.reason):
            finding = finding._replace(verdict=Verdict.DEVIATION, reason=PREFIX + finding.reason)
        elif finding.verdict is Verdict.PASS and case.id in known_failures.cases:
            finding = _Finding(Verdict.FAIL, "passes, but is in the list of known failures: remove it there")
        yield Result(
            check=check_of(case),
            verdict=finding.verdict,
            reason=finding.reason,
            expected=finding.expected,
            observed=finding.observed,
            evidence=() if finding.verdict is Verdict.PASS else (_evidence(case),),
            seconds=time.perf_counter() - started,
        )


def _evidence(case: Case) -> Evidence:
    is_message = case.chapter in ("messages", "headers", "frames")
    return Evidence(
        label="bytes of the case",
        data=bytes.fromhex(case.bytes),
        message=case.type if is_message else None,
        version=case.version if is_message else None,
        is_framed=case.chapter == "frames",
    )


def judge(case: Case, ask: Ask) -> _Finding:
    """Have a codec decode the bytes and, if an encoder has no choice, encode the value."""
    about = {"chapter": case.chapter, "type": case.type, "version": case.version, "release": case.newest}
    try:
        decoded = ask({"op": "decode", **about, "bytes": case.bytes})
        finding = _decoded(case, decoded)
        if finding.verdict is not Verdict.PASS or case.verdict != "accept" or case.encoding != "canonical":
            return finding
        encoded = ask({"op": "encode", **about, "value": case.value})
    except RunnerFault as fault:
        return _Finding(Verdict.FAIL, str(fault))
    return _encoded(case, encoded)


def _decoded(case: Case, response: dict[str, Any]) -> _Finding:
    if not any(key in response for key in RESPONSES):
        return _Finding(Verdict.FAIL, f"decode: the response has none of {', '.join(RESPONSES)}", observed=response)
    if "unsupported" in response:
        return _Finding(Verdict.UNSUPPORTED, str(response["unsupported"]))
    if "rejected" in response:
        if case.verdict == "accept":
            return _Finding(Verdict.FAIL, f"decode: rejected: {str(response['rejected'])[:SHOWN]}", case.value)
        return _Finding(Verdict.PASS, "")
    if case.verdict == "reject":
        reason = f"decode: accepted, although {case.reason}"
        return _Finding(Verdict.FAIL, reason, "an error", response.get("value", response.get("bytes")))
    if case.verdict == "either":
        return _Finding(Verdict.PASS, "")
    if "value" in response and case.value is not None:
        difference = first_difference(case.value, response["value"])
        if difference is not None:
            return _Finding(Verdict.FAIL, f"decode: {difference}", case.value, response["value"])
    again = response.get("bytes")
    if again is not None and case.encoding == "canonical" and again != case.bytes:
        return _Finding(Verdict.FAIL, f"encode after decode: {_first_byte(case.bytes, again)}", case.bytes, again)
    if again is not None and case.encoding == "kept" and again != case.bytes:
        reason = "encode after decode: unknown tagged fields are not kept, which Kafka does"
        return _Finding(Verdict.DEVIATION, reason, case.bytes, again)
    return _Finding(Verdict.PASS, "")


def _encoded(case: Case, response: dict[str, Any]) -> _Finding:
    if "unsupported" in response:
        return _Finding(Verdict.PASS, "")  # a codec that cannot make objects from JSON has decoded and encoded above
    if "rejected" in response:
        return _Finding(Verdict.FAIL, f"encode: rejected: {str(response['rejected'])[:SHOWN]}", case.bytes)
    again = response.get("bytes")
    if not isinstance(again, str):
        return _Finding(Verdict.FAIL, "encode: the response has no bytes", case.bytes, response)
    if again != case.bytes:
        return _Finding(Verdict.FAIL, f"encode: {_first_byte(case.bytes, again)}", case.bytes, again)
    return _Finding(Verdict.PASS, "")


def _first_byte(expected: str, observed: str) -> str:
    """Describe where two hex texts differ first."""
    sizes = f"{len(observed) // 2} bytes, expected {len(expected) // 2}"
    for at in range(0, min(len(expected), len(observed)), 2):
        if expected[at : at + 2] != observed[at : at + 2]:
            return f"byte {at // 2} is {observed[at : at + 2]}, expected {expected[at : at + 2]} ({sizes})"
    return sizes


def first_difference(expected: Any, observed: Any, path: str = "") -> str | None:
    """Describe the first difference of two values; None if there is none.

    Fields that the expected value does not have are ignored: Kafka's JSON form leaves out tagged fields with their
    defaults and fields of other versions, which a codec may well show.
    """
    where = path or "value"
    if isinstance(expected, dict):
        if not isinstance(observed, dict):
            return f"{where} is {_short(observed)}, expected an object"
        for key, each in expected.items():
            if key not in observed:
                return f"{where} has no field {key}"
            found = first_difference(each, observed[key], f"{path}.{key}" if path else key)
            if found is not None:
                return found
        return None
    if isinstance(expected, list):
        if not isinstance(observed, list) or len(expected) != len(observed):
            size = f"{len(observed)} elements" if isinstance(observed, list) else _short(observed)
            return f"{where} has {size}, expected {len(expected)} elements"
        for number, (each, other) in enumerate(zip(expected, observed, strict=True)):
            found = first_difference(each, other, f"{path}[{number}]")
            if found is not None:
                return found
        return None
    same_kind = isinstance(expected, bool) == isinstance(observed, bool)
    if not same_kind or expected != observed:
        return f"{where} is {_short(observed)}, expected {_short(expected)}"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
