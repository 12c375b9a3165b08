"""Decorators of kernels: Python functions in numba's subset, which `kwire.native.build` compiles ahead of time.

A kernel takes addresses and integers, raises nothing and owns no memory. It checks every byte it reads against the end
of its input: numba does not check array indices here, and division is C's. Without compiled code a kernel runs as
the Python function that it is, a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["export", "inlined", "is_compiling", "kernel", "separate", "start_compiling"]

F = TypeVar("F", bound=Callable[..., object])

_compiling = False


def start_compiling() -> None:
    """Make the decorators compile. For `kwire.native.build`, before it imports a kernel."""
    global _compiling
    _compiling = True


def is_compiling() -> bool:
    """Whether kernels that are imported now are compiled."""
    return _compiling


def kernel(function: F) -> F:
    """Compile a helper of kernels; LLVM decides where to inline it."""
    return _compile(function)


def inlined(function: F) -> F:
    """Compile a helper into its callers: a call costs as much as reading a small number."""
    return _compile(function, forceinline=True)


def separate(function: F) -> F:
    """Compile a helper that stays out of its callers if it begins with `apart()`; it would inherit their inlining."""
    return _compile(function, forceinline=False)


def export(function: F) -> F:
    """Compile a kernel that Python calls as `kwire.native.NAME`; EXPORTS there lists it.

    Its annotations are the signature for Python. Parameters are `int` (64 bits, also for addresses) or arrays of
    `kwire.wire.kernels.arrays`; results are `int`, `None`, or a tuple of `int` and `bool`.
    """
    return _compile(function)


def _compile(function: F, **options: bool) -> F:
    if not _compiling:
        return function
    import numba

    njit: Any = numba.njit
    return cast(F, njit(error_model="numpy", **options)(function))
