"""`./dev bench [WORD ...]`: run the benchmarks whose path contains one of the words, all without words.

Each benchmark is a module with a docstring that states its question and a `main()` that prints one line a figure:
name, value, unit, ratio to the peer, peer (`-` where there is none). Each runs in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def modules() -> list[str]:
    """Dotted names of the benchmark modules: those that define main()."""
    paths = (p for p in sorted(HERE.glob("*/*.py")) if "\ndef main(" in p.read_text())
    return [".".join(path.relative_to(HERE.parent).with_suffix("").parts) for path in paths]


def main() -> int:
    """Run what was asked for; exit code 1 when one of them failed."""
    words = sys.argv[1:]
    chosen = [name for name in modules() if not words or any(word in name for word in words)]
    if not chosen:
        print(f"no benchmark matches {' '.join(words)}; there are: {', '.join(modules())}", file=sys.stderr)
        return 2
    libraries = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in ("numba", "pyarrow", "msgspec", "pyspark"))
    print(f"# Python {platform.python_version()}, {libraries}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    failed = 0
    for name in chosen:
        print(f"# {name}", flush=True)
        failed |= subprocess.run([sys.executable, "-c", f"from {name} import main; main()"], check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
