"""Schemas: columns that appear, types that do not fit, tables that somebody else has changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kwire.errors import OptionError, TableError
from kwire.lake import Layout, write_files
from kwire.lake.arrow_columns import conform
from kwire.lake.evolution import Evolution, evolved
from tests.lake.tables import KAFKA, Tables, kafka_rows, write


def test_new_columns_and_fields_appear_and_old_rows_have_null(tables: Tables) -> None:
    table = tables.open()
    before = pa.table({"id": [1], "place": pa.array([{"city": "Bern"}])})
    after = pa.table({"place": pa.array([{"zip": "3000", "city": "Bern"}]), "id": [2], "tags": [["a", None]]})
    write(table, before)
    write(table, after)
    write(table, before)
    rows = sorted(tables.read().to_pylist(), key=lambda row: (row["id"], str(row["tags"])))
    assert rows == [
        {"id": 1, "place": {"city": "Bern", "zip": None}, "tags": None},
        {"id": 1, "place": {"city": "Bern", "zip": None}, "tags": None},
        {"id": 2, "place": {"city": "Bern", "zip": "3000"}, "tags": ["a", None]},
    ]


YEAR_10000_US = 253_402_300_800_000_000
TIMES = [YEAR_10000_US - 1001, YEAR_10000_US - 1000, YEAR_10000_US - 999, YEAR_10000_US - 1]
NO_DATES = [YEAR_10000_US, -62_135_596_800_000_001, 1_700_000_000_000_000_000]  # the last in ns, taken for us


@pytest.mark.sampled(4)
@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("time", [*TIMES, *NO_DATES, -62_135_596_800_000_000])
def test_the_last_times_of_the_calendar_and_others_outside_of_it(tables: Tables, time: int, zone: str | None) -> None:
    """The last millisecond of the year 9999 is "for ever" in other databases. Bounds of a file are rounded outwards."""
    kind = pa.timestamp("us", zone)
    rows = pa.table({"id": [1, 2], "until": pa.array([time, 0], kind)})
    write(tables.open(), rows)
    assert tables.read().sort_by("id").column("until").cast(pa.int64()).to_pylist() == [time, 0]
    if tables.format == "delta":
        commits = sorted((tables.folder / "orders" / "_delta_log").glob("*.json"))
        (added,) = [json.loads(line)["add"] for line in commits[-1].read_text().splitlines() if '"add"' in line]
        bounds, suffix = json.loads(added["stats"]), "Z" if zone else ""
        highest = bounds["maxValues"].get("until")
        if time in TIMES:
            assert highest == (f"9999-12-31T23:59:59.999{suffix}" if time <= YEAR_10000_US - 1000 else None)
        elif time not in NO_DATES:
            assert bounds["minValues"]["until"] == f"0001-01-01T00:00:00.000{suffix}"


@pytest.mark.parametrize("terms", [("until",), ("days(until)",), ("hours(until)",)])
@pytest.mark.parametrize("time", NO_DATES)
def test_a_date_that_no_partition_can_have_is_an_error(tables: Tables, time: int, terms: tuple[str, ...]) -> None:
    if tables.format == "delta" and "(" in terms[0]:
        terms = ("until",)
    rows = pa.table({"id": [1, 2], "until": pa.array([time, 0], pa.timestamp("us", "UTC"))})
    with pytest.raises(TableError, match=r"partition by has a date outside of the years 1 to 9999 .*; filter the row"):
        write(tables.open(), rows, layout=Layout(partition_by=terms))
    assert tables.open().find_orphans(0) == []


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()], ids=str)
def test_years_and_months_are_those_of_iceberg_in_every_century(iceberg: Tables, kind: pa.DataType) -> None:
    """Regression: after the year 32767, Arrow's year began at -32768, and a filter did not find the rows.

    The expected values are those of Iceberg's transforms in plain Python, and of the calendar, which repeats.
    """
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.transforms import MonthTransform, YearTransform
    from pyiceberg.types import DateType, TimestampType

    from kwire.lake.iceberg.transforms import transformed

    is_date = kind == pa.date32()
    day = 1 if is_date else 86_400_000_000
    dates = [0, -1, 1, 2_932_896, 2_932_897, -719_162, -719_163, 11_248_737, 11_248_738, 10**8, -(10**8)]
    units = [each * day for each in dates] + ([2**31 - 1, -(2**31)] if is_date else [2**63 - 1, -(2**63), -1, day - 1])
    column = pa.array([*units, None], pa.int32() if is_date else pa.int64()).cast(kind)
    source: Any = DateType() if is_date else TimestampType()
    for transform in (YearTransform[int](), MonthTransform[int]()):
        field = PartitionField(source_id=1, field_id=1000, transform=transform, name="part")
        found = transformed(field, source, column).to_pylist()
        assert found[-1] is None
        python = transform.transform(source)
        for unit, value in zip(units, found[:-1], strict=True):
            cycles, rest = divmod(unit, 146_097 * day)  # 400 years
            expected = python(rest)
            assert expected is not None
            assert value == expected + cycles * 400 * (1 if isinstance(transform, YearTransform) else 12)
    rows = pa.table({"id": list(range(len(column))), "until": column})
    write(iceberg.open(), rows, layout=Layout(partition_by=("years(until)",)))
    assert iceberg.read().num_rows == len(column)


def test_a_table_with_buckets_gets_the_partition_values_of_iceberg(iceberg: Tables) -> None:
    """The expected values are those of Iceberg's transforms in plain Python; the tasks use compiled ones."""
    from pyiceberg.transforms import BucketTransform, TruncateTransform
    from pyiceberg.types import LongType, StringType

    table: Any = iceberg.open()
    table.prepare(KAFKA, Layout())
    with table.table.update_spec() as update:
        update.add_field("key", BucketTransform(4), "bucket")
        update.add_field("offset", TruncateTransform(10), "tens")
    write(table, kafka_rows(0, 40))
    assert len(iceberg.read()) == 40
    bucket, tens = BucketTransform[str](4).transform(StringType()), TruncateTransform[int](10).transform(LongType())
    for task in table.table.scan().plan_files():
        rows = parquet.read_table(task.file.file_path.removeprefix("file://"))
        places = {(bucket(row["key"]), tens(row["offset"])) for row in rows.to_pylist()}
        assert places == {(task.file.partition[0], task.file.partition[1])}


