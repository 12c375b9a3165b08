"""`kwire lake` commands are killed at each of their writes, and run again; each record is in the table once.

Between a kill and the next run, other libraries maintain the table, drop or restore that of dead letters, another kwire
appends to it, or retention deletes the oldest segment of the log. The topic is compacted: its offsets have holes.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import fastavro
from tests.soak.jobs import Jobs
from tests.soak.kill_at_write import Commands, Ended
from tests.soak.object_store_process import ObjectStoreProcess
from tests.soak.table_files import TableFiles
from tests.soak.table_query import RECORDS, record_schema
from tests.soak.tables import Cleaner, Place, check_clean

from kwire.lake.record_tables import suffix_of
from kwire.records import Record, TimestampType, write_batch

__all__ = ["JOB_WAYS", "WAYS", "CommandReport", "Way", "soak_commands"]

PARTITIONS = 2
KEYS = 15
TOPIC = "avro"
PLACE = ("topic", "partition", "offset")
FIELDS = [{"name": "key", "type": "string"}, {"name": "value", "type": ["null", "string"], "default": None}]
ROW_SCHEMA = {"type": "record", "name": "Row", "fields": FIELDS}
NEWER_SCHEMA = {**ROW_SCHEMA, "fields": [*FIELDS, {"name": "more", "type": ["null", "int"], "default": None}]}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW_SCHEMA], "default": None},
        {"name": "after", "type": ["null", "Row"], "default": None},
        {"name": "op", "type": "string"},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}},
    ],
}
Rows = dict[Place, tuple[str, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A command that is killed. options: of `kwire lake append`. shape: of values, see Topic.

    command: that is killed, if it is not the append. by_key: whether the table has the latest value of each key.
    by_lsn: whether that is the one with the highest position in the database. fills: whether the append fills holes.
    """

    name: str
    options: tuple[str, ...] = ()
    shape: str = "bytes"
    command: tuple[str, ...] = ()
    by_key: bool = False
    by_lsn: bool = False
    fills: bool = False


