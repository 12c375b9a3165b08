"""The failures of a codec that are known: a text file with a line for each, or for all that have one cause.

messages/StopReplicaRequest/4/full                  this case fails; it is a failure if it passes
messages/*: is not a valid ErrorCode                every failure of these cases with this in its reason
messages/*/null-array                               every failure of these cases
# ...                                               a comment
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kwire.conformance.check import Check, Verdict
from kwire.conformance.report import Result
from kwire.errors import OptionError

__all__ = ["NOTHING_KNOWN", "PREFIX", "KnownFailures"]

PREFIX = "known failure: "
"""The beginning of the reason of a case that failed as the file says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailures:
    """What a file says. cases: ids of those that have to fail. causes: pattern of ids, with a part of the reason."""

    cases: frozenset[str] = frozenset()
    causes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, path: Path) -> KnownFailures:
        """Read a file. Raises OptionError."""
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise OptionError(f"{path}: cannot be read: {reason}") from None
        cases, causes = set(), []
        for line in text.splitlines():
            pattern, _, reason = line.partition("#")[0].strip().partition(": ")
            if reason or "*" in pattern:
                causes.append((pattern, reason))
            elif pattern:
                cases.add(pattern)
        return cls(cases=frozenset(cases), causes=tuple(causes))

    def covers(self, case_id: str, reason: str) -> bool:
        """Return whether a failure is known."""
        return case_id in self.cases or any(_covers(cause, case_id, reason) for cause in self.causes)

    def unused(self, results: Iterable[Result]) -> list[Result]:
        """Return a failure for each cause that no case of a complete run has had, so that the file stays true."""
        known = [(each.check.id, each.reason) for each in results if each.reason.startswith(PREFIX)]
        return [
            Result(
                check=Check(id=": ".join(filter(None, cause)), chapter="known failures", title="A known cause"),
                verdict=Verdict.FAIL,
                reason="no case fails for it, but it is in the list of known failures: remove it there",
            )
            for cause in self.causes
            if not any(_covers(cause, *each) for each in known)
        ]


def _covers(cause: tuple[str, str], case_id: str, reason: str) -> bool:
    return fnmatchcase(case_id, cause[0]) and cause[1] in reason


NOTHING_KNOWN = KnownFailures()
