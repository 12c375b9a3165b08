"""What a check is: its id, its chapter, what it does in words; and the verdicts that it can have."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from kwire.errors import OptionError, did_you_mean

__all__ = ["Check", "Verdict", "in_range", "release_order", "select"]


class Verdict(enum.StrEnum):
    """The outcome of a check. All but PASS have a reason."""

    PASS = "pass"
    FAIL = "fail"
    DEVIATION = "allowed deviation"
    """Different from Kafka in a way that clients cannot be harmed by; a failure with --strict."""
    UNSUPPORTED = "not supported"
    """The tested party says that it does not have the feature; a failure with --strict."""
    NOT_APPLICABLE = "not applicable"
    """The check makes no sense here: another release, no credentials, a cluster of another size."""

    def is_finding(self, *, strict: bool) -> bool:
        """Return whether the exit code is 1 because of this verdict."""
        return self is Verdict.FAIL or (strict and self in (Verdict.DEVIATION, Verdict.UNSUPPORTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    id: stable, such as FETCH-014. chapter: its heading in reports. source: KIP, Kafka class or rule of docs/spec.
    since, until: first and last Kafka release that it is about, such as "2.8"; None is open. steps: what it does, a
    sentence each.
    """

    id: str
    chapter: str
    title: str
    source: str = ""
    since: str | None = None
    until: str | None = None
    steps: tuple[str, ...] = ()


C = TypeVar("C", bound=Check)


def release_order(release: str) -> tuple[int, ...]:
    """Return a key that sorts releases such as "3.9.1" and "3.9"."""
    return tuple(int(part) for part in release.split("."))


def in_range(check: Check, release: str) -> bool:
    """Return whether a check is about a release. A minor version such as "3.9" stands for all of its patches."""
    order = release_order(release)
    if check.since is not None and order < release_order(check.since):
        return False
    if check.until is None:
        return True
    until = release_order(check.until)
    return order[: len(until)] <= until


def select(checks: Sequence[C], only: Sequence[str], skip: Sequence[str]) -> list[C]:
    """Return the checks that --only and --skip choose: ids, beginnings of ids (`FETCH`), or chapters.

    Raises OptionError for a word that no check has.
    """
    for word in (*only, *skip):
        if not any(_matches(check, word) for check in checks):
            known = [*{check.chapter for check in checks}, *(check.id for check in checks)]
            raise OptionError(f"no check {word!r}{did_you_mean(word, known)}; `kwire conformance list` has all")
    return [
        check
        for check in checks
        if (not only or any(_matches(check, word) for word in only)) and not any(_matches(check, word) for word in skip)
    ]


def _matches(check: Check, word: str) -> bool:
    upper, name = word.upper(), check.id.upper()
    return name == upper or name.startswith(f"{upper.rstrip('-')}-") or check.chapter.upper() == upper
