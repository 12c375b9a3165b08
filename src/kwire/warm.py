"""`python -m kwire.warm`: compile every kernel once, so that no later process waits for a compiler.

numba keeps what it compiled beside the sources, or below NUMBA_CACHE_DIR where that is set (containers and clusters
with read-only packages: run this once at image build and ship the directory).
"""

from __future__ import annotations

import importlib
import time

KERNEL_PACKAGES = ("kwire.records.columns", "kwire.plan.warm")


def main() -> None:
    """Load or compile the kernels of every package and say how long it took (seconds)."""
    started = time.perf_counter()
    for name in KERNEL_PACKAGES:
        importlib.import_module(name).warm()
    print(f"kernels ready in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
