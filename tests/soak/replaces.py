"""`kwire lake append --replace` is killed while it replaces rows; each offset stays in the table once, with its value.

Before some of the rounds, another library deletes rows in the range, so that the command has something to mend: after a
kill the table has the rows from before the command or all of them, and all of them after the command has run again.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lake.avro_values import write_values
from tests.soak.object_store_process import ObjectStoreProcess
from tests.soak.table_files import NAME, TableFiles
from tests.soak.tables import Cleaner, Place, check_clean

__all__ = ["ReplaceReport", "soak_replaces"]

PARTITIONS, RECORDS = 2, 2000
COMMAND_S = 240
MOMENTS = ("data", "data", "metadata", "metadata", "commit", "any")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceReport:
    """The report of a soak. found: what the table had after a kill: the rows from before it, or all."""

    format: str
    in_object_store: bool
    seed: int
    seconds: float
    kills: int
    ended_before: int
    mended: int
    found: dict[str, int]
    orphans: int


def soak_replaces(
    directory: Path, *, format: str, kills: int, seed: int, in_object_store: bool = False
) -> ReplaceReport:
    """Kill the command a number of times. Raises AssertionError with the first error; the directory is kept."""
    with contextlib.ExitStack() as stack:
        store = ObjectStoreProcess() if in_object_store else None
        if store is not None:
            stack.callback(store.close)
        return _Soak(directory, TableFiles(format, directory, store), seed).run(kills)


class _Soak:
    """One run."""

    def __init__(self, directory: Path, files: TableFiles, seed: int) -> None:
        self.files, self.seed, self.random = files, seed, random.Random(seed)
        self.source = directory / "logs"
        self.cleaner = Cleaner(files)
        self.wanted: dict[Place, bytes] = {}
        for partition in range(PARTITIONS):
            values = [b"%d-%d" % (partition, offset) for offset in range(RECORDS)]
            write_values(self.source, values, partition=partition)
            self.wanted |= {("avro", partition, offset): value for offset, value in enumerate(values)}

    def run(self, kills: int) -> ReplaceReport:
        """Run the soak."""
        started, found, done, ended, mended = time.monotonic(), Counter[str](), 0, 0, 0
        self.append()
        self.check(self.wanted)
        while done < kills:
            partition, first = self.random.randrange(PARTITIONS), self.random.randrange(RECORDS - 1)
            last = self.random.randrange(first + 1, RECORDS)
            before = dict(self.wanted)
            if self.random.random() < 0.5:
                for offset in self.delete(partition, first, last):
                    del before["avro", partition, offset]
            options = ("--offsets", f"avro-{partition}={first}..{last}", "--replace")
            is_killed = self.kill(options)
            done, ended = done + is_killed, ended + (not is_killed)
            rows = self.rows()
            assert rows in (before, self.wanted), f"{len(rows)} rows are neither those from before nor all"
            found["all" if rows == self.wanted else "before"] += 1
            if rows != self.wanted:
                self.append(*options)
                self.check(self.wanted)
                mended += 1
            print(f"{time.monotonic() - started:.0f} s, {done} kills: {dict(found)}", flush=True)
        orphans = check_clean(self.files, self.cleaner)
        self.check(self.wanted)
        return ReplaceReport(
            format=self.files.format,
            in_object_store=self.files.store is not None,
            seed=self.seed,
            seconds=round(time.monotonic() - started, 1),
            kills=done,
            ended_before=ended,
            mended=mended,
            found=dict(found),
            orphans=len(orphans),
        )

    def append(self, *options: str) -> None:
        """Append to the table, without a kill."""
        process = self.cleaner.start_command("append", str(self.source), self.files.name, *options)
        _, errors = process.communicate(timeout=COMMAND_S)
        assert not process.returncode, errors

    def kill(self, options: Sequence[str]) -> bool:
        """Kill the command at a moment; return whether it ran until then."""
        moment = self.random.choice(MOMENTS)
        process = self.cleaner.start_command("append", str(self.source), self.files.name, *options)

        def look() -> None:
            if process.poll() is not None:
                raise _Ended

        with contextlib.suppress(_Ended):
            if moment == "any":
                time.sleep(self.random.uniform(0, 3))
            else:
                self.files.wait_for(moment, COMMAND_S, look)
            time.sleep(self.random.choice((0, self.random.uniform(0, 0.1))))
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=COMMAND_S)
        assert process.returncode in (0, -signal.SIGKILL), errors
        return process.returncode != 0

    def delete(self, partition: int, first: int, last: int) -> range:
        """Delete some rows of a range with the format's own library; return their offsets."""
        start = self.random.randrange(first, last)
        rows = range(start, self.random.randrange(start, last) + 1)
        if self.files.format == "delta":
            from deltalake import DeltaTable

            table = DeltaTable(self.files.name, storage_options=self.files.storage)
            table.delete(f"partition = {partition} AND offset >= {rows[0]} AND offset <= {rows[-1]}")
            return rows
        from pyiceberg.catalog import load_catalog

        loaded = load_catalog(**self.files.catalog).load_table(NAME)
        loaded.delete(f"partition = {partition} AND offset >= {rows[0]} AND offset <= {rows[-1]}")
        return rows

    def rows(self) -> dict[Place, bytes]:
        """Return the values of the table, by a scan of PyIceberg or delta-rs."""
        table = self.files.rows()
        columns = [table.column(name).to_pylist() for name in ("topic", "partition", "offset", "value")]
        found = [
            ((topic, partition, offset), bytes(value)) for topic, partition, offset, value in zip(*columns, strict=True)
        ]
        assert len(dict(found)) == len(found), f"{len(found) - len(dict(found))} offsets are there twice"
        return dict(found)

    def check(self, expected: dict[Place, bytes]) -> None:
        """Raise AssertionError unless the table has these rows."""
        rows = self.rows()
        assert rows == expected, f"{len(rows)} rows instead of {len(expected)}"


class _Ended(Exception):
    """The command ended before it was killed."""
