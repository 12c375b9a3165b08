"""Regular expressions matched in time linear in the text: all states are walked in parallel (Thompson).

    state      effect                                                     next states
    CHARS      consumes one character of a set                            one
    ASSERTION  continues only at a position: begin, end, word boundary    one
    FORK       continues in every direction                               any number
    END        the pattern has matched

Sets of states are cached, so similar names cost one look-up per character. The work for new sets is counted and ends at
MAX_STEPS: a pattern that was made to be expensive costs half a second.

Source: R. Cox, "Regular Expression Matching Can Be Simple And Fast"; RE2.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable

__all__ = [
    "ASSERTION",
    "ASSERTIONS",
    "CHARS",
    "END",
    "FORK",
    "MAX_STATES",
    "WORD",
    "Assertion",
    "Machine",
    "TooExpensive",
]

MAX_STATES = 5_000
MAX_STEPS = 500_000

CHARS, ASSERTION, FORK, END = range(4)
WORD = frozenset(string.ascii_letters + string.digits + "_")

Assertion = Callable[[bool, bool, bool], bool]
"""A zero-width assertion: (at the beginning, at the end, at a word boundary) -> whether it holds."""
ASSERTIONS: dict[str, Assertion] = {
    "A": lambda begin, end, border: begin,
    "z": lambda begin, end, border: end,
    "b": lambda begin, end, border: border,
    "B": lambda begin, end, border: not border,
}
NO_CHARACTERS: frozenset[str] = frozenset()


class TooExpensive(Exception):
    """A pattern needs more states or steps than allowed. The caller reports it with the pattern."""


class Machine:
    """A matcher. Add states and connect them, then call finish with the first state."""

    def __init__(self) -> None:
        self._kinds: list[int] = []
        self._characters: list[frozenset[str]] = []
        self._assertions: list[Assertion | None] = []
        self._nexts: list[list[int]] = []
        self._start = 0
        self._steps = 0
        self._reached: dict[tuple[frozenset[int], bool, bool, bool], frozenset[int]] = {}
        self._taken: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def add(
        self,
        kind: int,
        *,
        characters: frozenset[str] = NO_CHARACTERS,
        assertion: Assertion | None = None,
        nexts: Iterable[int] = (),
    ) -> int:
        """Add a state and return its number. Raises TooExpensive."""
        if len(self._kinds) >= MAX_STATES:
            raise TooExpensive(f"it needs more than {MAX_STATES} states")
        self._kinds.append(kind)
        self._characters.append(characters)
        self._assertions.append(assertion)
        self._nexts.append(list(nexts))
        return len(self._kinds) - 1

    def connect(self, states: Iterable[int], to: int) -> None:
        """Connect each of these states to another one."""
        for state in states:
            self._nexts[state].append(to)

    def finish(self, start: int) -> None:
        """Finish the machine."""
        self._start = start

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches. Raises TooExpensive."""
        waiting = frozenset([self._start])
        word_before = False
        for at, character in enumerate(text):
            word = character in WORD
            states = self._reach(waiting, at == 0, False, word != word_before)
            waiting = self._take(states, character)
            if not waiting:
                return False
            word_before = word
        states = self._reach(waiting, not text, True, word_before)
        return any(self._kinds[state] == END for state in states)

    def _reach(self, begin: frozenset[int], at_begin: bool, at_end: bool, at_border: bool) -> frozenset[int]:
        """Return all states that are reachable without consuming a character."""
        key = (begin, at_begin, at_end, at_border)
        known = self._reached.get(key)
        if known is not None:
            return known
        reached: set[int] = set()
        waiting = list(begin)
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            reached.add(state)
            assertion = self._assertions[state]
            if self._kinds[state] == FORK or (assertion is not None and assertion(at_begin, at_end, at_border)):
                waiting.extend(self._nexts[state])
        self._count(len(reached))
        self._reached[key] = frozenset(reached)
        return self._reached[key]

    def _take(self, states: frozenset[int], character: str) -> frozenset[int]:
        """Return the states after consuming a character."""
        known = self._taken.get((states, character))
        if known is not None:
            return known
        self._count(len(states))
        following = frozenset(
            following for state in states if character in self._characters[state] for following in self._nexts[state]
        )
        self._taken[states, character] = following
        return following

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise TooExpensive("it takes too many steps for the existing topics")
