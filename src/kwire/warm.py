"""`python -m kwire.warm`: compile every kernel once, so that no later process waits for a compiler.

numba keeps what it compiled beside the sources, or below NUMBA_CACHE_DIR where that is set (containers and clusters
with read-only packages: run this once at image build and ship the directory).
"""

from __future__ import annotations

import hashlib
import importlib
import os
import time
from pathlib import Path

import kwire

WARMERS = (
    ("kwire.records.columns", "warm"),
    ("kwire.records.column_writer", "warm_writing"),
    ("kwire.records.partitioner", "warm_partitioner"),
    ("kwire.plan.warm", "warm"),
    ("kwire.log.cleaner.warming", "warm"),
)


def drop_stale_kernels(package: Path = Path(kwire.__file__).parent) -> None:
    """Delete what numba compiled beside the sources if any kernel source has changed since the last call.

    numba looks at the file of a function only, not at the modules whose functions it inlines: after an edit of one
    kernel module, kernels of others would go on with the old code. Installing a release renews all files at once, so
    this matters to checkouts. Does nothing where the sources cannot be written beside, or NUMBA_CACHE_DIR is set.
    """
    folders = {*package.rglob("kernels"), *(module.parent for module in package.rglob("kernels.py"))}
    sources = sorted(source for folder in folders for source in folder.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = package / "__pycache__" / "kernels.sha256"
    if os.environ.get("NUMBA_CACHE_DIR") or (stamp.exists() and stamp.read_text() == digest):
        return
    try:
        for folder in {source.parent for source in sources}:
            for compiled in (folder / "__pycache__").glob("*.nb[ci]"):
                compiled.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)
    except OSError:
        return


def main() -> None:
    """Load or compile the kernels of every package and say how long it took (seconds)."""
    started = time.perf_counter()
    drop_stale_kernels()
    for module, function in WARMERS:
        getattr(importlib.import_module(module), function)()
    print(f"kernels ready in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
