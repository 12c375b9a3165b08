"""A copy of kwire whose C code checks every access to memory and every operation, for a process of its own.

AddressSanitizer and UndefinedBehaviorSanitizer come with the system's compiler. Python's objects are allocated by
malloc then, so that it sees accesses outside of them too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kwire.native.build import build, host_target

ROOT = Path(__file__).parents[2]
COPY = ROOT / "build" / "sanitized"


def sanitized_environment() -> dict[str, str]:
    """Build the copy if it is stale; return the environment of a Python that uses it. Exits if that is impossible."""
    compiler, target = os.environ.get("CC", "cc"), host_target()
    if target is None or shutil.which(compiler) is None:
        sys.exit(f"--sanitize: no C compiler {compiler}; on Debian or Ubuntu: apt-get install gcc")
    command = [compiler, "-print-file-name=libasan.so"]
    runtime = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(runtime).is_absolute():
        sys.exit(f"--sanitize: {compiler} has no AddressSanitizer; on Debian or Ubuntu: apt-get install gcc")
    shutil.copytree(
        ROOT / "src", COPY, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"), dirs_exist_ok=True
    )
    build({target: COPY / "kwire" / "native"}, sanitize=True)
    return {
        **os.environ,
        "PYTHONPATH": f"{COPY}{os.pathsep}{ROOT}",
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps some memory to its end; tests/plan has tests for leaks
        "PYTHONMALLOC": "malloc",
    }