def test_narrower_types_are_widened_on_writing(tables: Tables) -> None:
    table = tables.open()
    write(table, pa.table({"n": pa.array([1 << 40], pa.int64()), "x": pa.array([1.5], pa.float64())}))
    write(table, pa.table({"n": pa.array([7], pa.int16()), "x": pa.array([0.5], pa.float32())}))
    assert sorted(tables.read().column("n").to_pylist()) == [7, 1 << 40]


def test_iceberg_widens_columns_and_delta_does_not(tables: Tables) -> None:
    table = tables.open()
    write(table, pa.table({"n": pa.array([1], pa.int32())}))
    wide = pa.table({"n": pa.array([1 << 40], pa.int64())})
    if tables.format == "iceberg":
        write(table, wide)
        assert sorted(tables.read().column("n").to_pylist()) == [1, 1 << 40]
    else:
        with pytest.raises(TableError, match="column 'n' is of type int in the table and bigint in the rows; cast"):
            write(table, wide)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"id": ["a"]}, "column 'id' is of type bigint in the table and string in the rows; cast the column"),
        ({"place": [{"city": 1}]}, r"column 'place\.city' is of type string in the table and bigint in the rows"),
        ({"place": [["Bern"]]}, "column 'place' is of type struct<city:string> in the table and array<string> in the"),
        ({"ID": [1]}, "column 'ID' differs from column 'id' in upper and lower case only; rename"),
    ],
)
def test_types_that_do_not_fit_are_errors_with_the_column(tables: Tables, rows: Any, message: str) -> None:
    table = tables.open()
    write(table, pa.table({"id": [1], "place": pa.array([{"city": "Bern"}])}))
    with pytest.raises(TableError, match=message):
        write(table, pa.table(rows))
    assert table.find_orphans(0) == []


