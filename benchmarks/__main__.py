"""`./dev bench [--large] [WORD ...]`: run the benchmarks whose path contains one of the words, all without words.

Those that need much disk and time (they have `LARGE = True`) are left out without --large.

Each benchmark is a module with a docstring that states its question and a `main()` that prints one line a figure:
name, value, unit, ratio to the peer, peer (`-` where there is none). Each runs in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def modules(*, large: bool) -> list[str]:
    """Dotted names of the benchmark modules: those that define main(). large: those with LARGE too."""
    texts = {path: path.read_text() for path in sorted(HERE.glob("*/*.py"))}
    paths = (path for path, text in texts.items() if "\ndef main(" in text and (large or "\nLARGE = True" not in text))
    return [".".join(path.relative_to(HERE.parent).with_suffix("").parts) for path in paths]


def main() -> int:
    """Run what was asked for; exit code 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Run benchmarks.")
    parser.add_argument("--large", action="store_true", help="those that need 12 GB of disk and minutes, too")
    parser.add_argument("words", nargs="*", metavar="WORD", help="benchmarks whose path contains one of them")
    asked = parser.parse_args()
    known = modules(large=asked.large)
    chosen = [name for name in known if not asked.words or any(word in name for word in asked.words)]
    if not chosen:
        print(f"no benchmark matches {' '.join(asked.words)}; there are: {', '.join(known)}", file=sys.stderr)
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
