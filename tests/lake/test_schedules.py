"""Random schedules of writers of one table, compared with a model: each record of the log is in the table once.

Batches of queries, holes, fills, replays, replacements, compactions and appends of other programs, some of them in the
middle of another one's commit, some killed before or after their commit and run again, some without a response.
KWIRE_SCHEDULES=2000 sets how many schedules of each format run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import TableError
from kwire.lake import Chosen, Layout, Mark, append_logs
from kwire.lake.compact import compact_table
from kwire.lake.table import CommitConflict
from kwire.lake.verify import verify_table
from kwire.log import LogDirectory
from kwire.log.reading.readable_log import ReadableLog
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, write

KEY = ("avro", 0)
RECORDS = 60
SCHEDULES = int(os.environ.get("KWIRE_SCHEDULES", "15"))
STEPS = 7
LAYOUT = Layout()


class Killed(BaseException):
    """The end of a process."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> ReadableLog:
    folder = tmp_path_factory.mktemp("log")
    return LogDirectory(write_values(folder, [b"value %d" % number for number in range(RECORDS)]))[KEY]


@dataclass
class Schedule:
    """Writers of one table and the model: `have`, the offsets that the table should have."""

    tables: Tables
    log: ReadableLog
    random: random.Random
    rows: pa.Table
    have: set[int] = field(default_factory=set)
    others: int = 0
    queries: int = 0
    done: list[str] = field(default_factory=list)

    def opened(self) -> Any:
        table = self.tables.open()
        table.refresh()
        return table

    def span(self) -> tuple[int, int]:
        start = self.random.randrange(RECORDS)
        return start, min(RECORDS, start + self.random.randint(1, 15))

    # ---- actions

    def batch(self, table: Any) -> None:
        """A micro-batch of a new query after the table's end, perhaps after a hole, perhaps run twice."""
        end = max(self.have, default=-1) + 1
        start = end + self.random.choice([0, 0, 0, 3])
        offsets = range(start, min(RECORDS, start + self.random.randint(1, 8)))
        if not offsets:
            return
        self.queries += 1
        mark = Mark(query=f"query {self.queries}", batch=self.random.randrange(5))
        rows = self.rows.slice(offsets.start, len(offsets))
        assert self.survive(table, lambda each: write(each, rows, mark=mark)) is not False
        if self.random.random() < 0.3:
            assert not write(self.opened(), rows, mark=mark), "run again"
        self.have |= {*offsets}

    def fill(self, table: Any) -> None:
        logs = [self.log]
        self.survive(table, lambda each: list(append_logs(each, logs, layout=LAYOUT, fill=True)))
        self.have = {*range(RECORDS)}

    def replay(self, table: Any) -> None:
        """Offsets of which the table may have some."""
        start, end = self.span()
        chosen = Chosen(offsets={KEY: ((start, end),)})
        if {*range(start, end)} <= self.have:
            with pytest.raises(TableError, match="already; nothing was appended"):
                list(append_logs(table, [self.log], layout=LAYOUT, chosen=chosen))
            return
        self.survive(table, lambda each: self.appended(each, chosen))
        self.have |= {*range(start, end)}

    def appended(self, table: Any, chosen: Chosen) -> None:
        try:
            list(append_logs(table, [self.log], layout=LAYOUT, chosen=chosen))
        except TableError as error:
            if "already; nothing was appended" not in str(error) or not self.is_killed:
                raise

    def replace(self, table: Any) -> None:
        start, end = self.span()
        chosen = Chosen(offsets={KEY: ((start, end),)}, replace=True)
        self.survive(table, lambda each: list(append_logs(each, [self.log], layout=LAYOUT, chosen=chosen)))
        self.have |= {*range(start, end)}

    def compact(self, table: Any) -> None:
        if table.exists:
            self.survive(table, lambda each: list(compact_table(each)))

    def append_by_others(self, table: Any) -> None:
        """Another program appends rows of its own."""
        if not table.exists:
            return
        count = self.random.randint(1, 3)
        rows = self.rows.slice(0, count)
        rows = rows.set_column(rows.schema.get_field_index("topic"), "topic", pa.array(["other"] * count))
        if self.tables.format == "iceberg":
            table.table.append(rows)
        else:
            import deltalake

            deltalake.write_deltalake(str(self.tables.folder / "orders"), rows, mode="append")
        self.others += count

    # ---- accidents

    is_killed = False

    def survive(self, table: Any, act: Callable[[Any], Any]) -> Any:
        """Do it, perhaps killed before or after its commit, and then again with a new process."""
        really, when = table.add, self.random.choice(["", "", "before", "after", "unanswered"])
        self.is_killed = False

        def add(*given: Any) -> None:
            if when and not self.is_killed:
                self.is_killed = True
                self.done.append(f"killed {when}")
                if when != "before":
                    really(*given)
                if when == "unanswered":
                    raise CommitConflict("a request that was sent twice conflicts with itself")
                raise Killed
            really(*given)

        vars(table)["add"] = add
        try:
            return act(table)
        except Killed:
            found = act(self.opened())
            return None if when == "after" else found

    def together(self) -> None:
        """A compaction, and another action before its commit: only one that changes its files stops it."""
        table = self.opened()
        if not table.exists:
            return
        compaction = compact_table(table)
        if next(compaction, None) is None:
            return
        act = self.random.choice([self.batch, self.replay, self.replace, self.compact, self.append_by_others])
        self.done.append(f"during it {act.__name__}")
        files = {each.path for each in self.opened().live_files()}
        act(self.opened())
        if files <= {each.path for each in self.opened().live_files()}:
            list(compaction)
            return
        with pytest.raises(TableError, match="another writer has removed or rewritten"):
            list(compaction)

    def run(self) -> None:
        acts = [self.batch, self.batch, self.fill, self.replay, self.replace, self.compact, self.append_by_others]
        for _ in range(STEPS):
            act = self.random.choice([*acts, None])
            self.done.append("compact together" if act is None else act.__name__)
            if act is None:
                self.together()
            else:
                act(self.opened())

    def check(self) -> None:
        table = self.opened()
        if not table.exists:
            assert not self.have
            return
        rows = self.tables.read()
        ours = sorted(row["offset"] for row in rows.select(["topic", "offset"]).to_pylist() if row["topic"] == "avro")
        assert ours == sorted(self.have)
        assert len(rows) == len(ours) + self.others
        known = {offset for start, end in table.state().spans.get(KEY, ()) for offset in range(start, end)}
        assert known == self.have
        compared = next(verify_table(table, [self.log]))
        assert (compared.missing.rows, compared.doubled.rows, compared.different.rows, compared.extra.rows) == (
            *(RECORDS - len(ours), 0, 0),
            0,
        )


@pytest.fixture(scope="module")
def rows(log: ReadableLog, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The rows of the log as a query has them."""
    tables = Tables("delta", tmp_path_factory.mktemp("rows"))
    list(append_logs(tables.open(), [log], layout=LAYOUT))
    return tables.read().sort_by("offset")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", ["iceberg", "delta"])
@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_each_record_is_in_the_table_once(
    format: str, seed: int, log: ReadableLog, rows: pa.Table, tmp_path: Path
) -> None:
    schedule = Schedule(Tables(format, tmp_path), log, random.Random(seed), rows)
    try:
        schedule.run()
        schedule.check()
    except Exception as error:
        error.add_note(f"schedule {seed}: {', '.join(schedule.done)}")
        raise
