"""A scenario: a function that sets up a script, yields tasks for the program, and judges what came of them.

    @chapter.scenario("PRODUCER-002", "KIP-98")
    def lost_response(s: Stage) -> Steps:
        '''A response is lost.

        The broker writes the records and closes the connection instead of responding.
        Each record is acknowledged, and written once.
        '''
        topic = s.topic()
        s.script.lose("Produce")
        out = yield produce(topic, records(3), enable_idempotence="true")
        written_once(s, out, topic, 3)

The first line of its docstring is the title, each further line a step. It raises Finding for anything but a pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.conformance.check import Check, Verdict
from kwire.conformance.client.program import Outcome
from kwire.conformance.client.task import Task

if TYPE_CHECKING:
    from kwire.conformance.client.stage import Stage

__all__ = ["Chapter", "Finding", "Scenario", "Steps", "expect"]

Steps = Generator[Task, Outcome, None]
Play = Callable[["Stage"], Steps]


class Finding(Exception):
    """Why a scenario is not passed."""

    def __init__(self, reason: str, verdict: Verdict = Verdict.FAIL) -> None:
        super().__init__(reason)
        self.reason, self.verdict = reason, verdict


def expect(condition: object, reason: str, verdict: Verdict = Verdict.FAIL) -> None:
    """Raise Finding unless a condition holds."""
    if not condition:
        raise Finding(reason, verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(Check):
    """A scenario with its function. nodes: how many the cluster shows."""

    play: Play
    nodes: int = 1


class Chapter:
    """A chapter, which collects its scenarios."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scenarios: list[Scenario] = []

    def scenario(self, scenario_id: str, source: str, **options: Any) -> Callable[[Play], Play]:
        """Make a function a scenario of the chapter. options: further fields of Scenario."""

        def add(function: Play) -> Play:
            title, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
            steps = tuple(line for line in rest.splitlines() if line.strip())
            self.add(scenario_id, title.rstrip("."), source, function, steps=steps, **options)
            return function

        return add

    def add(self, scenario_id: str, title: str, source: str, play: Play, **options: Any) -> None:
        """Add a scenario that a table has made."""
        self.scenarios.append(
            Scenario(id=scenario_id, chapter=self.name, title=title, source=source, play=play, **options)
        )
