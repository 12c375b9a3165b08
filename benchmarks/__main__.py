"""`./dev bench [--large | --scale] [WORD ...]`: run the benchmarks whose path contains one of the words, or all.

Benchmarks with `LARGE = True`, which need much disk and time, run with --large only; those with `SCALE = True`, which
show how cost grows with the amount of data, with --scale only.

Each benchmark is a module with a docstring that states its question and a `main()` that prints one line per figure:
name, value, unit, ratio to the peer, peer (`-` without one). Each runs in its own process.
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


def modules(*, large: bool, scale: bool) -> list[str]:
    """Return the dotted names of the modules that define main(). large: include those with LARGE.

    scale: only those with SCALE.
    """
    texts = {path: path.read_text() for path in sorted(HERE.glob("*/*.py"))}
    paths = (
        path
        for path, text in texts.items()
        if "\ndef main(" in text and (large or "\nLARGE = True" not in text) and scale is ("\nSCALE = True" in text)
    )
    return [".".join(path.relative_to(HERE.parent).with_suffix("").parts) for path in paths]


def main() -> int:
    """Run the selected benchmarks. Returns 1 if one failed, 2 if none matches."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Run benchmarks.")
    parser.add_argument(
        "--large", action="store_true", help="also run those that need 12 GB of disk and several minutes"
    )
    parser.add_argument("--scale", action="store_true", help="run those that show how cost grows, and no others")
    parser.add_argument("words", nargs="*", metavar="WORD", help="benchmarks whose path contains one of them")
    given = parser.parse_args()
    known = modules(large=given.large, scale=given.scale)
    chosen = [name for name in known if not given.words or any(word in name for word in given.words)]
    if not chosen:
        print(f"no benchmark matches {' '.join(given.words)}; available: {', '.join(known)}", file=sys.stderr)
        return 2
    libraries = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in ("pyarrow", "msgspec", "pyspark"))
    print(f"# Python {platform.python_version()}, {libraries}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    failed = 0
    for name in chosen:
        print(f"# {name}", flush=True)
        failed |= subprocess.run([sys.executable, "-c", f"from {name} import main; main()"], check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
