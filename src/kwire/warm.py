"""`python -m kwire.warm`: compile all kernels, so that no later process waits for the compiler.

numba caches compiled code in `__pycache__`, or below NUMBA_CACHE_DIR if it is set. For containers and clusters with
read-only packages, set it, run this command when the image is built, and ship the directory.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import kwire

WARMERS = (
    ("kwire.records.columns", "warm"),
    ("kwire.records.column_writer", "warm_writing"),
    ("kwire.records.partitioner", "warm_partitioner"),
    ("kwire.plan.warm", "warm"),
    ("kwire.maintenance.warming", "warm"),
)
SECOND_PROCESS = "kwire.plan.warm"
"""Half of the work, which shares no kernel with the rest."""


def drop_stale_kernels(package: Path = Path(kwire.__file__).parent) -> bool:
    """Delete numba's cache in `__pycache__` if any kernel source has changed since the last call.

    numba checks the file of a function only, not the modules whose functions it inlines: after an edit of one kernel
    module, kernels in others would still use the old code. This matters to checkouts, since a release replaces all
    files. Does nothing if the package is read-only or NUMBA_CACHE_DIR is set. Returns whether to compile everything.
    """
    folders = {*package.rglob("kernels"), *(module.parent for module in package.rglob("kernels.py"))}
    sources = sorted(source for folder in folders for source in folder.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = package / "__pycache__" / "kernels.sha256"
    if os.environ.get("NUMBA_CACHE_DIR") or (stamp.exists() and stamp.read_text() == digest):
        return False
    try:
        for folder in {source.parent for source in sources}:
            for compiled in (folder / "__pycache__").glob("*.nb[ci]"):
                compiled.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)
    except OSError:
        return False
    return True


def warm(modules: list[str]) -> None:
    """Load or compile the kernels of modules in WARMERS."""
    for module, function in WARMERS:
        if module in modules:
            getattr(importlib.import_module(module), function)()


def main() -> None:
    """Load or compile all kernels, or those of the modules given as arguments, and print the time in seconds.

    If everything has to be compiled, a second process does half of it.
    """
    started = time.perf_counter()
    if chosen := sys.argv[1:]:
        warm(chosen)
        return
    if drop_stale_kernels():
        other = subprocess.Popen([sys.executable, "-m", "kwire.warm", SECOND_PROCESS])
        warm([module for module, _ in WARMERS if module != SECOND_PROCESS])
        other.wait()
    warm([module for module, _ in WARMERS])
    print(f"kernels ready in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
