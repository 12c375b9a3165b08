"""Options of `kwire-iceberg` and `kwire-delta`."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import OptionError

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql import types

from kwire.spark.lake.options import parse_lake_options
from kwire.spark.lake.schema import arrow_schema


def test_options_of_iceberg() -> None:
    parsed = parse_lake_options(
        {
            "table": "sales.orders",
            "catalog.uri": "sqlite:////tmp/catalog.db",
            "catalog.s3.secret-access-key": "hunter2",
            "mergekey": "id, region",
            "partitionby": "days(timestamp), truncate(4, name)",
            "tableproperties": '{"commit.retry.num-retries": "7"}',
            "checkpointlocation": "/tmp/x",
        },
        "iceberg",
    )
    assert parsed.table == "sales.orders"
    assert parsed.catalog == {"uri": "sqlite:////tmp/catalog.db", "s3.secret-access-key": "hunter2"}
    assert parsed.merge_key == ("id", "region")
    assert parsed.partition_by == ("days(timestamp)", "truncate(4, name)")
    assert parsed.table_properties == {"commit.retry.num-retries": "7"}
    assert "hunter2" not in repr(parsed)


def test_the_table_of_save_is_the_path() -> None:
    assert parse_lake_options({"path": "sales.orders"}, "iceberg").table == "sales.orders"
    assert parse_lake_options({"path": "/lake/orders"}, "delta").table == "/lake/orders"


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("iceberg", {}, "Option 'table' must be specified: namespace.name"),
        ("delta", {}, "Option 'path' must be specified: a local path or a URL"),
        ("delta", {"path": "x", "table": "a.b"}, "Option 'table' is not supported: use path"),
        ("delta", {"path": "s3://me:hunter2@bucket/x"}, "Option 'path': holds a password"),
        ("iceberg", {"table": "a.b", "path": "c.d"}, "Options 'table' and 'path' differ; remove one of them"),
        ("iceberg", {"table": "a.b", "mergeSchema": "true"}, "'mergeSchema' is not supported: new columns are always"),
        ("iceberg", {"table": "a.b", "mergekeys": "x"}, r"Unknown option 'mergekeys' \(did you mean 'mergeKey'\?\)"),
        ("iceberg", {"table": "a.b", "storage.x": "y"}, r"Unknown option 'storage\.x'"),
        ("iceberg", {"table": "a.b", "mergekey": "a,,b"}, "Option 'mergeKey': expected a comma-separated list of col"),
        ("delta", {"path": "x", "kafka.acks": "all"}, "Option 'kafka.acks': for a topic of dead letters only"),
        (
            "delta",
            {"path": "x", "deadletters": "kafka://a/b", "kafka.bootstrap.servers": "c"},
            "Option 'kafka.bootstrap.servers': the URL in option deadLetters names the servers",
        ),
        ("iceberg", {"table": "a.b", "txnappid": "x"}, "Options 'txnAppId' and 'txnVersion': each requires the other"),
        (
            "delta",
            {"path": "/x", "txnAppId": " ", "txnVersion": "1"},
            "Option 'txnAppId': expected a name of the query",
        ),
        ("delta", {"path": "/x", "txnAppId": "kwire/t/0", "txnVersion": "1"}, "that does not begin with kwire/, got"),
        ("delta", {"path": "x", "txnappid": "x", "txnversion": "-1"}, "Option 'txnVersion': expected a number from 0"),
        ("delta", {"path": "x", "compactevery": "0"}, "Option 'compactEvery': expected a number of micro-batches from"),
        ("delta", {"path": "x", "tableproperties": "{1}"}, "Option 'tableProperties': expected a JSON object of str"),
    ],
)
def test_invalid_options_are_errors(format: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_lake_options({key.lower(): value for key, value in options.items()}, format)


def test_schemas_of_dataframes_and_what_tables_do_not_have() -> None:
    part = types.StructType().add("x", types.ShortType()).add("y", types.DecimalType(9, 2))
    given = (
        types.StructType()
        .add("a", types.ArrayType(part))
        .add("m", types.MapType(types.StringType(), types.TimestampType()))
        .add("d", types.DateType())
        .add("n", types.TimestampNTZType())
        .add("b", types.BinaryType())
    )
    assert arrow_schema(given) == pa.schema(
        [
            ("a", pa.list_(pa.struct([("x", pa.int16()), ("y", pa.decimal128(9, 2))]))),
            ("m", pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
            ("d", pa.date32()),
            ("n", pa.timestamp("us")),
            ("b", pa.binary()),
        ]
    )
    nested = types.StructType([types.StructField("a", types.StructType([types.StructField("v", types.NullType())]))])
    with pytest.raises(OptionError, match=r"column 'a\.v' is of type void, which tables do not have; cast it, such as"):
        arrow_schema(nested)


@pytest.mark.parametrize("name", ["iceberg", "delta"])
def test_formats_are_found_by_name_and_do_not_read(name: str) -> None:
    source = importlib.import_module(f"pyspark_kwire_{name}").DefaultSource
    assert source.name() == f"kwire-{name}"
    with pytest.raises(OptionError, match=f"kwire-{name} writes tables and does not read them; read with DuckDB"):
        source({}).schema()
    where = {"path": "a.b", "txnAppId": "x", "txnVersion": "1"}
    with pytest.raises(OptionError, match="Option 'txnAppId': a streaming query has an id of its own"):
        source(where).streamWriter(types.StructType(), False)
    with pytest.raises(OptionError, match="Option 'mergeKey': requires appending; remove it, or use mode append"):
        source({"path": "a.b", "mergeKey": "x"}).writer(types.StructType(), True)
