"""`python -m tests.soak --minutes 30 --seed 7`: kill a broker again and again while clients work, and check."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.soak.soak import soak


def main() -> None:
    """Run one soak and print what it did; the directory of one that failed is kept and named."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kwire-soak-"))
    print(f"seed {given.seed}, {given.minutes:g} minutes, in {directory}", flush=True)
    try:
        report = soak(directory, seconds=given.minutes * 60, seed=given.seed)
    except BaseException:
        print(f"failed; what the broker left is in {directory}", file=sys.stderr)
        raise
    for name, value in asdict(report).items():
        print(f"{name:24}{value}")


if __name__ == "__main__":
    main()
