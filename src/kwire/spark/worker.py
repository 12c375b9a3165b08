"""What a Python worker of Spark needs between two tasks: no garbage collection of objects that stay loaded.

Spark's daemon collects all garbage after each task, and the next one waits for it: with numba and its kernels loaded,
60 ms of walking objects that never go. Taken out of collection, they cost nothing.
Source: pyspark.daemon.manager.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["prepare_worker"]

_modules_kept = 0


def prepare_worker() -> None:
    """Call at the start of a task. Cheap when there is nothing to do."""
    global _modules_kept
    # more modules than before: the last task has loaded something, and its garbage is collected by now
    if "numba" in sys.modules and len(sys.modules) != _modules_kept:
        _modules_kept = len(sys.modules)
        gc.freeze()
