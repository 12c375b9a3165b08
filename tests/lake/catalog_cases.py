"""Cases for tables of every Iceberg catalog: written by the command as a process, by threads and by tasks."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import TableError
from kwire.lake import Change, LakeTable, Layout, Mark, open_iceberg, write_files
from tests.lake.tables import KAFKA, kafka_rows, write

__all__ = [
    "appended_at_once",
    "bare_environment",
    "command",
    "commands_copy_a_log",
    "removed_meanwhile",
    "rows_of",
    "settings_as_variables",
    "written_and_merged",
    "written_elsewhere",
]

KEY = ("key",)
SPAN = {"topic": "orders", "partition": 0, "start_offset": 0, "end_offset": 7015}
TASK = """
import pickle, sys
from tests.lake.tables import kafka_rows
from kwire.lake import write_files
plan = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(write_files(kafka_rows(20, 30).to_batches(), plan)))
"""


def settings_as_variables(settings: Mapping[str, str], name: str = "default") -> dict[str, str]:
    """Return a catalog's properties as environment variables of PyIceberg."""
    return {
        f"PYICEBERG_CATALOG__{name}__{key.replace('.', '__').replace('-', '_')}".upper(): value
        for key, value in settings.items()
    }


def bare_environment(home: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process that has an empty home, no proxy, and only these settings."""
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "JAVA_HOME") if name in os.environ}
    return {**kept, "HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true", **(variables or {})}


def started(words: Sequence[str], home: Path, variables: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start `kwire lake` as a process."""
    program = [sys.executable, "-m", "kwire.cli", "lake", *words]
    environment = bare_environment(home, variables)
    return subprocess.Popen(
        program, env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def command(words: Sequence[str], home: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `kwire lake` as a process."""
    process = started(words, home, variables)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def commands_copy_a_log(source: Path, home: Path, variables: Mapping[str, str], *words: str) -> None:
    """Append logs with the command, twice and two at once, and print offsets and orphans; `words` name the catalog."""
    append = [
        "append",
        str(source),
        "sales.copied",
        "--topic",
        "orders",
        "--partition",
        "0",
        "--format",
        "json",
        *words,
    ]
    for rows in (7015, 0):
        done = command(append, home, variables)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[0]["rows"] == rows
        assert done.stderr == ""
    offsets = command(["offsets", "sales.copied", "--format", "json", *words], home, variables)
    assert json.loads(offsets.stdout) == [SPAN]
    clean = command(["clean", "sales.copied", "--older-than", "0", "--format", "json", *words], home, variables)
    assert json.loads(clean.stdout) == []
    at_once = [
        started(["append", str(source), "busy.copied", "--topic", topic, "--partition", "0", *words], home, variables)
        for topic in ("orders", "compacted")
    ]
    for process in at_once:
        _, stderr = process.communicate()
        assert (process.returncode, stderr) == (0, "")
    offsets = command(["offsets", "busy.copied", "--format", "json", *words], home, variables)
    assert [each["topic"] for each in json.loads(offsets.stdout)] == ["compacted", "orders"]


def written_and_merged(settings: Mapping[str, str]) -> None:
    """Create, write, evolve, merge and clean a table."""
    table: Any = open_iceberg("sales.whole", settings)
    layout = Layout(partition_by=("days(timestamp)",), sort_by=("key",), properties={"owner": "sales"})
    assert write(table, kafka_rows(0, 50), mark=Mark(query="q", batch=0), layout=layout, key=KEY)
    assert not write(open_iceberg("sales.whole", settings), kafka_rows(0, 50), mark=Mark(query="q", batch=0), key=KEY)
    write(table, kafka_rows(50, 60).append_column("note", pa.array(["new"] * 10)), key=KEY)
    write(table, kafka_rows(60, 70, key=4), key=KEY)
    rows = rows_of(table)
    assert (len(rows), rows.column("note").null_count) == (60, 50)  # four keys were there
    assert table.state().spans == {("orders", 0): ((0, 70),)}
    plan = table.prepare(rows.schema, Layout())
    (dead,) = write_files(kafka_rows(70, 71).to_batches(), plan).files
    (orphan,) = table.find_orphans(0)
    assert orphan.path.rpartition("/")[2] == dead.path.rpartition("/")[2]
    table.delete_orphans([orphan])
    assert table.find_orphans(0) == []


def appended_at_once(settings: Mapping[str, str], writers: int = 3) -> None:
    """Create one table by several writers at the same time, in a new namespace, and append to it."""
    together, errors = threading.Barrier(writers), list[Exception]()

    def append(partition: int) -> None:
        try:
            together.wait()
            for start in range(0, 20, 10):
                write(open_iceberg("busy.orders", settings), kafka_rows(start, start + 10, partition=partition))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=(partition,)) for partition in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    table: Any = open_iceberg("busy.orders", settings)
    assert len(rows_of(table)) == writers * 20
    assert table.state().spans == {("orders", partition): ((0, 20),) for partition in range(writers)}


def written_elsewhere(settings: Mapping[str, str], secrets: Sequence[str], home: Path, **variables: str) -> None:
    """Write files of a task in a process that has no settings of the catalog; the task gets none of its secrets."""
    table: Any = open_iceberg("sales.tasks", settings)
    write(table, kafka_rows(0, 20))
    plan = table.prepare(KAFKA, Layout())
    sent = pickle.dumps(plan)
    assert all(secret.encode() not in sent for secret in secrets)
    environment = bare_environment(home, {**variables, "PYTHONPATH": os.getcwd()})
    done = subprocess.run([sys.executable, "-c", TASK], input=sent, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    written = pickle.loads(done.stdout)
    assert table.commit(written.files, Change(id="a", spans=written.spans), plan)
    assert sorted(rows_of(table).column("offset").to_pylist()) == list(range(30))


def removed_meanwhile(table: LakeTable, remove: Any) -> None:
    """Remove a table between the writing of files and their commit, and create it again: nothing is committed."""
    opened: Any = table
    for is_created_again in (False, True):
        write(opened, kafka_rows(0, 10))
        plan = opened.prepare(KAFKA, Layout())
        written = write_files(kafka_rows(10, 20).to_batches(), plan)
        remove()
        if is_created_again:
            opened.refresh()
            write(open_iceberg(opened.name, opened._settings), kafka_rows(0, 1))
        with pytest.raises(
            TableError, match="it was removed or replaced by another program while rows were written; run again"
        ):
            opened.commit(written.files, Change(id="a", spans=written.spans), plan)
        for each in written.files:
            assert not plan._io.new_input(each.path).exists()
        if not is_created_again:
            opened.refresh()


def rows_of(table: Any) -> pa.Table:
    """Return a table's rows as PyIceberg reads them."""
    table.refresh()
    return table.table.scan().to_arrow()
