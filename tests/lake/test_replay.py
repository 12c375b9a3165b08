"""`kwire lake append --offsets`: ranges of a log, appended once, or in place of the rows that a table has there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.main import run
from kwire.errors import OptionError, TableError
from kwire.lake import Chosen, Layout, append_logs
from kwire.lake.offset_ranges import Ranges
from kwire.lake.replay import check_chosen
from kwire.lake.verify import verify_table
from kwire.log import LogDirectory
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, write
from tests.lake.test_append import arguments, count_commits

LAYOUT = Layout()
KEY = ("avro", 0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_values(tmp_path / "logs", [b"value %d" % number for number in range(100)])


def append(tables: Tables, source: Path, *ranges: tuple[int, int], replace: bool = False, **options: Any) -> Any:
    logs = [LogDirectory(source)[KEY]]
    return list(
        append_logs(
            tables.open(), logs, layout=LAYOUT, chosen=Chosen(offsets={KEY: ranges}, replace=replace), **options
        )
    )


def offsets_of(tables: Tables) -> list[int]:
    return sorted(tables.read().column("offset").to_pylist())


def spans_of(tables: Tables) -> Ranges:
    table = tables.open()
    table.refresh()
    return table.state().spans[KEY]


def is_same(tables: Tables, source: Path) -> bool:
    table = tables.open()
    table.refresh()
    return next(verify_table(table, [LogDirectory(source)[KEY]])).is_same


def test_chosen_offsets_are_appended_once(tables: Tables, source: Path) -> None:
    (done,) = append(tables, source, (10, 20))
    assert (done.start_offset, done.end_offset, done.rows, done.problem) == (10, 20, 10, None)
    assert spans_of(tables) == ((10, 20),)
    with pytest.raises(TableError, match=r"it has offsets 12 to 14 of avro-0 already; nothing was appended.*--replace"):
        append(tables, source, (12, 15))
    done = append(tables, source, (5, 12), (18, 25))
    assert [(each.start_offset, each.end_offset) for each in done] == [(5, 10), (20, 25)]
    assert done[0].problem == "offsets 10 to 11, 18 to 19 were not written again: the table has them"
    (done,) = append(tables, source, (30, 31))
    assert done.problem == "the table lacks offsets 25 to 29 now; append them with --fill (fill=True)"
    assert offsets_of(tables) == [*range(5, 25), 30]
    list(append_logs(tables.open(), [LogDirectory(source)[KEY]], layout=LAYOUT, fill=True))
    assert offsets_of(tables) == [*range(100)]


def test_a_run_that_was_interrupted_between_two_partitions_goes_on_with_the_second(
    tables: Tables, source: Path
) -> None:
    write_values(source, [b"value %d" % number for number in range(30)], partition=1)
    append(tables, source, (10, 20))  # what a run that was killed has committed
    chosen = Chosen(offsets={KEY: ((10, 20),), ("avro", 1): ((0, 30),)})
    logs = [LogDirectory(source)["avro", partition] for partition in (0, 1)]
    first, second = append_logs(tables.open(), logs, layout=LAYOUT, chosen=chosen)
    assert (first.rows, first.problem) == (0, "offsets 10 to 19 were not written again: the table has them")
    assert (second.start_offset, second.end_offset, second.rows, second.problem) == (0, 30, 30, None)
    with pytest.raises(TableError, match="it has offsets 10 to 19 of avro-0, 0 to 29 of avro-1 already"):
        list(append_logs(tables.open(), logs, layout=LAYOUT, chosen=chosen))


@pytest.mark.parametrize(("start", "end", "is_refused"), [(0, 100, False), (0, 101, True), (99, 100, False)])
def test_offsets_that_the_log_does_not_have(
    tables: Tables, source: Path, start: int, end: int, is_refused: bool
) -> None:
    if is_refused:
        with pytest.raises(OptionError, match="offsets 100 of avro-0 are not in the log, which has 0 to 99"):
            append(tables, source, (start, end))
    else:
        append(tables, source, (start, end))
        assert offsets_of(tables) == [*range(start, end)]


def test_a_run_that_is_killed_between_commits_is_completed(tables: Tables, tmp_path: Path) -> None:
    large = write_values(tmp_path / "large", [b"v" * 2000] * 300)
    log = LogDirectory(large)[KEY]
    table = tables.open()
    commits, really = list[Any](), table.add

    def add(*arguments: Any) -> None:
        if len(commits) == 1:
            raise KeyboardInterrupt
        really(*arguments)
        commits.append(arguments)

    vars(table)["add"] = add
    with pytest.raises(KeyboardInterrupt):
        list(
            append_logs(
                table, [log, log], layout=LAYOUT, chosen=Chosen(offsets={KEY: ((0, 100), (200, 300))}), commit_bytes=1
            )
        )
    assert len(commits) == 1
    append(tables, large, (0, 100), (200, 300))
    assert offsets_of(tables) == [*range(100), *range(200, 300)]


def test_rows_are_replaced_in_one_commit(tables: Tables, source: Path) -> None:
    """Also rows that were changed, deleted or doubled since."""
    append(tables, source, (0, 40))
    append(tables, source, (40, 100))
    write(tables.open(), tables.read().slice(0, 3))
    table: Any = tables.open()
    table.refresh()
    table.table.delete(
        '"offset" >= 50 AND "offset" < 60' if tables.format == "delta" else "offset >= 50 and offset < 60"
    )
    assert not is_same(tables, source)
    table = tables.open()
    commits = count_commits(table)
    logs = [LogDirectory(source)[KEY]]
    (done,) = append_logs(table, logs, layout=LAYOUT, chosen=Chosen(offsets={KEY: ((0, 60),)}, replace=True))
    assert len(commits) == 1
    assert (done.rows, done.start_offset, done.end_offset) == (60, 0, 60)
    assert is_same(tables, source)
    assert spans_of(tables) == ((0, 100),)
    append(tables, source, (0, 60), replace=True)
    assert is_same(tables, source)


def test_replacing_offsets_that_the_table_lacks_appends_them(tables: Tables, source: Path) -> None:
    append(tables, source, (0, 10), replace=True)
    append(tables, source, (5, 100), replace=True)
    assert is_same(tables, source)


def test_a_replacement_that_meets_another_writer(tables: Tables, source: Path) -> None:
    """Rows at the same offsets, and a file that is rewritten: nothing is changed, and no row is there twice."""
    append(tables, source, (0, 50))
    table = tables.open()
    really, calls = table.commit, list[Any]()

    def commit(*given: Any, **options: Any) -> bool:
        if not calls:
            calls.append(given)
            append(tables, source, (10, 20), replace=True)
        return really(*given, **options)

    vars(table)["commit"] = commit
    logs = [LogDirectory(source)[KEY]]
    with pytest.raises(TableError, match="another writer has removed or rewritten"):
        list(append_logs(table, logs, layout=LAYOUT, chosen=Chosen(offsets={KEY: ((0, 30),)}, replace=True)))
    assert offsets_of(tables) == [*range(50)]
    calls.clear()

    def append_later(*given: Any, **options: Any) -> bool:
        if not calls:
            calls.append(given)
            append(tables, source, (60, 70))
        return really(*given, **options)

    vars(table)["commit"] = append_later
    with pytest.raises(TableError, match="another writer has appended avro-0 from offset 60 to 70"):
        list(append_logs(table, logs, layout=LAYOUT, chosen=Chosen(offsets={KEY: ((40, 80),)}, replace=True)))
    assert offsets_of(tables) == [*range(50), *range(60, 70)]


def test_the_command(tables: Tables, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["lake", "append", str(source), *arguments(tables)]
    assert run([*words, "--offsets", "10..20", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["start_offset"], each["end_offset"], each["rows"]) for each in found] == [(10, 20, 10)]
    assert run([*words, "--offsets", "avro-0=10..20"]) == 1
    assert "nothing was appended" in capsys.readouterr().err
    assert run([*words, "--offsets", "avro-0=10..20", "--replace"]) == 0
    assert offsets_of(tables) == [*range(10, 20)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--offsets", "5"], "expected [TOPIC-PARTITION=]FROM..TO with FROM below TO, got '5'"),
        (["--offsets", "5..5"], "with FROM below TO"),
        (["--offsets", "avro-1=5..6"], "avro-1 is not among the partitions"),
        (["--replace"], "--replace: requires --offsets"),
        (["--offsets", "5..6", "--fill"], "--fill and --offsets exclude each other"),
        (["--offsets", "5..6", "--replace", "--skip-missing"], "rows cannot be replaced with skip_missing"),
    ],
)
def test_wrong_usage(
    delta: Tables, source: Path, given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lake", "append", str(source), *arguments(delta), *given]) == 2
    assert message in capsys.readouterr().err


def test_an_empty_log_that_begins_above_0_has_no_offsets() -> None:
    check_chosen(KEY, ((5, 8),), 5, 8)
    with pytest.raises(OptionError, match=r"avro-0 is empty, so it has no offsets 0 to 9$"):
        check_chosen(KEY, ((0, 10),), 5, 5)
