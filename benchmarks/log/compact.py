"""How fast is log compaction, compared to Kafka's cleaner on the same files?

Three dirty logs of 100,000 repeated keys: batches of 16 KB, with and without zstd, or of one record each. kwire: one
pass in a separate process. Kafka 3.9.1: the third run of its Cleaner class in a JVM, CPU time of its thread without the
JVM's compiler and garbage collector. Figures are MB of segments read per CPU second, and RSS in MB.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.data import log_directory
from kwire.log import FileSystem, LogConfig, LogDirectory, PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints

NOW_MS = 1_800_000_000_000
SETTINGS = {"cleanup.policy": "compact", "segment.bytes": str(256 << 20), "retention.ms": "-1"}
MAP_BYTES = 128 << 20
RECORDS = 2_000_000


def prepare(source: Path, target: Path, *, single: bool = False) -> Path:
    """Create a partition with the records of a segment directory. single: one record per batch."""
    from kwire.records.columns.reader import ColumnReader
    from kwire.records.columns.writer import ColumnWriter

    directory = target / "bench-0"
    directory.mkdir(parents=True)
    for segment in LogDirectory(source)["bench", 0].segments:
        path = directory / Path(segment.url).name
        if not single:
            shutil.copy(segment.url, path)
            continue
        writer = ColumnWriter(base_offset=segment.base_offset, batch_size=1)
        with path.open("wb") as file:
            for batch in ColumnReader(["key", "value", "timestamp"]).read(Path(segment.url).read_bytes()):
                for part in writer.write(batch):
                    file.write(part)
    log = PartitionWriter.open(FileSystem(), str(directory), "bench", 0, LogConfig.parse(SETTINGS), now_ms=NOW_MS)
    log.roll(NOW_MS)
    log.close()
    return directory


def clean(directory: str) -> None:
    """Compact a partition, after loading the kernels, and print the cost."""
    import time

    from kwire.log.cleaner import Cleaner
    from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints

    with tempfile.TemporaryDirectory() as folder:  # two passes over little data load the kernels
        warm = Path(folder) / "bench-0"
        warm.mkdir()
        small = LogDirectory(log_directory(20_000, partitions=1, segments=2))["bench", 0]
        for segment in small.segments:
            shutil.copy(segment.url, warm)
        log = PartitionWriter.open(FileSystem(), str(warm), "bench", 0, LogConfig.parse(SETTINGS), now_ms=NOW_MS)
        Cleaner(CleanerCheckpoints(FileSystem(), folder)).clean(log, NOW_MS)
    log = PartitionWriter.open(
        FileSystem(),
        directory,
        "bench",
        0,
        LogConfig.parse(SETTINGS),
        now_ms=NOW_MS,
        checkpoints=PartitionCheckpoints(is_clean=True),
    )
    cleaner = Cleaner(CleanerCheckpoints(FileSystem(), str(Path(directory).parent)), dedupe_buffer_bytes=MAP_BYTES)
    cpu, wall = time.process_time(), time.perf_counter()
    stats = cleaner.clean(log, NOW_MS)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([cpu, wall, rss / 1e3, stats.bytes_read, stats.bytes_written, stats.records_written]))


def clean_with_kafka(directories: list[Path], tasks: Path) -> list[float]:
    """Compact copies of a partition with Kafka's Cleaner; print the cost of the last one, as clean() does."""
    from tools import kafka

    settings = ",".join(f"{name}={value}" for name, value in SETTINGS.items())
    tasks.write_text("".join(f"clean {each} {NOW_MS} {settings} {MAP_BYTES} -1\n" for each in directories))
    classes = kafka.compile_java(kafka.ROOT / "tools" / "java" / "CleanLog.java")
    words = kafka.java("CleanLog", str(tasks), classes=classes).splitlines()[-1].split()
    rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return [int(words[7]) / 1e9, int(words[8]) / 1e9, rss / 1e3, float(words[3]), float(words[4]), float(words[6])]


def compare(name: str, source: Path, *, single: bool = False) -> None:
    """Print the figures of a log."""
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        root = Path(folder)
        ours = prepare(source, root / "ours", single=single)
        copies = [Path(shutil.copytree(ours.parent, root / each)) / "bench-0" for each in ("first", "second", "third")]
        done = subprocess.run(
            [sys.executable, "-c", f"from benchmarks.log.compact import clean; clean({str(ours)!r})"],
            capture_output=True,
            text=True,
            check=True,
        )
        cpu, wall, rss, read, written, left = json.loads(done.stdout)
        theirs = clean_with_kafka(copies, root / "tasks")
        assert (read, left) == (theirs[3], theirs[5]), "the two cleaners do not agree"
        mb = read / 1e6
        peer = f"kafka-3.9.1-{mb / theirs[0]:.0f}MB/s-of-{mb:.0f}MB-to-{written / 1e6:.0f}MB"
        print(f"log.compact.{name} {mb / cpu:.0f} MB/s-of-CPU {theirs[0] / cpu:.2f} {peer}")
        peer = f"kafka-3.9.1-{mb / theirs[1]:.0f}MB/s"
        print(f"log.compact.{name}.wall {mb / wall:.0f} MB/s {theirs[1] / wall:.2f} {peer}")
        print(f"log.compact.{name}.rss {rss:.0f} MB {rss / theirs[2]:.2f} kafka-3.9.1-{theirs[2]:.0f}MB-heap-of-1g")


def main() -> None:
    """Print the figures."""
    plain = log_directory(RECORDS, partitions=1, segments=3)
    compare("16kb-batches", plain)
    compare("zstd", log_directory(RECORDS, partitions=1, segments=3, codec="zstd"))
    compare("one-record-batches", plain, single=True)


if __name__ == "__main__":
    main()
