"""Version ranges: `none`, `3`, `0-4`, `2+`.

A version is a number from 0 to 32767 (KIP-482: 15 bits). `N+` runs to 32767, so `0+` and `0-32767` are one range.
Source: org.apache.kafka.message.Versions.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

MAX_VERSION = 32767


class Versions(msgspec.Struct, frozen=True):
    """The versions from lowest to highest, both included; highest < lowest is the empty range."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and version.__class__ is not bool and self.lowest <= version <= self.highest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __len__(self) -> int:
        return max(0, self.highest - self.lowest + 1)

    def __bool__(self) -> bool:
        return self.highest >= self.lowest

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.lowest == self.highest:
            return str(self.lowest)
        return f"{self.lowest}+" if self.is_open else f"{self.lowest}-{self.highest}"

    @property
    def is_open(self) -> bool:
        """Whether the range is open-ended, written `N+`."""
        return self.highest == MAX_VERSION

    def covers(self, other: Versions) -> bool:
        """Whether every version of other is in this range; every range covers the empty one."""
        return not other or (self.lowest <= other.lowest and other.highest <= self.highest)

    def intersect(self, other: Versions) -> Versions:
        """Return the versions in both; NONE if there are none."""
        both = Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return both if both else NONE

    def subtract(self, other: Versions) -> Versions | None:
        """Return the versions that are not in other; None if they form two ranges (1-5 without 2-4)."""
        if not self.intersect(other):
            return self
        left, right = Versions(self.lowest, other.lowest - 1), Versions(other.highest + 1, self.highest)
        if left and right:
            return None
        return left or right or NONE

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse a range. Raises ValueError with the reason (rule E-07).

        Surrounding blanks are ignored. Unlike Kafka, rejects `+3` and inverted ranges such as `5-3` (T-03).
        """
        text = text.strip()
        if text == "none":
            return NONE
        low, dash, high = text.partition("-")
        if text.endswith("+"):
            return cls(_number(text[:-1], text), MAX_VERSION)
        if not dash:
            return cls(_number(text, text), _number(text, text))
        versions = cls(_number(low, text), _number(high, text))
        if not versions:
            raise ValueError(f"invalid version range {text!r}: the first version is above the last")
        return versions


def _number(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"invalid version range {text!r}: expected none, N, N-M or N+")
    digits = digits.lstrip("0") or "0"
    # Length first: int() of a megabyte of digits takes seconds, or fails.
    if len(digits) > 5 or int(digits) > MAX_VERSION:
        raise ValueError(f"invalid version range {text!r}: versions are 0 to {MAX_VERSION}")
    return int(digits)


NONE = Versions(0, -1)
ALL = Versions(0, MAX_VERSION)
