"""Preparation of a worker before a task."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, sys
from kwire.spark.worker import prepare_worker
prepare_worker()
assert "numba" not in sys.modules and gc.get_freeze_count() == 0
import kwire.records.kernels.encode
gc.collect()
before = len(gc.get_objects())
prepare_worker()
kept = gc.get_freeze_count()
assert kept > 0.9 * before > 10_000
assert len(gc.get_objects()) < 0.1 * before
more = [[] for _ in range(1000)]
prepare_worker()  # nothing was loaded since: what a task leaves behind is not kept
assert gc.get_freeze_count() <= kept
"""


def test_the_garbage_collector_skips_loaded_modules_but_not_objects_of_tasks() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