DEBEZIUM = ("--changes", "debezium")
WAYS = (
    Way(name="append"),
    Way(name="partitioned", options=("--partition-by", "partition")),
    Way(name="merge", options=("--merge-key", "key"), by_key=True),
    Way(name="changes", options=(*DEBEZIUM, "--merge-key", "key"), shape="changes", by_key=True),
    Way(
        name="ordered changes",
        options=(*DEBEZIUM, "--merge-key", "key", "--order-by", "source.lsn"),
        shape="changes",
        by_key=True,
        by_lsn=True,
    ),
    Way(name="history of changes", options=DEBEZIUM, shape="changes"),
    Way(name="letters", shape="letters"),
    Way(name="records", options=("--table-by", "record"), shape="records"),
    Way(name="fill", fills=True),
    Way(name="fill letters", shape="letters", fills=True),
    Way(name="fill history of changes", options=DEBEZIUM, shape="changes", fills=True),
    Way(name="offsets"),
    Way(name="compact", command=("compact", "--apply")),
    Way(name="expire", command=("expire", "--older-than", "0", "--apply")),
)
JOB_WAYS = ("append", "partitioned", "merge", "changes", "letters", "records")
"""Those in which jobs.table appends, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReport:
    """The report of a soak. whole: commands that ended before they were killed; others: what other programs did."""

    way: str
    format: str
    in_object_store: bool
    on_spark: bool
    seed: int
    seconds: float
    kills: int
    task_kills: int
    whole: int
    most_writes: int
    rows: int
    orphans: int
    others: dict[str, int]


def soak_commands(
    directory: Path,
    *,
    format: str,
    way: Way,
    kills: int,
    seed: int,
    in_object_store: bool = False,
    on_spark: bool = False,
) -> CommandReport:
    """Kill commands a number of times. Raises AssertionError with the first error; the directory is kept.

    on_spark: jobs.table instead of `kwire lake append`.
    """
    with contextlib.ExitStack() as stack:
        store = ObjectStoreProcess() if in_object_store else None
        if store is not None:
            stack.callback(store.close)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        topic = Topic(scratch / "topic", way.shape, random.Random(seed))
        files = TableFiles(format, directory, store, is_vacuumed=format == "delta")
        commands = Jobs(files, scratch) if on_spark else Commands(files, scratch)
        stack.callback(commands.close)
        return Soak(way, files, commands, topic, seed, stack).run(kills)


class Topic:
    """A compacted topic in a log directory, and its records. shape: of its values.

    bytes: text; records: Avro of three types in turn; changes: events of Debezium, in another order than in the
    database; letters: Avro, some of it damaged, and from some time on with one more column.
    """

    def __init__(self, folder: Path, shape: str, random: random.Random) -> None:
        self.folder, self.shape, self.random = folder, shape, random
        self.rows: Rows = {}
        self.dead: set[Place] = set()
        self.lsns: dict[Place, int] = {}
        self.ends, self.starts = [0] * PARTITIONS, [0] * PARTITIONS
        self.schemas = {1: ROW_SCHEMA}
        folder.mkdir()
        self.registry = folder.parent / "registry"
        self.registry.mkdir()
        if shape == "changes":
            self.register(1, f"{TOPIC}-value", 1, ENVELOPE)
        if shape == "letters":
            self.register(1, f"{TOPIC}-value", 1, ROW_SCHEMA)
        if shape == "records":
            for number, record in enumerate(RECORDS, 1):
                self.register(number, f"{TOPIC}-{record}", 1, json.loads(record_schema(record)))

    def register(self, id: int, subject: str, version: int, schema: Any) -> None:
        """Add a schema to the registry."""
        (self.registry / f"{subject}.{version}.{id}.avsc").write_text(json.dumps(schema))
        self.schemas[id] = fastavro.parse_schema(schema)

    def grow(self) -> None:
        """Add a segment to each partition."""
        for partition in range(PARTITIONS):
            folder = self.folder / f"{TOPIC}-{partition}"
            folder.mkdir(exist_ok=True)
            first, records = self.ends[partition], []
            offset = first
            for _ in range(self.random.randint(20, 60)):
                key = f"{partition}-{self.random.randrange(KEYS)}"
                value = None if self.random.random() < 0.15 else f"{partition}-{offset} {'.' * 40}"
                place = (TOPIC, partition, offset)
                self.rows[place] = (key, value)
                kind = TimestampType.CREATE_TIME
                records.append(
                    Record(
                        offset=offset,
                        timestamp=1,
                        timestamp_type=kind,
                        key=key.encode(),
                        value=self.encode(place, key, value),
                        headers=[],
                    )
                )
                offset += self.random.choice((1, 1, 1, 4))
            self.ends[partition] = records[-1].offset + 1
            (folder / f"{first:020}.log").write_bytes(write_batch(records, base_offset=first, keep_offsets=True))

    def encode(self, place: Place, key: str, value: str | None) -> bytes | None:
        """Return the value of a record."""
        if self.shape == "bytes":
            return None if value is None else value.encode()
        if self.shape == "records":
            number = place[2] % len(RECORDS) + 1
            return self.avro(number, {"key": key, "value": value})
        if self.shape == "changes":
            row = {"key": key, "value": value}
            self.lsns[place] = self.random.getrandbits(60)
            op = {"after": None, "op": "d"} if value is None else {"after": row, "op": "u"}
            return self.avro(1, {"before": row if value is None else None, **op, "source": {"lsn": self.lsns[place]}})
        if self.random.random() < 0.1:
            self.dead.add(place)
            return b"\0\0\0\0\1\xff"
        return self.avro(max(self.schemas), {"key": key, "value": value, "more": place[2]})

    def avro(self, id: int, value: Any) -> bytes:
        """Return a value with its id, encoded by another library."""
        out = io.BytesIO(b"\0" + id.to_bytes(4, "big"))
        out.seek(5)
        fastavro.schemaless_writer(out, self.schemas[id], value)
        return out.getvalue()

    def retain(self) -> None:
        """Delete the oldest segment of a partition, unless it is the last one."""
        partition = self.random.randrange(PARTITIONS)
        segments = sorted((self.folder / f"{TOPIC}-{partition}").glob("*.log"))
        if len(segments) > 1:
            segments[0].unlink()
            self.starts[partition] = int(segments[1].stem)

    def kept(self, rows: Rows) -> Rows:
        """Return the rows that retention has left."""
        return {place: row for place, row in rows.items() if place[2] >= self.starts[place[1]]}


@dataclass
class Soak:
    """One run. writes: of the last whole command. held, existing: offsets and tables that there were so far."""

    way: Way
    files: TableFiles
    commands: Commands
    topic: Topic
    seed: int
    stack: contextlib.ExitStack
    kills: int = 0
    task_kills: int = 0
    whole: int = 0
    writes: int = 6
    most_writes: int = 0
    others: Counter[str] = field(default_factory=Counter)
    held: set[Place] = field(default_factory=set)
    existing: list[TableFiles] = field(default_factory=list)
    others_commands: Commands | None = None

    def run(self, kills: int) -> CommandReport:
        """Run the soak."""
        started, rounds = time.monotonic(), 0
        while self.kills + self.task_kills < kills:
            self.topic.grow()
            rounds += 1
            if self.way.shape == "letters" and rounds == 4:
                self.topic.register(2, f"{TOPIC}-value", 2, NEWER_SCHEMA)
            self.round()
        self.check(is_whole=True)
        orphans = set[str]()
        for files in self.tables():
            orphans |= check_clean(files, ForkedCleaner(files, self.commands))
        self.check(is_whole=True)
        return CommandReport(
            way=self.way.name,
            format=self.files.format,
            in_object_store=self.files.store is not None,
            on_spark=isinstance(self.commands, Jobs),
            seed=self.seed,
            seconds=round(time.monotonic() - started, 1),
            kills=self.kills,
            task_kills=self.task_kills,
            whole=self.whole,
            most_writes=self.most_writes,
            rows=len(self.rows()),
            orphans=len(orphans),
            others=dict(sorted(self.others.items())),
        )

    def round(self) -> None:
        """Append what is new, or maintain the table, with a stop or two kills at most."""
        words = self.words()
        if self.topic.random.random() < 0.3:
            self.stopped(words)
            self.check(is_whole=False)
            self.finish(words)
            self.check(is_whole=True)
            return
        for _ in range(2):
            if not self.killed(words):
                break
            self.check(is_whole=False)
            self.disturb()
        else:
            self.finish(words)
        self.check(is_whole=True)

    def words(self) -> list[str]:
        """Return the command to kill; prepare the table for it."""
        way, ends = self.way, self.topic.ends
        if way.command:
            self.finish(self.append())
            if way.command[0] == "compact":
                return ["lake", "compact", self.files.name, *way.command[1:]]
            self.finish(["lake", "compact", self.files.name, "--apply"])
            return ["lake", *way.command[:1], self.files.name, *way.command[1:]]
        if way.fills:
            middle = [f"{TOPIC}-{number}={max(end - 10, 1)}..{end}" for number, end in enumerate(ends)]
            ended = self.of_others().run(*self.append(*(word for each in middle for word in ("--offsets", each))))
            self.ended_well(ended.code, ended.errors, may_have=True)
            return self.append("--fill")
        if way.name == "offsets":
            starts = self.topic.starts
            chosen = [f"{TOPIC}-{number}={starts[number]}..{end}" for number, end in enumerate(ends)]
            return self.append(*(word for each in chosen for word in ("--offsets", each)))
        return self.append()

    def append(self, *options: str) -> list[str]:
        """Return the command that appends."""
        more = [*self.way.options, *options]
        if self.way.shape != "bytes":
            more += ["--registry", str(self.topic.registry)]
        if self.way.shape == "letters":
            more += ["--dead-letters", self.files.dead_letters]
        return ["lake", "append", str(self.topic.folder), self.files.name, *more]

    def killed(self, words: list[str]) -> bool:
        """Run a command that is killed; return whether it was, before its end."""
        ended = self.commands.run(*words, kill_at=self.topic.random.randint(1, self.writes))
        self.kills += ended.is_killed
        self.task_kills += ended.lost_task
        if not ended.is_killed:
            self.count(ended)
            self.ended_well(ended.code, ended.errors)
            self.whole += not ended.lost_task
        return ended.is_killed

    def stopped(self, words: list[str]) -> None:
        """Stop a command while another one or another library works on the table; it may then fail."""
        ended = self.commands.run(*words, kill_at=self.topic.random.randint(1, self.writes), meanwhile=self.race)
        if ended.code:
            assert "another" in ended.errors or "other writers" in ended.errors, ended.errors
            self.others["refused"] += 1

    def race(self) -> None:
        """Do what a stopped command does not know of. A lock of SQLite that it holds is an error."""
        commands = self.of_others()
        act = self.topic.random.choice(["append", "compact", "optimize"])
        self.others[f"meanwhile {act}"] += 1
        if act == "append":
            commands.run(*self.append())
        elif act == "compact":
            commands.run("lake", "compact", self.files.name, "--apply")
        elif self.files.format == "delta" and self.files in self.tables():
            from deltalake import DeltaTable

            table = DeltaTable(self.files.name, storage_options=self.files.storage)
            table.optimize.compact()
            table.create_checkpoint()

    def of_others(self) -> Commands:
        """Return other commands, which are not killed, nor run by a job."""
        if self.others_commands is None:
            self.others_commands = Commands(self.files, self.commands.scratch / "others")
            self.stack.callback(self.others_commands.close)
        return self.others_commands

    def finish(self, words: list[str], *, may_have: bool = False) -> None:
        """Run a command to its end."""
        ended = self.commands.run(*words)
        self.count(ended)
        self.ended_well(ended.code, ended.errors, may_have=may_have)

    def count(self, ended: Ended) -> None:
        """Remember how many writes a whole command makes."""
        self.writes = max(ended.writes, 1)
        self.most_writes = max(self.most_writes, ended.writes)

    def ended_well(self, code: int, errors: str, *, may_have: bool = False) -> None:
        """Raise AssertionError unless a command has ended as it should."""
        is_known = "already; nothing was appended" in errors and (may_have or self.way.name == "offsets")
        assert code == 0 or is_known, f"exit code {code}: {errors}"

    # ---- other programs

    def disturb(self) -> None:
        """Perhaps let another program do something."""
        acts: list[Callable[[], None] | None] = [None, self.maintain, self.second_writer]
        if self.way.name != "offsets" and not self.way.fills:  # which name offsets, or fill what retention has left
            acts.append(self.topic.retain)
        if self.way.name != "offsets" and not self.way.command:
            acts.append(self.topic.grow)
        if self.way.name == "letters":
            acts += [self.lose_letters] * 2
        act = self.topic.random.choice(acts)
        self.others["nothing" if act is None else act.__name__] += 1
        if act is not None:
            act()

    def second_writer(self) -> None:
        """Append one partition with another command."""
        if self.way.command:
            self.finish(self.append())
            return
        self.finish([*self.append(), "--partition", f"{self.topic.random.randrange(PARTITIONS)}"])

    def lose_letters(self) -> None:
        """Drop the table of dead letters, or restore any version of it that there is."""
        files, draw = replace(self.files, suffix="_dead"), self.topic.random
        if not files.exists():
            return
        if files.format == "iceberg":
            loaded: Any = files.iceberg()
            loaded.manage_snapshots().set_current_snapshot(draw.choice(loaded.snapshots()).snapshot_id).commit()
        elif files.store is None and draw.random() < 0.3:
            shutil.rmtree(files.directory)
        else:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError

            table = DeltaTable(files.name, storage_options=files.storage)
            with contextlib.suppress(DeltaError):  # files of the version are deleted
                table.restore(draw.randrange(max(table.version(), 1)))

    def maintain(self) -> None:
        """Maintain the tables with the format's own library."""
        for files in self.tables():
            with contextlib.suppress(LookupError):
                maintain(files)

    # ---- checks

    def tables(self) -> list[TableFiles]:
        """Return all tables that there are: that of the rows or the index, by record type, and of dead letters."""
        found = [self.files]
        if self.way.shape == "records":
            found += [replace(self.files, suffix=f"_{suffix_of(record)}") for record in RECORDS]
        if self.way.shape == "letters":
            found.append(replace(self.files, suffix="_dead"))
        self.existing += [each for each in found if each not in self.existing and each.exists()]
        return self.existing

    def rows(self) -> Rows:
        """Return the rows of the table, of all tables by record type. Raises AssertionError if one is there twice."""
        tables = [each for each in self.tables() if not each.suffix.endswith("_dead")]
        if self.way.shape == "records":
            tables = [each for each in tables if each.suffix]
        found = [row for each in tables for row in rows_of(each.rows(), self.way.shape)]
        several = [place for place, count in Counter(place for place, _ in found).items() if count > 1]
        assert not several, f"{len(several)} offsets are there twice, such as {several[:3]}"
        return dict(found)

    def expected(self) -> tuple[Rows, Rows]:
        """Return the rows that the table has to have, and those that it may have."""
        rows = {place: row for place, row in self.topic.rows.items() if place not in self.topic.dead}
        if not self.way.by_key:
            return self.topic.kept(rows), rows
        order = self.topic.lsns.__getitem__ if self.way.by_lsn else None
        last = {rows[place][0]: place for place in sorted(rows, key=order)}
        latest = {place: rows[place] for place in last.values() if rows[place][1] is not None}
        return self.topic.kept(latest), latest

    def check(self, *, is_whole: bool) -> None:
        """Check the table: no row twice, none of another record, none less than before.

        is_whole: a command has ended, so that all rows are there.
        """
        found, every = self.rows(), self.topic.rows
        wrong = [place for place, row in found.items() if every.get(place) != row or place in self.topic.dead]
        assert not wrong, f"{len(wrong)} rows are not of the topic, such as {wrong[:3]}"
        if not self.way.by_key:
            gone = self.held - found.keys()
            assert not gone, f"{len(gone)} rows that the table had are missing, such as {sorted(gone)[:3]}"
            self.held |= found.keys()
        if is_whole:
            wanted, possible = self.expected()
            missing, extra = wanted.keys() - found.keys(), found.keys() - possible.keys()
            assert not missing, f"{len(missing)} of {len(wanted)} rows are missing, such as {sorted(missing)[:3]}"
            if self.way.by_key and any(self.topic.starts):  # retention may have deleted later values of a key
                extra = {place for place in extra if found[place][0] in {key for key, _ in wanted.values()}}
            assert not extra, f"{len(extra)} rows are too many, such as {sorted(extra)[:3]}"
        if self.way.shape == "letters":
            self.check_letters(is_whole=is_whole)

    def check_letters(self, *, is_whole: bool) -> None:
        """Check the table of dead letters."""
        tables = [each for each in self.tables() if each.suffix == "_dead" and each.exists()]
        columns = [each.rows().column(name).to_pylist() for each in tables for name in PLACE]
        found = list(zip(*columns, strict=True))
        assert len(found) == len(set(found)), f"{len(found) - len(set(found))} dead letters are there twice"
        assert set(found) <= self.topic.dead, f"{sorted(set(found) - self.topic.dead)[:3]} are not dead letters"
        kept = {place for place in self.topic.dead if place[2] >= self.topic.starts[place[1]]}
        assert not is_whole or kept <= set(found), f"{sorted(kept - set(found))[:3]} are not dead letters yet"


