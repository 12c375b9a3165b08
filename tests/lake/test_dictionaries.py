"""Columns of data files with a dictionary: by their values, at every level."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

from kwire.lake import Layout, write_files
from kwire.lake.dictionaries import repeating_columns
from tests.lake.tables import Tables, kafka_rows


@pytest.mark.parametrize(("different", "has_dictionary"), [(1, True), (1999, True), (2000, True), (2001, False)])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float32(), pa.binary(), pa.timestamp("us")])
def test_a_column_whose_values_repeat_has_a_dictionary(kind: pa.DataType, different: int, has_dictionary: bool) -> None:
    numbers = pa.array([number % different for number in range(4000)])
    values = numbers.cast(pa.string()).cast(kind) if kind in (pa.string(), pa.binary()) else numbers.cast(kind)
    assert repeating_columns(pa.table({"c": values})) == (["c"] if has_dictionary else [])


def test_rows_of_all_parts_are_looked_at() -> None:
    """A column that is constant in the first rows, and one that is so in the last ones."""
    count = 100_000
    first = [0] * (count // 4) + list(range(count - count // 4))
    table = pa.table({"first": first, "last": first[::-1], "rare": [n // 5000 for n in range(count)]})
    assert repeating_columns(table.slice(0, 4096)) == ["first", "rare"]
    assert repeating_columns(table) == ["rare"]


def test_paths_are_those_of_parquet() -> None:
    row = {
        "s": {"a": 1, "l": [{"x": "y"}]},
        "m": [("k", {"v": 1.5})],
        "l": [[1, 2]],
        "flag": True,
        "none": None,
        "empty": [],
        "n": None,
    }
    kinds = {
        "s": pa.struct([("a", pa.int32()), ("l", pa.list_(pa.struct([("x", pa.string())])))]),
        "m": pa.map_(pa.string(), pa.struct([("v", pa.float64())])),
        "l": pa.list_(pa.list_(pa.int8())),
        "flag": pa.bool_(),
        "none": pa.null(),
        "empty": pa.list_(pa.int64()),
        "n": pa.int16(),
    }
    table = pa.Table.from_pylist([row] * 20, schema=pa.schema(kinds.items()))
    stream = pa.BufferOutputStream()
    parquet.write_table(table, stream)
    schema = parquet.ParquetFile(stream.getvalue()).schema
    expected = [schema.column(number).path for number in range(len(schema))]
    assert repeating_columns(table) == [path for path in expected if path not in ("flag", "none")]
    parquet.write_table(table, pa.BufferOutputStream(), use_dictionary=repeating_columns(table))


def test_files_of_tables_have_them(tables: Tables) -> None:
    rows = kafka_rows(0, 4000)
    plan = tables.open().prepare(rows.schema, Layout())
    (file,) = write_files(rows.to_batches(), plan).files
    path = file.path.removeprefix("file://")
    footer = parquet.read_metadata(path if tables.format == "iceberg" else tables.folder / "orders" / path)
    group = footer.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    with_dictionary = {each.path_in_schema for each in columns if each.has_dictionary_page}
    assert with_dictionary == {"topic", "partition"}
