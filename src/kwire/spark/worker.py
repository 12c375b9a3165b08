"""What a Python worker of Spark needs before a task: a place for compiled kernels, and no walks over what stays loaded.

Spark's daemon collects all garbage after each task, and the next one waits for it: with numba and its kernels loaded,
60 ms of walking objects that never go. Taken out of collection, they cost nothing.
Source: pyspark.daemon.manager.
"""

from __future__ import annotations

import gc
import sys

from kwire.spark.kernel_cache import prepare_kernel_cache

__all__ = ["prepare_worker"]

_modules_kept = 0


def prepare_worker() -> None:
    """Call at the start of a task, before anything imports numba. Cheap when there is nothing to do."""
    global _modules_kept
    if "numba" not in sys.modules:
        prepare_kernel_cache()
    elif len(sys.modules) != _modules_kept:  # the last task has loaded something, and its garbage is collected by now
        _modules_kept = len(sys.modules)
        gc.freeze()
