"""Regular expressions over topic names: RE2's syntax, matched in time linear in the name.

Any client may subscribe with a pattern, so matching must not backtrack: see regex_machine. Topic names consist of a-z,
A-Z, 0-9, '.', '_' and '-', so a character class is a subset of these.

    literals, escapes       \\. \\x41 \\x{41} \\101 \\Q...\\E and \\a \\f \\n \\r \\t \\v
    any, classes            . [a-z] [^a-z] [[:alpha:]] \\d \\w \\s \\D \\W \\S \\pL \\p{Lu} \\P{Greek}
    groups, alternatives    (...) (?:...) (?P<name>...) (?<name>...) (?i) (?i:...) a|b
    repetition              * + ? {n} {n,} {n,m}, also lazy with ?, which makes no difference for a whole match
    positions               ^ $ \\A \\z \\b \\B

As in RE2, back references and lookarounds are not supported, and repetition counts are at most 1000. A pattern matches
the whole name.

Source: com.google.re2j's syntax; org.apache.kafka.coordinator.group.modern.consumer.TopicRegexResolver.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable

from kwire.broker.groups.regex_machine import (
    ASSERTION,
    ASSERTIONS,
    CHARS,
    END,
    FORK,
    WORD,
    Machine,
    TooExpensive,
)
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["TopicRegex"]

MAX_PATTERN = 4_096
MAX_REPEAT = 1_000
MAX_DEPTH = 100

ALPHABET = WORD | frozenset(".-")
DIGITS, SPACES = frozenset(string.digits), frozenset("\t\n\f\r ")
PERL = {"d": DIGITS, "w": WORD, "s": SPACES}
POSIX = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(chr(i) for i in range(128)),
    "blank": frozenset("\t "),
    "cntrl": frozenset(chr(i) for i in (*range(32), 127)),
    "digit": DIGITS,
    "graph": frozenset(chr(i) for i in range(33, 127)),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(chr(i) for i in range(32, 127)),
    "punct": frozenset(string.punctuation),
    "space": SPACES | {"\v"},
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}
CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Fragment = tuple[int, list[int]]
"""The first state of a part of the machine, and its states without a successor."""


class TopicRegex:
    """A compiled pattern.

    alphabet: all characters of the names to match. Raises BrokerError: INVALID_REGULAR_EXPRESSION, with the position.
    """

    def __init__(self, pattern: str, alphabet: frozenset[str] = ALPHABET) -> None:
        self._pattern, self._pos, self._depth = pattern, 0, 0
        self._alphabet = alphabet
        self._ignore_case = False
        self._machine = Machine()
        if len(pattern) > MAX_PATTERN:
            raise self._wrong(f"longer than {MAX_PATTERN} characters")
        try:
            start, opens = self._alternatives()
            if self._pos < len(pattern):
                raise self._wrong("unexpected )")
            self._machine.connect(opens, self._machine.add(END))
        except TooExpensive as error:
            raise self._wrong(str(error)) from error
        self._machine.finish(start)

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches.

        Raises BrokerError: INVALID_REGULAR_EXPRESSION if the match takes too many steps.
        """
        try:
            return self._machine.matches(name)
        except TooExpensive as error:
            self._pos = 0
            raise self._wrong(str(error)) from error

    # --- parts of the machine ---

    def _fork(self) -> Fragment:
        state = self._machine.add(FORK)
        return state, [state]

    def _assertion(self, name: str) -> Fragment:
        state = self._machine.add(ASSERTION, assertion=ASSERTIONS[name])
        return state, [state]

    def _characters(self, characters: Iterable[str]) -> Fragment:
        chosen = set(characters)
        if self._ignore_case:
            chosen |= {c.swapcase() for c in chosen}
        state = self._machine.add(CHARS, characters=self._alphabet & chosen)
        return state, [state]

    # --- grammar ---

    def _wrong(self, what: str) -> BrokerError:
        where = f" at character {self._pos}" if self._pos else ""
        return refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{self._pattern[:100]}` is not a valid regular expression: {what}{where}.",
        )

    def _peek(self, text: str) -> bool:
        return self._pattern.startswith(text, self._pos)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._pos += len(text)
            return True
        return False

    def _next(self) -> str:
        if self._pos >= len(self._pattern):
            raise self._wrong("unexpected end")
        self._pos += 1
        return self._pattern[self._pos - 1]

    def _alternatives(self) -> Fragment:
        """Parse a|b|c; flags that are set inside apply to the end."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._wrong("nested too deeply")
        ignore_case = self._ignore_case
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        self._ignore_case = ignore_case
        self._depth -= 1
        if len(parts) == 1:
            return parts[0]
        fork = self._machine.add(FORK, nexts=[start for start, _ in parts])
        return fork, [state for _, opens in parts for state in opens]

    def _sequence(self) -> Fragment:
        start, opens = self._fork()
        while self._pos < len(self._pattern) and self._pattern[self._pos] not in "|)":
            begin = self._pos, self._ignore_case
            part = self._atom()
            part = self._repeated(part, begin)
            self._machine.connect(opens, part[0])
            opens = part[1]
        return start, opens

    def _repeated(self, part: Fragment, begin: tuple[int, bool]) -> Fragment:
        """Parse the repetition after an atom. Counted repetition parses the atom again from its beginning."""
        atom_end = self._pos
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(sign):
                return self._times(part, begin, atom_end, least, most)
        if self._peek("{"):
            counts = self._counts()
            if counts is not None:
                return self._times(part, begin, atom_end, *counts)
        return part

    def _counts(self) -> tuple[int, int | None] | None:
        """Parse {n}, {n,} or {n,m}; None for a literal brace."""
        end = self._pattern.find("}", self._pos)
        least, comma, most = self._pattern[self._pos + 1 : max(end, 0)].partition(",")
        if end < 0 or not is_number(least) or not (most == "" or is_number(most)):
            return None
        low = int(least)
        high = low if not comma else int(most) if most else None
        if low > MAX_REPEAT or (high is not None and (high > MAX_REPEAT or high < low)):
            raise self._wrong("invalid repeat count")
        self._pos = end + 1
        return low, high

    def _times(self, part: Fragment, begin: tuple[int, bool], atom_end: int, least: int, most: int | None) -> Fragment:
        self._take("?")
        after = self._pos
        stacked = self._pos < len(self._pattern) and self._pattern[self._pos] in "*+?"
        if stacked or (self._peek("{") and self._counts() is not None):
            raise self._wrong("invalid nested repetition operator")
        copies = [part]
        while len(copies) < max(least, 1 if most is None else most):
            copies.append(self._again(begin, atom_end))
        self._pos = after
        start, opens = self._fork()
        skipped: list[int] = []
        if most == 0:
            return start, opens
        for index, (copy_start, copy_opens) in enumerate(copies):
            self._machine.connect(opens, copy_start)
            if index >= least:
                skipped.extend(opens)
            opens = copy_opens
        if most is None:
            loop = self._machine.add(FORK, nexts=[copies[-1][0]])
            self._machine.connect(opens, loop)
            opens = [loop]
        return start, opens + skipped

    def _again(self, begin: tuple[int, bool], atom_end: int) -> Fragment:
        """Parse the same atom again, for another copy of it."""
        self._pos, self._ignore_case = begin
        part = self._atom()
        assert self._pos == atom_end  # the atom is parsed again from the same position
        return part

    def _atom(self) -> Fragment:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._characters(self._class())
            case ".":
                return self._characters(self._alphabet)
            case "^":
                return self._assertion("A")
            case "$":
                return self._assertion("z")
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise self._wrong(f"missing argument to repetition operator {character}")
        return self._characters(character)

    def _group(self) -> Fragment:
        ignore_case = self._ignore_case
        if self._take("?"):
            if self._take("P<") or (not self._peek("<=") and not self._peek("<!") and self._take("<")):
                name = self._pattern[self._pos : self._pattern.find(">", self._pos)]
                if not name or not set(name) <= WORD:
                    raise self._wrong("invalid named capture")
                self._pos += len(name) + 1
            elif self._flags():
                return self._fork()
        part = self._alternatives()
        if not self._take(")"):
            raise self._wrong("missing closing )")
        self._ignore_case = ignore_case
        return part

    def _flags(self) -> bool:
        """Parse flags from (? to ) or a colon; return whether it was ), so the flags apply to the rest of the group."""
        on = True
        while True:
            flag = self._next()
            if flag == "i":
                self._ignore_case = on
            elif flag == "-" and on:
                on = False
            elif flag == ":":
                return False
            elif flag == ")":
                return True
            elif flag not in "msU":  # no effect on a match of one line
                raise self._wrong("invalid or unsupported Perl syntax: (?")

    def _escape(self) -> Fragment:
        character = self._next()
        if character in ASSERTIONS:
            return self._assertion(character)
        if character == "Q":
            end = self._pattern.find("\\E", self._pos)
            text = self._pattern[self._pos : end if end >= 0 else None]
            self._pos = len(self._pattern) if end < 0 else end + 2
            start, opens = self._fork()
            for one in text:
                part = self._characters(one)
                self._machine.connect(opens, part[0])
                opens = part[1]
            return start, opens
        self._pos -= 1
        named = self._named_class()
        return self._characters(self._escaped() if named is None else named)

    def _named_class(self) -> frozenset[str] | None:
        r"""Parse the class after a backslash, such as \d or \p{L}; return None for anything else."""
        character = self._next()
        if character.lower() in PERL:
            members = PERL[character.lower()]
            return members if character.islower() else self._alphabet - members
        if character in "pP":
            name = self._next()
            if name == "{":
                end = self._pattern.find("}", self._pos)
                name = self._pattern[self._pos : max(end, self._pos)]
                self._pos += len(name) + 1
            negated = name.startswith("^") != (character == "P")
            inside = self._unicode_class(name.removeprefix("^"))
            return self._alphabet - inside if negated else inside
        self._pos -= 1
        return None

    def _unicode_class(self, name: str) -> frozenset[str]:
        """Parse a general category or script; topic names have no letters but Latin ones."""
        if name == "Any":
            return self._alphabet
        if name == "Latin":
            return POSIX["alpha"]
        if name == "Common":
            return self._alphabet - POSIX["alpha"]
        if len(name) > 2 and name[:1].isupper() and name.replace("_", "").isalpha():
            return frozenset()
        if len(name) in (1, 2) and name[:1] in "CLMNPSZ":
            return frozenset(c for c in self._alphabet if unicodedata.category(c).startswith(name))
        raise self._wrong(f"invalid character class range \\p{{{name}}}")

    def _escaped(self) -> str:
        """Parse the escaped character after a backslash."""
        character = self._next()
        if character in CONTROLS:
            return CONTROLS[character]
        if character == "x":
            if self._take("{"):
                end = self._pattern.find("}", self._pos)
                digits = self._pattern[self._pos : max(end, self._pos)]
                self._pos += len(digits) + 1
            else:
                digits = self._next() + self._next()
            if not digits or not set(digits) <= set(string.hexdigits) or int(digits, 16) > 0x10FFFF:
                raise self._wrong("invalid escape sequence \\x")
            return chr(int(digits, 16))
        if character in "01234567":
            digits = character
            while len(digits) < 3 and self._pos < len(self._pattern) and self._pattern[self._pos] in "01234567":
                digits += self._next()
            if len(digits) == 1 and character != "0":
                raise self._wrong(f"invalid escape sequence \\{digits}")  # would be a back reference
            return chr(int(digits, 8))
        if character in POSIX["punct"] or ord(character) > 127:
            return character
        raise self._wrong(f"invalid escape sequence \\{character}")

    def _class(self) -> frozenset[str]:
        negated = self._take("^")
        members: set[str] = set()
        first = True
        while first or not self._take("]"):
            first = False
            if self._take("[:"):
                members |= self._posix_class()
                continue
            low = self._class_member()
            if isinstance(low, frozenset):
                members |= low
                continue
            high = low
            if self._peek("-") and not self._peek("-]"):
                self._take("-")
                member = self._class_member()
                if isinstance(member, frozenset) or member < low:
                    raise self._wrong("invalid character class range")
                high = member
            members.update(c for c in self._alphabet | {low} if low <= c <= high)
        if self._ignore_case:
            members |= {c.swapcase() for c in members}
        return self._alphabet - members if negated else self._alphabet & members

    def _class_member(self) -> str | frozenset[str]:
        if self._take("\\"):
            named = self._named_class()
            return self._escaped() if named is None else named
        return self._next()

    def _posix_class(self) -> frozenset[str]:
        negated = self._take("^")
        end = self._pattern.find(":]", self._pos)
        name = self._pattern[self._pos : max(end, self._pos)]
        if name not in POSIX:
            raise self._wrong("invalid character class range [:")
        self._pos = end + 2
        return self._alphabet - POSIX[name] if negated else POSIX[name]


def is_number(text: str) -> bool:
    """Return whether these are ASCII digits, few enough for a count."""
    return 0 < len(text) < 6 and text.isascii() and text.isdigit()
