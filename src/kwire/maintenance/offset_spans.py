"""Groups of records by their offsets: those that overlap have to be sorted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

__all__ = ["MAX_SORT_BYTES", "clusters"]

MAX_SORT_BYTES = 1 << 30  # of Arrow memory for rows sorted together


class Span(Protocol):
    """Something with a first and a last offset."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...


AnySpan = TypeVar("AnySpan", bound=Span)


def clusters(spans: Iterable[AnySpan]) -> Iterator[list[AnySpan]]:
    """Yield groups of overlapping spans, by offset."""
    overlapping: list[AnySpan] = []
    high = -1
    for span in sorted(spans, key=lambda each: (each.low, each.high)):
        if overlapping and span.low > high:
            yield overlapping
            overlapping = []
        overlapping.append(span)
        high = max(high, span.high)
    if overlapping:
        yield overlapping
