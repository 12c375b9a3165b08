"""Run scenarios with a program, several in parallel, and make the report."""

from __future__ import annotations

import datetime
import queue
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from kwire.broker import Broker
from kwire.conformance.check import Verdict
from kwire.conformance.client.cluster import Loop
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.program import Outcome, Program
from kwire.conformance.client.scenario import Finding, Scenario, expect
from kwire.conformance.client.stage import PASSWORD, USER, Stage
from kwire.conformance.client.wire import check_wire
from kwire.conformance.report import Evidence, Report, Result
from kwire.errors import OptionError

__all__ = ["BROKER_SETTINGS", "run_scenarios"]

BROKER_SETTINGS: dict[str, Any] = {
    "group_initial_rebalance_delay_ms": 0,
    "auto_create_topics_enable": False,
    "group_min_session_timeout_ms": 100,
    "message_max_bytes": 8 << 20,
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "connections_max_reauth_ms": 1500,
    "users": {USER: PASSWORD},
}
LAST_EXCHANGES = 12
"""Exchanges that the evidence of a finding has; of a pass, 4."""
MAX_TASKS = 8


def run_scenarios(
    command: Sequence[str],
    scenarios: Sequence[Scenario],
    *,
    release: str,
    keeps_running: bool = False,
    jobs: int = 4,
    deadline_s: float = 20.0,
    progress: Callable[[Scenario], object] = lambda scenario: None,
) -> Report:
    """Run scenarios and return their results in their order.

    keeps_running, deadline_s: see Program. jobs: how many run in parallel. progress: called before each. After an
    interruption (KeyboardInterrupt) the report has the results so far. Raises OptionError if the command cannot be
    started.
    """
    began, made_at = time.monotonic(), datetime.datetime.now(datetime.UTC)
    notes: list[str] = []
    results: list[Result] = []
    was_interrupted = False
    with ExitStack() as stack:
        loop = stack.enter_context(Loop())
        broker = stack.enter_context(Broker(keep_requests=0, **BROKER_SETTINGS))
        free: queue.Queue[Program] = queue.Queue()
        for _ in range(max(1, min(jobs, len(scenarios)))):
            program = Program(command, keeps_running=keeps_running, deadline_s=deadline_s)
            free.put(stack.enter_context(program))

        def play(scenario: Scenario) -> Result:
            program = free.get()
            try:
                progress(scenario)
                return _play(loop, broker, program, scenario)
            finally:
                free.put(program)

        pool = ThreadPoolExecutor(jobs)
        futures = [pool.submit(play, scenario) for scenario in scenarios]
        try:
            results += (future.result() for future in futures)
        except KeyboardInterrupt:
            was_interrupted = True
            results = [each.result() for each in futures if each.done() and not each.cancelled()]
            notes.append(f"interrupted after {len(results)} of {len(scenarios)} scenarios")
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return Report(
        kind="client",
        subject=shlex.join(command),
        release=release,
        made_at=made_at,
        seconds=time.monotonic() - began,
        results=tuple(results),
        notes=tuple(notes),
        was_interrupted=was_interrupted,
    )


def _play(loop: Loop, broker: Broker, program: Program, scenario: Scenario) -> Result:
    began = time.monotonic()
    outcomes: list[Outcome] = []
    verdict, reason, evidence = Verdict.PASS, "", tuple[Evidence, ...]()
    with Stage(loop, broker, scenario.id, nodes=scenario.nodes) as stage:
        try:
            _steps(stage, program, scenario, outcomes)
            check_wire(stage.front)
            _was_played(stage)
        except Finding as finding:
            verdict, reason = finding.verdict, finding.reason
            problem = next((each.problem for each in stage.front.exchanges if each.problem), "")
            if problem and problem not in reason:
                reason += f"; on the wire: request {problem}"
        except OptionError:
            raise
        except Exception as error:  # the scenario met something that it does not know, such as a missing request
            verdict, reason = Verdict.FAIL, f"the scenario could not go on ({type(error).__name__}: {error})"
        if stage.front.faults:
            verdict, reason = Verdict.FAIL, f"the script itself is at fault: {stage.front.faults[0]}"
        evidence = _evidence(stage, LAST_EXCHANGES if verdict is Verdict.FAIL else 4)
    return Result(check=scenario, verdict=verdict, reason=reason, evidence=evidence, seconds=time.monotonic() - began)


def _steps(stage: Stage, program: Program, scenario: Scenario, outcomes: list[Outcome]) -> None:
    """Run the tasks that a scenario yields. Raises Finding."""
    steps = scenario.play(stage)
    try:
        task = next(steps)
        for number in range(MAX_TASKS):
            outcome = program.run(task, f"{scenario.id}.{number}", stage.front.bootstrap)
            outcomes.append(outcome)
            expect(outcome.unsupported is None, f"the program says: {outcome.unsupported}", Verdict.UNSUPPORTED)
            expect(outcome.told or not outcome.complaint, outcome.complaint)
            task = steps.send(outcome)
    except StopIteration:
        return


def _was_played(stage: Stage) -> None:
    """Raise Finding if the client never sent the requests that the script is about: such a pass would be empty."""
    idle = stage.script.idle()
    if idle:
        what = "request" if idle[0].api_key is None else f"{Exchange.name(idle[0].api_key)} request"
        raise Finding(f"the client sent no {what} that the script is about", Verdict.NOT_APPLICABLE)


def _evidence(stage: Stage, most: int) -> tuple[Evidence, ...]:
    exchanges = stage.front.exchanges
    problems = [each for each in exchanges[:-most] if each.problem][:2]
    return tuple(each for exchange in [*problems, *exchanges[-most:]] for each in exchange.evidence())
