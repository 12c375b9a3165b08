"""The functions of `flatten` as Python calls them: addresses in, a code out, without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types

from kwire.plan.kernels import flatten as flattening
from kwire.plan.kernels.entry import fingerprint

__all__ = ["flatten", "gather"]


def _make_flatten(sources: str) -> Callable[..., int]:
    def flatten_entry(
        source: int,
        starts: int,
        count: int,
        plan: int,
        projection: int,
        columns: int,
        parents: int,
        rows: int,
        frames: int,
    ) -> int:
        sources  # noqa: B018  # part of the key of numba's cache
        return flattening.flatten_all(source, starts, count, plan, projection, columns, parents, rows, frames)

    return flatten_entry


def _make_gather(sources: str) -> Callable[..., int]:
    def gather_entry(
        source: int, room: int, slices: int, count: int, offsets: int, data: int, code: int, default: int, size: int
    ) -> int:
        sources  # noqa: B018  # as above
        return flattening.gather_all(source, room, slices, count, offsets, data, code, default, size)

    return gather_entry


def _compiled(function: Callable[..., int], arguments: int) -> Callable[..., int]:
    signature = types.int64(*[types.int64] * arguments)
    made: Any = njit(signature, cache=True, error_model="numpy", nogil=True)(function)
    call: Callable[..., int] = made
    return call


_SOURCES = fingerprint()
flatten = _compiled(_make_flatten(_SOURCES), 9)
gather = _compiled(_make_gather(_SOURCES), 9)
