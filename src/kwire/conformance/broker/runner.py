"""Run checks against a broker, one by one; a broker that hangs, lies or dies fails them and the run goes on."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from kwire.conformance.broker.baseline import Baseline
from kwire.conformance.broker.bench import Bench, NotAllowed, NotServed, Session
from kwire.conformance.broker.checks import BrokerCheck
from kwire.conformance.broker.connection import Closed, Silent
from kwire.conformance.broker.needs import lacks
from kwire.conformance.check import Verdict
from kwire.conformance.report import Report, Result
from kwire.errors import DecodeError, KwireError

__all__ = ["observe", "run_checks"]

CLOSED, SILENT = "connection closed", "no response"


def observe(check: BrokerCheck, bench: Bench) -> Any:
    """Return what a check observes, as values of JSON. A closed connection and a missing response are observations too.

    Raises KwireError for a response that cannot be read, and whatever the check stumbles over in a wrong response.
    """
    try:
        return json.loads(json.dumps(check.observe(bench)))
    except Closed:
        return CLOSED
    except Silent:
        return SILENT


def run_checks(
    session: Session,
    checks: Sequence[BrokerCheck],
    baseline: Baseline,
    *,
    progress: Callable[[BrokerCheck], object] = lambda check: None,
) -> Report:
    """Run checks, judge them, and remove whatever they have created.

    progress: called before each check. After an interruption (KeyboardInterrupt) the report has the results so far and
    was_interrupted.
    """
    began, made_at = time.monotonic(), datetime.datetime.now(datetime.UTC)
    results: list[Result] = []
    notes: list[str] = []
    was_interrupted = False
    try:
        session.pool_size = min(session.pool_size, len(checks))
        learned = _learn(session)
        if learned:
            notes.append(learned)
        for check in checks:
            progress(check)
            results.append(_run(session, check, baseline, learned))
    except KeyboardInterrupt:
        was_interrupted = True
        notes.append(f"interrupted after {len(results)} of {len(checks)} checks")
    finally:
        left = session.clean_up()
    if left.names:
        notes.append(f"cannot be deleted: {', '.join(left.names)}")
    if left.unknown:
        notes.append(f"cannot be deleted, if they were created: {', '.join(left.unknown)}")
    return Report(
        kind="broker",
        subject="kafka://" + ",".join(f"{host}:{port}" for host, port in session.servers),
        release=baseline.release,
        made_at=made_at,
        seconds=time.monotonic() - began,
        results=tuple(results),
        notes=tuple(notes),
        was_interrupted=was_interrupted,
    )


def _learn(session: Session) -> str:
    """Ask for the API versions. Returns why they are unknown, or an empty string."""
    try:
        session.learn_versions()
    except KwireError as error:
        return f"API versions are unknown: {error}"
    return ""


def _run(session: Session, check: BrokerCheck, baseline: Baseline, unknown_versions: str) -> Result:
    began = time.monotonic()

    def result(verdict: Verdict, reason: str, **more: Any) -> Result:
        return Result(check=check, verdict=verdict, reason=reason, seconds=time.monotonic() - began, **more)

    if baseline.source(check.id) is None:
        return result(Verdict.NOT_APPLICABLE, f"Kafka {baseline.release} does not have this")
    lacking = next(filter(None, (lacks(session, need) for need in check.needs)), None)
    if lacking is not None:
        return result(Verdict.NOT_APPLICABLE, lacking)
    missing = [api for api, version in check.uses.items() if not session.serves(api, version)]
    if missing and not unknown_versions:
        named = ", ".join(_named(api, check.uses[api]) for api in missing)
        if baseline.has(check.id):
            return result(Verdict.UNSUPPORTED, f"the broker does not list {named} in ApiVersions")
        return result(Verdict.NOT_APPLICABLE, f"neither Kafka {baseline.release} nor the broker serves {named}")
    bench = Bench(session, check.id)
    try:
        observed = observe(check, bench)
        evidence = tuple(bench.evidence)  # before the check cleans up
    except NotServed as error:
        return result(Verdict.UNSUPPORTED, str(error))
    except NotAllowed as error:
        return result(Verdict.NOT_APPLICABLE, str(error))
    except DecodeError as error:
        reason = f"the response does not have the format of its version: {error}"
        return result(Verdict.FAIL, reason, evidence=tuple(bench.evidence))
    except KwireError as error:
        return result(Verdict.FAIL, str(error), evidence=tuple(bench.evidence))
    except Exception as error:  # a check met a response without what it must have, such as an empty list
        reason = f"the response lacks what the check needs: {_lacking(error)}"
        return result(Verdict.FAIL, reason, evidence=tuple(bench.evidence))
    finally:
        bench.close()
    judgement = baseline.judge(check, observed)
    return result(
        judgement.verdict,
        judgement.reason,
        expected=judgement.expected,
        observed=observed,
        evidence=evidence,
    )


LACKING: tuple[tuple[type[Exception], str], ...] = (
    (KeyError, "a name that has to be there is missing"),
    (IndexError, "a list has too few entries"),
    (AttributeError, "a field is null"),
    (TypeError, "a field is null"),
    (ValueError, "a value or a number of entries is another one"),
)


def _lacking(error: Exception) -> str:
    """Return in words what a check stumbled over."""
    return next((words for kind, words in LACKING if isinstance(error, kind)), type(error).__name__)


def _named(api: str, version: int) -> str:
    name = "CreateTopics" if api == "Topics" else api
    return name if version == -1 else f"{name} {version}"
