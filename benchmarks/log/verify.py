"""How fast is `verify` (checksums, records, indexes, snapshots) compared to kafka-dump-log --deep-iteration?

CPU time, wall time and peak memory of a process, including JVM start or kernel loading. `KWIRE_BENCH_4GB=1` adds a
log of 4 GB, generated in build/bench and removed afterwards.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tools import kafka

from benchmarks.data import log_directory
from benchmarks.processes import Cost, costs_of

RECORDS = 4_000_000  # 0.5 GB uncompressed
LARGE_RECORDS = 31_500_000
VERIFY = """
import sys
from kwire.log import LogDirectory
from kwire.maintenance.verify import verify_directory
found = verify_directory(LogDirectory(sys.argv[1]), threads=int(sys.argv[2]))
assert not [each for each in found.damages if not each.is_harmless], found.damages
"""


def verify(directory: Path, threads: int) -> Cost:
    """Return the best of three runs."""
    return min(costs_of(sys.executable, "-c", VERIFY, str(directory), str(threads)) for _ in range(3))


def dump(directory: Path) -> Cost:
    """Run kafka-dump-log on the same segments, without its output."""
    files = ",".join(str(path) for path in sorted(directory.glob("*/*.log")))
    tool = ("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", files)
    return costs_of("java", "-Xmx1g", "-cp", f"{kafka.jars()}/*", *tool)


def main() -> None:
    """Print the figures."""
    try:
        kafka.jars()
        peer = True
    except kafka.Unavailable as missing:
        print(f"# no peer: {missing}")
        peer = False
    for codec in ("none", "zstd"):
        directory = log_directory(RECORDS if codec == "none" else RECORDS // 2, codec=codec)
        compare(f"log.verify.{codec}", directory, peer)
    if os.environ.get("KWIRE_BENCH_4GB"):
        large = log_directory(LARGE_RECORDS, partitions=1, segments=4)
        try:
            run = verify(large, 1)
            size_mb = sum(path.stat().st_size for path in large.glob("*/*.log")) / 1e6
            print(f"log.verify.4gb {size_mb / run.wall_s:.0f} MB/s - -")
            print(f"log.verify.4gb.peak {run.peak_mb:.0f} MB - of-{size_mb:.0f}MB")
        finally:
            shutil.rmtree(large)


def compare(name: str, directory: Path, peer: bool) -> None:
    """Print the figures of a directory."""
    size_mb = sum(path.stat().st_size for path in directory.glob("*/*.log")) / 1e6
    one = verify(directory, 1)
    all_cores = verify(directory, os.cpu_count() or 1)
    theirs = dump(directory) if peer else None
    ratio = f"{theirs.wall_s / one.wall_s:.1f}" if theirs else "-"
    compared = f"kafka-dump-log-{size_mb / theirs.wall_s:.0f}MB/s" if theirs else "-"
    print(f"{name} {size_mb / one.wall_s:.0f} MB/s {ratio} {compared}")
    print(f"{name}.threads {size_mb / all_cores.wall_s:.0f} MB/s - {os.cpu_count()}-threads")
    cpu = f"{theirs.cpu_s / one.cpu_s:.1f}" if theirs else "-"
    print(f"{name}.cpu {one.cpu_s:.2f} s {cpu} {f'kafka-dump-log-{theirs.cpu_s:.1f}s' if theirs else '-'}")
    memory = f"{one.peak_mb / theirs.peak_mb:.2f}" if theirs else "-"
    print(f"{name}.peak {one.peak_mb:.0f} MB {memory} {f'kafka-dump-log-{theirs.peak_mb:.0f}MB' if theirs else '-'}")


if __name__ == "__main__":
    main()