class ForkedCleaner(Cleaner):
    """A Cleaner that does not start a process for each command."""

    def __init__(self, files: TableFiles, commands: Commands) -> None:
        super().__init__(files)
        self.commands = commands

    def command(self, name: str, *options: str) -> list[Any]:
        """Run `kwire lake NAME` on the table, and return its rows."""
        ended = self.commands.run("lake", name, self.files.name, *options, "--format", "json")
        assert ended.code in (0, 1), ended.errors
        rows: list[Any] = json.loads((self.commands.scratch / "output").read_text())
        return rows


def rows_of(table: Any, shape: str) -> list[tuple[Place, tuple[str, str | None]]]:
    """Return the rows of a table as those of a topic."""
    places = [table.column(name).to_pylist() for name in PLACE]
    if shape in ("letters", "records"):
        pairs = [(each["key"], each["value"]) for each in table.column("value").to_pylist()]
    else:
        pairs = list(zip(*(map(text_of, table.column(name).to_pylist()) for name in ("key", "value")), strict=True))
    found = list(zip(zip(*places, strict=True), pairs, strict=True))
    if "__source_lsn" not in table.column_names:
        return found
    ops = table.column("__op").to_pylist()  # a deletion stays a row, since an older change may still come
    return [row for row, op in zip(found, ops, strict=True) if op != "d"]


def text_of(value: bytes | str | None) -> Any:
    """Return bytes as text."""
    return value.decode() if isinstance(value, bytes) else value


def maintain(files: TableFiles) -> None:
    """Compact, clean up and forget old versions with the format's own library. Raises LookupError without a table."""
    if files.format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(files.name, storage_options=files.storage)
        table.optimize.compact()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        table.create_checkpoint()
        table.cleanup_metadata()
        return
    import datetime

    loaded = files.iceberg()
    if loaded is not None:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        loaded.maintenance.expire_snapshots().older_than(now).commit()