def test_a_column_that_somebody_renamed_or_dropped_does_not_come_back(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    rows = pa.table({"id": [1], "name": ["a"], "note": ["b"]})
    write(table, rows)
    with table.table.update_schema() as update:
        update.rename_column("name", "title")
        update.delete_column("note")
    with pytest.raises(TableError, match="column 'name' was renamed to 'title' after schema 0; rename the column of"):
        write(table, rows.select(["id", "name"]))
    with pytest.raises(TableError, match="column 'note' was dropped from the table after schema 0; drop it from the"):
        write(table, rows.select(["id", "note"]))
    write(table, pa.table({"id": [2], "title": ["c"]}))
    assert iceberg.read().sort_by("id").to_pylist() == [{"id": 1, "title": "a"}, {"id": 2, "title": "c"}]


def test_a_partitioning_that_changes_during_a_write_is_an_error(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    plan = table.prepare(KAFKA, Layout())
    with iceberg.open().table.update_spec() as update:  # type: ignore[attr-defined]
        update.add_identity("topic")
    with pytest.raises(TableError, match="its partitioning was changed while rows were written; run the query again"):
        write(table, kafka_rows(0, 5), plan=plan)
    assert write(table, kafka_rows(0, 5))


def test_a_column_that_is_dropped_during_a_write_is_an_error_for_delta(delta: Tables) -> None:
    import deltalake

    table: Any = delta.open()
    plan = table.prepare(KAFKA, Layout())
    deltalake.write_deltalake(table.uri, pa.table({"id": [1]}), mode="overwrite", schema_mode="overwrite")
    table.table.update_incremental()
    with pytest.raises(TableError, match="its schema was changed while rows were written; run the query again"):
        write(table, kafka_rows(0, 5), plan=plan)


@pytest.mark.parametrize("key", [(), ("key",)])
def test_a_column_that_is_dropped_during_a_write_is_an_error_for_iceberg(iceberg: Tables, key: tuple[str, ...]) -> None:
    """Its values were lost, also if another column of that name was added. A new column is none of the rows'."""
    from pyiceberg.types import LongType

    table: Any = iceberg.open()
    plan = table.prepare(KAFKA, Layout(), key=key)
    other: Any = iceberg.open()
    with other.table.update_schema() as update:
        update.add_column("more", LongType())
    assert write(table, kafka_rows(0, 5), plan=plan, key=key)
    with other.table.update_schema() as update:
        update.delete_column("value")
    with other.table.update_schema() as update:
        update.add_column("value", LongType())
    with pytest.raises(TableError, match="its schema was changed while rows were written; run the query again"):
        write(table, kafka_rows(5, 10), plan=plan, key=key)
    assert write(table, kafka_rows(5, 10), key=key)
    assert sorted(row or -1 for row in iceberg.read()["value"].to_pylist()) == [-1] * 5 + list(range(5, 10))


def test_delta_tables_that_need_other_writers_are_refused(delta: Tables) -> None:
    table: Any = delta.open()
    write(table, pa.table({"id": [1]}))
    table.table.alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(TableError, match="it uses checkConstraints, which is not supported; write with Spark's Delta"):
        write(table, pa.table({"id": [2]}))


def test_delta_tables_that_delta_rs_does_not_write_are_no_conflict(delta: Tables) -> None:
    from deltalake import TableFeatures

    table: Any = delta.open()
    write(table, pa.table({"id": [1]}))
    table.table.alter.add_feature(TableFeatures.IcebergCompatV1, allow_protocol_versions_increase=True)
    with pytest.raises(
        TableError, match=r"Unsupported table features required: \[IcebergCompatV1\]; delta-rs does not wri"
    ):
        write(table, pa.table({"id": [2]}))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"format-version": "3"}, "it has format version 3, and PyIceberg writes up to 2; write with Iceberg's JAR"),
        ({"write.target-file-size-bytes": "1MB"}, r"its property write\.target-file-size-bytes is not a number: '1MB'"),
        ({"write.parquet.compression-level": "high"}, r"write\.parquet\.compression-level is not a number: 'high'"),
    ],
)
def test_properties_that_kwire_cannot_follow_are_errors(
    iceberg: Tables, properties: dict[str, str], message: str
) -> None:
    """Of a table that somebody else has made or altered."""
    table: Any = iceberg.open()
    write(table, pa.table({"id": [1]}))
    metadata = json.loads(Path(table.table.metadata_location.removeprefix("file://")).read_text())
    metadata["format-version"] = int(properties.pop("format-version", "2"))
    metadata["properties"] |= properties
    metadata["next-row-id"] = 0
    Path(table.table.metadata_location.removeprefix("file://")).write_text(json.dumps(metadata))
    with pytest.raises(TableError, match=message):
        write(table, pa.table({"id": [2]}))


