"""The function of `nest` as Python calls it: addresses in, a count out, without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types

from kwire.plan.kernels import nest as nesting
from kwire.plan.kernels.entry import fingerprint

__all__ = ["nest"]


def _make_nest(sources: str) -> Callable[..., int]:
    def nest_entry(
        source: int,
        bounds: int,
        count: int,
        plan: int,
        projection: int,
        columns: int,
        levels: int,
        counters: int,
        frames: int,
        filling: int,
    ) -> int:
        sources  # noqa: B018  # part of the key of numba's cache
        return nesting.nest_all(
            source, bounds, count, plan, projection, columns, levels, counters, frames, filling
        )  # fmt: skip

    return nest_entry


_made: Any = njit(types.int64(*[types.int64] * 10), cache=True, error_model="numpy", nogil=True)(
    _make_nest(fingerprint())
)
nest: Callable[..., int] = _made
