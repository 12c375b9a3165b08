"""Two or more reports side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kwire.conformance.check import Check, Verdict
from kwire.conformance.report import Report, Result

__all__ = ["ComparedCheck", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCheck:
    """A check with its result in each report; None for a report that does not have it."""

    check: Check
    results: tuple[Result | None, ...]

    @property
    def verdicts(self) -> tuple[Verdict | None, ...]:
        """The verdict in each report."""
        return tuple(None if each is None else each.verdict for each in self.results)

    @property
    def differs(self) -> bool:
        """Whether not all reports have the same verdict."""
        return len(set(self.verdicts)) > 1


def compare(*reports: Report) -> list[ComparedCheck]:
    """Return all checks of the reports, in the order of the first report that has each."""
    checks: dict[str, Check] = {}
    for report in reports:
        for result in report.results:
            checks.setdefault(result.check.id, result.check)
    by_id: list[Mapping[str, Result]] = [{each.check.id: each for each in report.results} for report in reports]
    return [
        ComparedCheck(check=check, results=tuple(results.get(check_id) for results in by_id))
        for check_id, check in checks.items()
    ]
