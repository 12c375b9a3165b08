"""The partitioning and order that an option says, and an existing table has already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.cli.main import run
from kwire.errors import TableError
from kwire.lake import Layout
from tests.lake.tables import KAFKA, Tables, kafka_rows, write
from tests.lake.test_append import arguments

DAYS = Layout(partition_by=("days(timestamp)", "bucket(4, key)"), sort_by=("key", "offset desc"))


@pytest.mark.parametrize(
    ("format", "has", "says", "message"),
    [
        (
            "iceberg",
            Layout(),
            Layout(partition_by=("topic",)),
            "it exists and is not partitioned, and option partition",
        ),
        ("iceberg", DAYS, Layout(partition_by=("topic",)), r"partitioned by days\(timestamp\), bucket\(4, key\), and"),
        (
            "iceberg",
            DAYS,
            Layout(partition_by=("days(timestamp)", "bucket(8, key)")),
            r"says days.*, bucket\(8, key\), ",
        ),
        (
            "iceberg",
            DAYS,
            Layout(partition_by=("hours(timestamp)", "bucket(4, key)")),
            r"says hours\(timestamp\), buck",
        ),
        ("iceberg", DAYS, Layout(sort_by=("key", "offset")), "sorted by key, offset desc, and option sortBy says key"),
        (
            "iceberg",
            Layout(),
            Layout(sort_by=("key",)),
            "is not sorted, and option sortBy says key, which is for a new",
        ),
        (
            "delta",
            Layout(),
            Layout(partition_by=("topic",)),
            "is not partitioned, and option partitionBy .* says topic",
        ),
        ("delta", Layout(partition_by=("topic",)), Layout(partition_by=("key",)), "partitioned by topic, and .* key"),
    ],
)
def test_another_layout_than_the_tables_is_refused(
    tmp_path: Path, format: str, has: Layout, says: Layout, message: str
) -> None:
    """It was ignored."""
    tables = Tables(format, tmp_path)
    write(tables.open(), kafka_rows(0, 3), layout=has)
    with pytest.raises(TableError, match=message):
        tables.open().prepare(KAFKA, says)
    assert tables.read().num_rows == 3


@pytest.mark.parametrize(
    "says",
    [
        Layout(),
        DAYS,
        Layout(partition_by=("BUCKET( 4,key )", " day(timestamp)"), sort_by=("key asc", "offset DESC")),
        Layout(partition_by=DAYS.partition_by),
    ],
)
def test_the_same_layout_in_other_words_is_not(iceberg: Tables, says: Layout) -> None:
    write(iceberg.open(), kafka_rows(0, 3), layout=DAYS)
    write(iceberg.open(), kafka_rows(3, 5), layout=says)
    assert iceberg.read().num_rows == 5


def test_a_delta_table_is_sorted_as_each_write_says(delta: Tables) -> None:
    write(delta.open(), kafka_rows(0, 3), layout=Layout(partition_by=("topic", "key"), sort_by=("offset",)))
    write(delta.open(), kafka_rows(3, 5), layout=Layout(partition_by=("key", "topic"), sort_by=("value desc",)))
    assert delta.read().num_rows == 5


def test_partitions_that_another_program_has_changed(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    write(table, kafka_rows(0, 3), layout=DAYS)
    with table.table.update_spec() as update:
        update.remove_field("key_bucket_4")
        update.add_identity("topic")
    with pytest.raises(TableError, match=r"partitioned by days\(timestamp\), topic, and option partitionBy"):
        iceberg.open().prepare(KAFKA, DAYS)
    write(iceberg.open(), kafka_rows(3, 5), layout=Layout(partition_by=("days(timestamp)", "topic")))


def test_a_command_with_nothing_to_append_refuses_it_too(
    tables: Tables, kafka_logs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["lake", "append", str(kafka_logs["modern"] / "data"), *arguments(tables), "--topic", "compacted"]
    assert run(command) == 0
    capsys.readouterr()
    for more in ([], ["--dry-run"]):
        assert run([*command, "--partition-by", "topic", *more]) != 0
        assert "--partition-by" in capsys.readouterr().err
