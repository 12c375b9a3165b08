"""Large reports: results that say nothing of their own become one line for each message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kwire.conformance.check import Verdict
from kwire.conformance.report import Result

__all__ = ["FOLD_ABOVE", "Fold", "folded"]

FOLD_ABOVE = 2000
"""Results of a report; with more of them, JUnit and HTML fold."""

FOLDED = (Verdict.PASS, Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE)


@dataclass(slots=True, kw_only=True)
class Fold:
    """Results with one verdict. subject: the beginning of their ids, such as messages/FetchRequest."""

    subject: str
    verdict: Verdict
    reason: str
    count: int = 0
    seconds: float = 0.0

    @property
    def id(self) -> str:
        """An id for links, unlike that of any check."""
        return f"{self.subject}/*{self.verdict.name.lower()}"


def folded(results: Sequence[Result], *, total: int, strict: bool = False) -> list[Result | Fold]:
    """Return the results of a chapter in order, folded if the report has a total of more than FOLD_ABOVE.

    Findings and allowed deviations stay whole. The reason of a fold is that of its first result.
    """
    if total <= FOLD_ABOVE:
        return list(results)
    folds: dict[tuple[str, Verdict], Fold] = {}
    kept: list[Result | Fold] = []
    for result in results:
        verdict = result.verdict
        if verdict not in FOLDED or verdict.is_finding(strict=strict):
            kept.append(result)
            continue
        subject = "/".join(result.check.id.split("/")[:2])
        if (subject, verdict) not in folds:
            folds[subject, verdict] = Fold(subject=subject, verdict=verdict, reason=result.reason)
            kept.append(folds[subject, verdict])
        folds[subject, verdict].count += 1
        folds[subject, verdict].seconds += result.seconds
    return kept