def test_a_level_of_a_codec_without_levels_is_ignored(iceberg: Tables) -> None:
    properties = {"write.parquet.compression-codec": "snappy", "write.parquet.compression-level": "3"}
    assert write(iceberg.open(), pa.table({"id": [1]}), layout=Layout(properties=properties))


def test_a_key_that_is_renamed_during_a_merge_is_an_error(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    write(table, kafka_rows(0, 5), key=("key",))
    plan = table.prepare(KAFKA, Layout(), key=("key",))
    with iceberg.open().table.update_schema() as update:  # type: ignore[attr-defined]
        update.rename_column("key", "k")
    with pytest.raises(
        TableError, match="column 'key' of mergeKey was renamed or dropped while rows were written; run"
    ):
        write(table, kafka_rows(5, 10), key=("key",), plan=plan)


def test_null_in_a_required_column_is_an_error(iceberg: Tables) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    table: Any = iceberg.open()
    table.catalog.create_namespace("sales")
    table.catalog.create_table("sales.orders", Schema(NestedField(1, "id", LongType(), required=True)))
    write(table, pa.table({"id": [1]}))
    with pytest.raises(TableError, match="column 'id' is required, and a row has null or no value for it"):
        write(table, pa.table({"id": [None, 2]}, schema=pa.schema([("id", pa.int64())])))


def test_nested_columns_of_slices_are_converted() -> None:
    given = pa.table(
        {
            "s": pa.array([{"a": 1}, None, {"a": 3}, {"a": 4}], pa.struct([("a", pa.int8())])),
            "l": pa.array([[{"a": 1}], None, [], [{"a": 2}, None]], pa.list_(pa.struct([("a", pa.int8())]))),
            "m": pa.array([[("x", 1)], None, [], [("y", None)]], pa.map_(pa.string(), pa.int8())),
        }
    )
    wide = pa.struct([("b", pa.string()), ("a", pa.int64())])
    wanted = pa.schema([("l", pa.list_(wide)), ("m", pa.map_(pa.string(), pa.int64())), ("s", wide)])
    for start, end in [(0, 4), (1, 4), (2, 3), (3, 4)]:
        (batch,) = given.slice(start, end - start).to_batches()
        found = conform(batch, wanted, "t")
        found.validate(full=True)
        for row, expected in zip(found.to_pylist(), batch.to_pylist(), strict=True):
            assert row["m"] == expected["m"]
            assert row["s"] == (expected["s"] and {"b": None, **expected["s"]})
            assert row["l"] == (expected["l"] and [each and {"b": None, **each} for each in expected["l"]])


# ---- layouts


@pytest.mark.parametrize("transform", ["years", "months", "days", "hours"])
def test_time_partitions_are_those_of_pyiceberg(iceberg: Tables, transform: str) -> None:
    table: Any = iceberg.open()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    times = [
        epoch + timedelta(microseconds=us)
        for us in (-1, 0, 1, -(10**15), 10**15 + 1, 86_400 * 10**6 - 1, 951_782_400 * 10**6)
    ]
    rows = pa.table({"at": pa.array([*times, None], pa.timestamp("us", "UTC")), "id": range(len(times) + 1)})
    write(table, rows, layout=Layout(partition_by=(f"{transform}(at)",)))
    (partition_field,) = table.table.spec().fields
    oracle = partition_field.transform.transform(table.table.schema().find_type("at"))
    for task in table.table.scan().plan_files():
        with table.table.io.new_input(task.file.file_path).open() as stream:
            values = parquet.read_table(stream).column("at").to_pylist()
        assert {None if value is None else oracle(value) for value in values} == {task.file.partition[0]}
    assert len(iceberg.read()) == len(rows)
    assert len(table.table.scan(row_filter="at >= '2001-01-01T00:00:00+00:00'").to_arrow()) == 1


SIZED_VALUES = {  # without the least ints: Java's and the compiled arithmetic wrap around there, Python's does not
    "int": pa.array([-(1 << 31) + 8, -11, -10, -1, 0, 9, 10, (1 << 31) - 1, None], pa.int32()),
    "long": pa.array([-(1 << 62), -1, 0, 1 << 62, None], pa.int64()),
    "string": pa.array(["", "a", "ab", "abc", "éèê", "\U0001f600\U0001f600\U0001f600", None]),
    "binary": pa.array([b"", b"\xff", b"\x00\x01\x02", None]),
    "date": pa.array([-1, 0, 20_000, None], pa.date32()),
    "time": pa.array([-1, 0, 1_700_000_000_000_000, None], pa.timestamp("us", "UTC")),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [1, 2, 10])
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in ("bucket", "truncate") for kind in SIZED_VALUES if kind not in ("date", "time")]
    + [("bucket", "date"), ("bucket", "time")],
)
def test_buckets_and_prefixes_of_new_tables_are_those_of_iceberg(
    iceberg: Tables, name: str, kind: str, number: int
) -> None:
    """The expected values are those of Iceberg's transforms in plain Python; the tasks use compiled ones."""
    from pyiceberg.transforms import BucketTransform, TruncateTransform

    values = SIZED_VALUES[kind]
    rows = pa.table({"at": values, "id": range(len(values))})
    table: Any = iceberg.open()
    write(table, rows, layout=Layout(partition_by=(f" {name.title()}( {number} , at ) ",)))
    (partition_field,) = table.table.spec().fields
    expected: Any = {"bucket": BucketTransform, "truncate": TruncateTransform}[name](number)
    assert partition_field.transform == expected
    oracle = expected.transform(table.table.schema().find_type("at"))
    for task in table.table.scan().plan_files():
        with table.table.io.new_input(task.file.file_path).open() as stream:
            found = parquet.read_table(stream).column("at").to_pylist()
        if kind == "date":
            found = [value and (value - datetime(1970, 1, 1).date()).days for value in found]
        assert {None if value is None else oracle(value) for value in found} == {task.file.partition[0]}
    read = sorted(iceberg.read().to_pylist(), key=lambda row: row["id"])
    assert read == rows.to_pylist()


