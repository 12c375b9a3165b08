"""`./dev vectors`: build the data set with Kafka's classes, or let them judge it again (--check)."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import resources
from pathlib import Path

from kwire.conformance.vectors.data_set import cases
from tools.kafka import Unavailable
from tools.vectors.build import build, contradictions, write
from tools.vectors.releases import JUDGES


def main() -> int:
    """Return 1 if Kafka contradicts a case."""
    parser = argparse.ArgumentParser(prog="./dev vectors", description=__doc__)
    parser.add_argument("--check", action="store_true", help="judge the data set of the package, and write nothing")
    parser.add_argument("--release", choices=JUDGES, help="with --check: only by this release")
    parser.add_argument("-o", "--output", type=Path, help="folder of the files; the package by default")
    given = parser.parse_args()
    started = time.monotonic()
    try:
        if given.check:
            found = contradictions(cases(), [given.release] if given.release else JUDGES)
        else:
            package = Path(str(resources.files("kwire.conformance.vectors"))) / "data"
            made, found = build()
            manifest = write(made, given.output or package)
            for chapter, counts in manifest["chapters"].items():
                print(
                    f"  {chapter}: "
                    + ", ".join(f"{count} {name}" for name, count in counts.items() if name != "sha256")
                )
    except Unavailable as error:
        print(f"dev vectors: {error}", file=sys.stderr)
        return 2
    for each in found[:50]:
        print(each)
    print(f"{len(found)} contradictions, {time.monotonic() - started:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
