"""Sizes of integers in each of KIP-625's encodings, computed from counts.

    counts = count_integers(column)         numpy, or Arrow's, or any sequence of integers
    counts + others                         counts of both; parts can be counted separately
    counts.bytes_as(ENCODINGS["packed32"])  bytes of all of them, None when one does not fit

The size of a number depends only on its sign and the bits it needs. So the counts are two histograms of 64 numbers:
exact for every encoding, and small enough to be summed over a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.extras import needing
from kwire.wire.integer_encoding import IntegerEncoding

if TYPE_CHECKING:
    import numpy as np

__all__ = ["IntegerCounts", "count_integers"]

BITS = 64
NOTHING = (0,) * BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerCounts:
    """Counts of integers by the bits they need.

    natural: index i counts the numbers from 0 up that need i bits (0 needs none, 1 one, 2 and 3 two).
    negative: counts of negative numbers n, by the bits of -n - 1 (-1 needs none, -2 one, -3 and -4 two).
    smallest, largest: None when nothing was counted.
    """

    natural: tuple[int, ...] = NOTHING
    negative: tuple[int, ...] = NOTHING
    smallest: int | None = None
    largest: int | None = None

    @property
    def count(self) -> int:
        """Number of integers."""
        return sum(self.natural) + self.negatives

    @property
    def negatives(self) -> int:
        """Number of integers below 0."""
        return sum(self.negative)

    def __add__(self, other: IntegerCounts) -> IntegerCounts:
        ends = [n for n in (self.smallest, self.largest, other.smallest, other.largest) if n is not None]
        return IntegerCounts(
            natural=tuple(a + b for a, b in zip(self.natural, other.natural, strict=True)),
            negative=tuple(a + b for a, b in zip(self.negative, other.negative, strict=True)),
            smallest=min(ends, default=None),
            largest=max(ends, default=None),
        )

    def fits(self, encoding: IntegerEncoding) -> bool:
        """Whether the encoding can hold all of them."""
        most = encoding.bits - 1
        return not any(self.natural[most + 1 :]) and not any(self.negative[most + 1 :])

    def sizes(self, encoding: IntegerEncoding) -> dict[int, int]:
        """Count the integers by their bytes in an encoding that can hold them all."""
        by_size: dict[int, int] = {}
        for counts, sign in ((self.natural, 0), (self.negative, -1)):
            for bits, n in enumerate(counts):
                if n:
                    # any number of this many bits represents them all
                    size = encoding.size(sign ^ (1 << bits >> 1))
                    by_size[size] = by_size.get(size, 0) + n
        return dict(sorted(by_size.items()))

    def bytes_as(self, encoding: IntegerEncoding) -> int | None:
        """Bytes of all of them; None when one does not fit."""
        if not self.fits(encoding):
            return None
        return sum(size * n for size, n in self.sizes(encoding).items())


def count_integers(values: Any) -> IntegerCounts:
    """Count a column of integers of up to 64 bits with sign: a numpy array, an Arrow array without nulls, a sequence.

    Cost: some 20 ns a value.
    """
    with needing("counts of integers"):
        import numpy as np

    column: np.ndarray[Any, np.dtype[np.int64]] = np.asarray(values, np.int64)
    if not len(column):
        return IntegerCounts()
    powers = np.left_shift(np.int64(1), np.arange(BITS - 1, dtype=np.int64))
    is_negative = column < 0
    bits = np.searchsorted(powers, np.where(is_negative, ~column, column), side="right")
    return IntegerCounts(
        natural=tuple(np.bincount(bits[~is_negative], minlength=BITS).tolist()),
        negative=tuple(np.bincount(bits[is_negative], minlength=BITS).tolist()),
        smallest=int(column.min()),
        largest=int(column.max()),
    )