@pytest.mark.parametrize(
    "term", ["bucket(key)", "bucket(0, key)", "bucket(2147483648, key)", "truncate(-1, key)", "truncate(2,)"]
)
def test_a_transform_without_its_number_is_an_error(iceberg: Tables, term: str) -> None:
    with pytest.raises(
        OptionError, match=r"expected (bucket|truncate)\(NUMBER, column\) with a number from 1 to 2147483647"
    ):
        iceberg.open().prepare(KAFKA, Layout(partition_by=(term,)))


def test_the_largest_number_of_buckets_is_accepted(iceberg: Tables) -> None:
    write(iceberg.open(), kafka_rows(0, 3), layout=Layout(partition_by=("bucket(2147483647, key)",)))
    assert iceberg.read().num_rows == 3


def test_values_of_partition_columns_come_back(tables: Tables) -> None:
    values = ["a b", "a/b=c", "é%20", "", None, "__HIVE_DEFAULT_PARTITION__x"]
    rows = pa.table({"name": values, "day": pa.array(range(6), pa.date32()), "id": range(6)})
    write(tables.open(), rows, layout=Layout(partition_by=("name", "day")))
    expected = rows.to_pylist()
    if tables.format == "delta":
        expected[3]["name"] = None  # Delta's protocol has no empty strings there
    assert sorted(tables.read().select(rows.column_names).to_pylist(), key=lambda row: row["id"]) == expected


def test_rows_are_sorted_in_each_file(tables: Tables) -> None:
    table: Any = tables.open()
    layout = Layout(sort_by=("key", "offset desc"))
    plan = table.prepare(KAFKA, layout)
    written = write_files(kafka_rows(0, 100, key=7).to_batches(max_chunksize=9), plan)
    (rows,) = table.read_staged(written.files, plan)
    expected = rows.sort_by([("key", "ascending"), ("offset", "descending")])
    assert rows.column("offset").to_pylist() == expected.column("offset").to_pylist()


