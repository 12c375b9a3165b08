"""The choice of interpreter: the walker, available immediately, or the kernels, which must be loaded.

Loading takes half a second of CPU (numba itself, then the machine code from its cache), ten without the cache. So a
process starts with the walker. If it continues to call codecs, a thread loads the kernels in the background: after
CALLS_BEFORE_LOADING calls or the same work in large messages, or immediately after `load_in_background`. Every codec
then switches at its next call. Nothing else changes: both return the same objects, bytes and errors.

    KWIRE_KERNEL=0    never load the kernels
    KWIRE_KERNEL=1    load them before the first codec is made; ImportError if that fails

If numba is missing and the variable is not set, the walker stays in use; `problem()` returns the reason.
"""

from __future__ import annotations

import contextlib
import os
import threading
from types import ModuleType

__all__ = ["CALLS_BEFORE_LOADING", "VARIABLE", "kernels", "load", "load_in_background", "problem"]

VARIABLE = "KWIRE_KERNEL"
CALLS_BEFORE_LOADING = 500
"""Walker calls of the process: some 50 ms of work, which a command that reads one message does not reach."""
BYTES_OF_A_CALL = 512
"""This many bytes of messages count as one more call: the walker takes 0.2 us per byte."""

_loading = threading.Lock()  # held for as long as loading takes
_starting = threading.Lock()
_loaded: ModuleType | None = None
_problem: Exception | None = None
_thread: threading.Thread | None = None
_calls = 0


def kernels() -> ModuleType | None:
    """`kwire.plan.kernels.entry` if it is loaded; loads it first if the environment says so."""
    if _loaded is None and os.environ.get(VARIABLE) == "1":
        return load()
    return _loaded


def load() -> ModuleType:
    """Load the kernels and wait for them. Raises ImportError if loading fails or KWIRE_KERNEL=0."""
    global _loaded, _problem
    if os.environ.get(VARIABLE) == "0":
        raise ImportError(f"{VARIABLE}=0 keeps the kernels off")
    with _loading:
        if _loaded is None:
            try:
                from kwire.plan.kernels import entry
            except Exception as error:  # whatever a broken numba or LLVM raises
                _problem = error
                raise ImportError(f"the kernels cannot be loaded: {error}") from error
            _loaded = entry
        return _loaded


def load_in_background() -> threading.Thread | None:
    """Start loading the kernels, once; returns the thread. None when the environment keeps them off."""
    global _thread
    if os.environ.get(VARIABLE) == "0":
        return None
    with _starting:
        if _thread is None:
            _thread = threading.Thread(target=_load_quietly, name="kwire kernels", daemon=True)
            _thread.start()
        return _thread


def problem() -> Exception | None:
    """Why the kernels could not be loaded; None when they are, or nobody has tried."""
    return _problem


def count_call() -> ModuleType | None:
    """Count a call that the walker serves; returns the kernels once they are loaded."""
    global _calls
    _calls += 1
    if _calls >= CALLS_BEFORE_LOADING and _thread is None:  # not ==: concurrent threads may skip a number
        load_in_background()
    return _loaded


def count_bytes(size_bytes: int) -> None:
    """Called by a codec after the walker has read or written a message of that size."""
    global _calls
    before, _calls = _calls, _calls + size_bytes // BYTES_OF_A_CALL
    if before < CALLS_BEFORE_LOADING <= _calls:
        load_in_background()


def _load_quietly() -> None:
    with contextlib.suppress(ImportError):  # the walker continues; problem() has the reason
        load()
