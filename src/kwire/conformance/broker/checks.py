"""A check of a broker: a function that talks to it and returns what it observed.

The function does not judge. What it returns is compared with what real Kafka of the baseline release returned
(`kwire.conformance.broker.baseline`). The first line of its docstring is the title, each further line a step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.conformance.check import Check

if TYPE_CHECKING:
    from kwire.conformance.broker.bench import Bench

__all__ = ["Allowed", "BrokerCheck", "Chapter"]

Observe = Callable[["Bench"], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A difference from Kafka that cannot harm a client.

    path: of the observed value, with `*` for anything. values: the allowed ones, None for all.
    """

    path: str
    reason: str
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCheck(Check):
    """A check with its function.

    uses: the APIs it needs, with the version that the broker has to serve; -1 is any. "Topics" is CreateTopics, or
    topics that Metadata creates, for a check that only needs one. needs: what the run or the
    cluster has to have, see needs.lacks.
    """

    observe: Observe
    uses: Mapping[str, int] = field(default_factory=dict)
    allowed: tuple[Allowed, ...] = ()
    needs: tuple[str, ...] = ()


class Chapter:
    """A chapter, which collects its checks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[BrokerCheck] = []

    def check(self, check_id: str, source: str, **options: Any) -> Callable[[Observe], Observe]:
        """Make a function a check of the chapter. options: further fields of BrokerCheck."""

        def add(function: Observe) -> Observe:
            title, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
            steps = tuple(line for line in rest.splitlines() if line.strip())
            self.add(
                BrokerCheck(
                    id=check_id,
                    chapter=self.name,
                    title=title.rstrip("."),
                    source=source,
                    steps=steps,
                    observe=function,
                    **options,
                )
            )
            return function

        return add

    def add(self, check: BrokerCheck) -> None:
        """Add a check that a table has made."""
        self.checks.append(check)