@pytest.mark.parametrize(
    ("format", "layout", "message"),
    [
        ("iceberg", Layout(partition_by=("weeks(timestamp)",)), r"unknown transform 'weeks\(timestamp\)'"),
        (
            "iceberg",
            Layout(partition_by=("days(key)",)),
            "column 'key' is of type string; .* requires a date",
        ),
        (
            "iceberg",
            Layout(partition_by=("nope",)),
            "'partitionBy': unknown column 'nope'; available: key, value",
        ),
        ("iceberg", Layout(partition_by=("days(",)), r"expected a column or a transform of one, got 'days\('"),
        ("iceberg", Layout(sort_by=("key up",)), "expected a column, with asc or desc after it, got 'key up'"),
        ("iceberg", Layout(sort_by=("nope",)), "Option 'sortBy': unknown column 'nope'; available: key, value"),
        (
            "iceberg",
            Layout(partition_by=("place",)),
            "column 'place' is of type struct; partition by",
        ),
        (
            "iceberg",
            Layout(partition_by=("bucket(4, done)",)),
            "'done' is of type boolean; .* requires an integer",
        ),
        (
            "iceberg",
            Layout(partition_by=("truncate(4, timestamp)",)),
            "'timestamp' is of type timestamptz; .* an inte",
        ),
        ("iceberg", Layout(partition_by=("topic", "topic")), "topic divides by the same column as topic; keep one"),
        (
            "iceberg",
            Layout(partition_by=("days(timestamp)", "hours(timestamp)")),
            r"hours\(timestamp\) divides by the same column as days\(timestamp\); keep one",
        ),
        (
            "iceberg",
            Layout(partition_by=("bucket(4, key)", "bucket(8, key)")),
            "the same column as bucket.4, key",
        ),
        (
            "iceberg",
            Layout(sort_by=("place",)),
            "'sortBy': column 'place' is of type struct, which has",
        ),
        ("delta", Layout(partition_by=("days(timestamp)",)), "Delta tables are partitioned by columns, not by 'days"),
        ("delta", Layout(partition_by=("nope",)), "'partitionBy': unknown column 'nope'; available: key, value"),
        (
            "delta",
            Layout(partition_by=("place",)),
            "'place' is of type struct<city:string>, and Delta tabl",
        ),
        (
            "delta",
            Layout(partition_by=("raw",)),
            "'raw' is of type binary, and Delta tables are partitio",
        ),
        ("delta", Layout(partition_by=("topic", "topic")), "Option 'partitionBy': names column 'topic' twice"),
        ("delta", Layout(sort_by=("nope",)), "Option 'sortBy': unknown column 'nope'; available: key, value"),
        ("delta", Layout(sort_by=("place",)), "Option 'sortBy': column 'place' is of type struct<city:string>, which"),
    ],
)
def test_layouts_that_a_format_lacks_are_errors(tmp_path: Any, format: str, layout: Layout, message: str) -> None:
    """Some were errors of the libraries, of which a few came after the table had been created."""
    more = [("place", pa.struct([("city", pa.string())])), ("raw", pa.binary()), ("done", pa.bool_())]
    table = Tables(format, tmp_path).open()
    with pytest.raises(OptionError, match=message):
        table.prepare(pa.schema([*KAFKA, *more]), layout)
    table.refresh()
    assert not table.exists


@pytest.mark.parametrize("column", ["key", "place"])
def test_a_delta_table_that_is_partitioned_by_such_a_column_is_refused(delta: Tables, column: str) -> None:
    """Keys came back as b'k1' with quotes: binary values were written as Python prints them."""
    import deltalake

    schema = pa.schema([("key", pa.binary()), ("place", pa.struct([("city", pa.string())])), ("offset", pa.int64())])
    deltalake.DeltaTable.create(str(delta.folder / "orders"), schema=schema, partition_by=[column])
    with pytest.raises(TableError, match=f"it is partitioned by column '{column}' of type .*, whose values readers do"):
        write(delta.open(), schema.empty_table())


