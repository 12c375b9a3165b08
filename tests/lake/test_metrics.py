"""Metrics of tables in Prometheus' text format, as a parser that is not ours reads them."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.main import run
from kwire.lake import Change, Layout, write_files
from kwire.lake.metrics import CommitCounts, write_gauges, write_metrics
from kwire.schemas import Registry, encode
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, kafka_rows
from tests.lake.test_dead_letters import arguments

SAMPLE = r"^(\w+)(?:\{(.*)\})? (-?[0-9.e+]+)$"


def samples(path: Path) -> dict[tuple[str, ...], float]:
    """Return the samples of a file by name and values of labels; checks order and types as Prometheus does."""
    import re

    found: dict[tuple[str, ...], float] = {}
    kind, family = "", ""
    for line in path.read_text().splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert kind in ("counter", "gauge")
        elif not line.startswith("#"):
            match = re.match(SAMPLE, line)
            assert match, line
            assert match[1] == family
            assert (kind == "counter") == family.endswith("_total")
            labels = re.findall(r'\w+="((?:[^"\\]|\\.)*)"', match[2] or "")
            found[match[1].removeprefix("kwire_table_"), *labels] = float(match[3])
    return found


def test_of_the_command(tables: Tables, tmp_path: Path, registry: Registry) -> None:
    """Two runs, and one with nothing new: counters go on."""
    good = encode({"id": 7}, registry, schema=41)
    source = write_values(tmp_path / "logs", [good, b"bad", good])
    file = tmp_path / "metrics.prom"
    words = ["lake", "append", str(source), *arguments(tables), "--registry", str(tmp_path / "schemas")]
    words += ["--metrics-file", str(file)]
    assert run(words) == 0
    name = tables.open().name
    first = samples(file)
    counts = {"rows": 2, "files": 1, "commits": 1, "commit_retries": 0, "dead_letters": 1}
    assert {each: first[f"{each}_total", name] for each in counts} == counts
    assert first["end_offset", name, "avro", "0"] == 3
    write_values(source, [good, b"bad"], first=3)
    assert run(words) == run(words) == 0
    last = samples(file)
    counts = {"rows": 3, "files": 2, "commits": 2, "commit_retries": 0, "dead_letters": 2}
    assert {each: last[f"{each}_total", name] for each in counts} == counts
    assert last["end_offset", name, "avro", "0"] == 5
    assert last["bytes_total", name] > first["bytes_total", name] > 0


def test_retries_are_counted(tables: Tables) -> None:
    """Two writers of one table commit at the same time until one has had to retry."""
    table = tables.open()
    plan = table.prepare(kafka_rows(0, 1).schema, Layout())
    for _ in range(20):
        writers = [tables.open() for _ in range(3)]
        barrier = threading.Barrier(3)

        def commit(writer: Any, barrier: threading.Barrier = barrier) -> None:
            files = write_files(kafka_rows(0, 5).to_batches(), plan)
            barrier.wait()
            writer.commit(files.files, Change(id=uuid.uuid4().hex), plan)

        threads = [threading.Thread(target=commit, args=(each,)) for each in writers]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [each.counts.commits for each in writers] == [1, 1, 1]
        assert [(each.counts.rows, each.counts.files) for each in writers] == [(5, 1)] * 3
        if sum(each.counts.retries for each in writers):
            return
    if tables.format == "iceberg":  # delta-rs itself retries an append
        pytest.fail("no commit was tried again")


def test_labels_and_other_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "metrics.prom"
    write_metrics(file, 'a"b\\c', CommitCounts(rows=1, newest_us=1_500_000))
    write_metrics(file, 'a"b\\c', CommitCounts(rows=2, newest_us=1_000_000))
    write_gauges(file, "q", {("t", 0): 7, ("t", 1): 0})
    found = samples(file)
    assert found["rows_total", r"a\"b\\c"] == 3
    assert found["newest_record_timestamp_seconds", r"a\"b\\c"] == 1.5
    assert (found["offsets_behind_latest", "q", "t", "0"], found["offsets_behind_latest", "q", "t", "1"]) == (7, 0)
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.prom"]
    assert not caplog.records
    other = tmp_path / "other"
    other.write_text("up 1\n")
    write_metrics(other, "t", CommitCounts(rows=1))
    write_metrics(tmp_path / "missing" / "file", "t", CommitCounts(rows=1))
    assert "it has a line that is not of kwire, 'up 1'; name a file of its own" in caplog.text
    assert "No such file" in caplog.text
    assert other.read_text() == "up 1\n"