def test_a_value_that_no_directory_can_be_named_after_is_an_error(tables: Tables) -> None:
    rows = kafka_rows(0, 2).set_column(0, "key", pa.array(["short", "x" * 400]))
    with pytest.raises(TableError, match="has a value of length 400, which is too long for the name of a directory"):
        write(tables.open(), rows, layout=Layout(partition_by=("key",)))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({"a": ["text"]}, {}, "column 'a' is of type int in the table and string in the rows"),
        ({"u": pa.array([1], pa.uint64())}, {}, "column 'u' is of type bigint in the table and uint64 in the rows"),
        ({"d": pa.array([1], pa.duration("us"))}, {}, "olumn 'd' .* type"),
        ({}, {"key": ("nope",)}, "Option 'mergeKey': unknown column 'nope'; available: a, note"),
        ({}, {"key": ("a",)}, "rows were appended to it without a key"),
        ({"m": [{"x": 1}]}, {"key": ("m",)}, "Option 'mergeKey': column 'm' is nested"),
    ],
)
def test_no_column_is_added_for_rows_that_are_refused(
    tables: Tables, rows: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    """New columns stayed in the table, although the write that brought them failed for another one or for its key."""
    first = pa.table({"a": pa.array([1], pa.int32())})
    write(tables.open(), first)
    second = {"a": pa.array([1], pa.int32()), "note": ["new"], **rows}
    with pytest.raises((TableError, OptionError), match=message):
        write(tables.open(), pa.table(second), **options)
    assert tables.read().schema.names == ["a"]


def test_no_table_is_created_for_columns_that_it_would_have_with_other_types(tables: Tables) -> None:
    table = tables.open()
    for kind, message in (pa.uint64(), "of type bigint .* and uint64"), (pa.duration("us"), "duration"):
        with pytest.raises(TableError, match=message):
            table.prepare(pa.schema([("a", pa.int32()), ("b", kind)]), Layout())
    with pytest.raises(OptionError, match="Option 'mergeKey': unknown column 'nope'"):
        table.prepare(KAFKA, Layout(), key=("nope",))
    table.refresh()
    assert not table.exists


def test_values_that_no_struct_has_are_an_error_and_no_nulls() -> None:
    wanted = pa.schema([("place", pa.struct([("city", pa.string())]))])
    rows = pa.record_batch({"place": pa.array([1])})
    with pytest.raises(TableError, match=r"orders: column 'place': .*; convert the column"):
        conform(rows, wanted, "orders")
    nulls = pa.record_batch({"place": pa.nulls(1)})
    assert conform(nulls, wanted, "orders").to_pylist() == [{"place": None}]


def test_a_field_of_structs_in_lists_and_maps_appears() -> None:
    """Formats add it inside of the element, so that the table's type is the one that the rows are written with."""
    place = pa.struct([("city", pa.string())])
    schema = pa.schema(
        [
            pa.field("list", pa.list_(pa.field("element", place, nullable=False))),
            pa.field("map", pa.map_(pa.string(), place)),
            pa.field("other", pa.list_(pa.int32())),
        ]
    )
    added = ((("list", "element", "zip"), pa.string()), (("map", "value", "zip"), pa.string()))
    grown = evolved(schema, Evolution(added=added, widened=((("other", "element"), pa.int64()),)))
    longer = pa.struct([("city", pa.string()), ("zip", pa.string())])
    assert grown == pa.schema(
        [
            pa.field("list", pa.list_(pa.field("element", longer, nullable=False))),
            pa.field("map", pa.map_(pa.string(), longer)),
            pa.field("other", pa.list_(pa.int64())),
        ]
    )


def test_a_sort_order_by_a_field_of_a_struct_is_not_claimed(iceberg: Tables) -> None:
    """Rows are sorted by columns only: by those before the field, and files do not say that they are sorted."""
    from pyiceberg.transforms import IdentityTransform

    table: Any = iceberg.open()
    rows = pa.table({"id": [2, 1], "place": pa.array([{"city": "a"}, {"city": "b"}])})
    table.prepare(rows.schema, Layout(sort_by=("id",)))
    with table.table.update_sort_order() as update:
        update.asc("id", IdentityTransform()).asc("place.city", IdentityTransform())
    plan: Any = table.prepare(rows.schema, Layout())
    assert (plan.sort_by, plan.sort_order_id) == ((("id", "ascending"),), None)
    write(table, rows, plan=plan)
    assert iceberg.read().column("id").to_pylist() == [1, 2]
