"""Tables that kwire and Spark share: the JARs of Iceberg and Delta Lake read them, write to them and maintain them.

Spark 4.1 with Iceberg 1.12 and Delta Lake 4.1 runs in a process of its own, which the sinks and jobs also use. Iceberg
tables are in a catalog that both sides write to.
"""

from __future__ import annotations

import decimal
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.lake.avro_values import write_values
from tests.lake.tables import FORMATS, KAFKA, kafka_rows, write
from tests.spark.conftest import need_java
from tools.spark_tables import SparkTables, add_catalog

from kwire.broker import Broker
from kwire.errors import TableError
from kwire.lake import LakeTable, Layout, Mark, open_delta, open_iceberg
from kwire.lake.compact import compact_table
from kwire.log import LogDirectory
from kwire.schemas import Registry, encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

deltalake = pytest.importorskip("deltalake")
confluent_kafka = pytest.importorskip("confluent_kafka")
duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

Rows = list[dict[str, Any]]
pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow]


# ---- functions that run in the process with the JARs


def select(spark: SparkSession, *queries: str) -> list[tuple[Any, ...]]:
    """Run queries; return the rows of the last one."""
    rows: list[Any] = []
    for query in queries:
        rows = spark.sql(query).collect()
    return [tuple(row) for row in rows]


def schema_of(spark: SparkSession, table: str) -> str:
    """Return the columns of a table."""
    return str(spark.table(table).schema.simpleString())


def stream(spark: SparkSession, servers: str, sink: str, options: dict[str, str], columns: list[str]) -> None:
    """Copy a topic with a sink of kwire until its end."""
    read = spark.readStream.format("kafka-live").option("kafka.bootstrap.servers", servers)
    rows = read.option("subscribe", "orders").option("startingOffsets", "earliest").load().selectExpr(*columns)
    rows.writeStream.format(sink).options(**options).trigger(availableNow=True).start().awaitTermination()


def copy_log(spark: SparkSession, path: str, where: dict[str, Any], options: dict[str, Any]) -> int:
    """Copy topics of a log with jobs.table; return the number of rows."""
    from kwire.spark import jobs

    return int(jobs.table(spark, path, **where, **options).total("rows"))


def require_column(spark: SparkSession, table: str, name: str) -> None:
    """Add a required column, which Spark's SQL refuses and Iceberg's API does not."""
    jvm: Any = spark._jvm
    found = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    kind = jvm.org.apache.iceberg.types.Types.LongType.get()
    found.updateSchema().allowIncompatibleChanges().addRequiredColumn(name, kind).commit()


def rows_of(spark: SparkSession, table: str) -> Rows:
    """Return the rows of a table, with their structs, as dictionaries."""
    return [row.asDict(recursive=True) for row in spark.table(table).collect()]


# ---- tables


def plain(value: Any) -> Any:
    """Return a value with times as Spark collects them: without their zone, which is UTC."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def in_order(rows: Rows) -> Rows:
    """Return rows in an order that all readers have."""
    return sorted(rows, key=lambda row: repr(sorted(row.items())))


@pytest.fixture(scope="module")
def jars() -> Iterator[SparkTables]:
    need_java()
    process = SparkTables()
    yield process
    process.close()


@dataclass
class Shared:
    """A table of both sides. sql: its name for Spark."""

    format: str
    folder: Path
    catalog: str
    jars: SparkTables

    @property
    def sql(self) -> str:
        return f"{self.catalog}.sales.orders" if self.format == "iceberg" else f"delta.`{self.folder}/orders`"

    @property
    def properties(self) -> dict[str, str]:
        uri = f"sqlite:///{self.folder}/catalog.db"
        return {"type": "sql", "uri": uri, "warehouse": f"file://{self.folder}"}

    def open(self) -> LakeTable:
        if self.format == "delta":
            return open_delta(f"{self.folder}/orders")
        return open_iceberg("sales.orders", self.properties, catalog_name=self.catalog)

    def options(self) -> dict[str, str]:
        """Options of the sink."""
        if self.format == "delta":
            return {"path": f"{self.folder}/orders"}
        given = {f"catalog.{name}": value for name, value in self.properties.items()}
        return {"table": "sales.orders", "catalog": self.catalog, **given}

    def job(self) -> dict[str, Any]:
        """Arguments of jobs.table."""
        if self.format == "delta":
            return {"target": f"{self.folder}/orders"}
        return {"target": "sales.orders", "catalog": {**self.properties, "name": self.catalog}}

    def run(self, *queries: str) -> list[tuple[Any, ...]]:
        """Run queries of Spark on the table @T."""
        return self.jars(select, *(each.replace("@T", self.sql) for each in queries))  # type: ignore[no-any-return]

    def offsets(self) -> list[int]:
        """Return the offsets that Spark reads, less those that it has inserted itself."""
        return [row[0] for row in self.run("SELECT offset FROM @T WHERE topic = 'orders' ORDER BY offset")]

    def append(self, logs: str, *options: str) -> None:
        """Run kwire lake append in a process."""
        job = self.job()
        catalog = [f"--catalog={name}={value}" for name, value in job.get("catalog", {}).items()]
        subprocess.run(
            [sys.executable, "-m", "kwire.cli", "lake", "append", logs, job["target"], *catalog, *options], check=True
        )

    def rows(self) -> Rows:
        """Return the rows that Spark reads: the format's own library, DuckDB and Polars read the same."""
        found = in_order(self.jars(rows_of, self.sql))
        table: Any = self.open()
        table.refresh()
        is_delta = self.format == "delta"
        rows = table.table.to_pyarrow_table() if is_delta else table.table.scan().to_arrow()
        scan = polars.scan_delta(str(self.folder / "orders")) if is_delta else polars.scan_iceberg(table.table)
        for each in (rows, duckdb.sql("SELECT * FROM rows").to_arrow_table(), scan.collect().to_arrow()):
            assert in_order(plain(each.to_pylist(maps_as_pydicts="strict"))) == found
        return found

    def write(self, start: int, end: int, batch: int, **more: Any) -> bool:
        """Write the rows of a micro-batch with kwire, which opens the table anew."""
        key = more.pop("of_keys", None)
        return write(self.open(), kafka_rows(start, end, key=key), mark=Mark(query="q", batch=batch), **more)

    def files(self) -> list[str]:
        """Return the table's data files."""
        path = "_file" if self.format == "iceberg" else "_metadata.file_path"
        return sorted(row[0] for row in self.run(f"SELECT DISTINCT {path} FROM @T"))


@pytest.fixture(autouse=True)
def planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars plans scans of Iceberg tables with PyIceberg; it warns that another package is faster."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


@pytest.fixture(params=FORMATS)
def shared(request: pytest.FixtureRequest, jars: SparkTables, tmp_path: Path) -> Shared:
    return made(request.param, jars, tmp_path)


@pytest.fixture
def iceberg(jars: SparkTables, tmp_path: Path) -> Shared:
    return made("iceberg", jars, tmp_path)


@pytest.fixture
def delta(jars: SparkTables, tmp_path: Path) -> Shared:
    return made("delta", jars, tmp_path)


def made(format: str, jars: SparkTables, folder: Path) -> Shared:
    found = Shared(format, folder, f"lake_{uuid.uuid4().hex[:8]}", jars)
    if format == "iceberg":
        jars(add_catalog, found.catalog, str(folder))
    return found


INSERT = "INSERT INTO @T VALUES ('x', {n}, 'spark', 7, {n}, TIMESTAMP '1970-01-02 00:00:00')"


def insert(n: int) -> str:
    """Return the statement with which Spark adds a row that is no row of kwire."""
    return INSERT.format(n=n)


# ---- Spark reads what kwire has written


@pytest.mark.gate
def test_spark_reads_what_a_stream_has_written_by_key(shared: Shared) -> None:
    """New columns, tombstones and the latest value of each key."""
    columns = ["CAST(key AS string) AS key", "CAST(CAST(value AS string) AS int) AS value", "partition", "offset"]
    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        options = {**shared.options(), "mergeKey": "key", "checkpointLocation": f"{shared.folder}/checkpoint"}
        for number in range(50):
            producer.produce("orders", str(number), f"k{number % 10}")
        producer.flush()
        shared.jars(stream, broker.bootstrap_servers, f"kwire-{shared.format}", options, columns)
        producer.produce("orders", None, "k3")
        producer.produce("orders", "99", "k4")
        producer.flush()
        columns.append("CASE WHEN value IS NOT NULL THEN topic END AS source")
        shared.jars(stream, broker.bootstrap_servers, f"kwire-{shared.format}", options, columns)
    expected = [(f"k{n}", 40 + n, None) for n in range(10) if n not in (3, 4)] + [("k4", 99, "orders")]
    assert sorted(shared.run("SELECT key, value, source FROM @T")) == sorted(expected)
    assert len(shared.rows()) == 9
    kinds = "struct<key:string,value:int,partition:int,offset:bigint,source:string>"
    assert shared.jars(schema_of, shared.sql) == kinds


def test_spark_reads_what_commands_and_jobs_have_written(shared: Shared, kafka_logs: dict[str, Path]) -> None:
    """kwire lake append begins the table, and jobs.table continues it."""
    data = kafka_logs["modern"] / "data"
    logs = LogDirectory(data)
    by = ("days(timestamp)", "topic") if shared.format == "iceberg" else ("topic",)
    shared.append(str(data), "--topic=orders", "--partition=0", *(f"--partition-by={each}" for each in by))
    assert shared.jars(copy_log, str(data), shared.job(), {"topics": ["orders", "txn"]}) > 0
    expected = [
        (topic, partition, record.offset, record.key, record.value, record.timestamp)
        for (topic, partition), log in logs.items()
        if topic in ("orders", "txn")
        for record in log.read(isolation="read_committed")
    ]
    found = shared.run("SELECT topic, partition, offset, key, value, unix_millis(timestamp) FROM @T")
    assert sorted(found, key=lambda row: row[:3]) == sorted(expected, key=lambda row: row[:3])
    assert shared.jars(schema_of, shared.sql) == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    if shared.format == "iceberg":
        parts = shared.run("SELECT partition.topic, sum(record_count) FROM @T.partitions GROUP BY ALL ORDER BY 1")
        assert parts == [(topic, sum(row[0] == topic for row in expected)) for topic in ("orders", "txn")]


LINE = {
    "type": "record",
    "name": "Line",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
    {"name": "ratio", "type": ["null", "double"]},
    {"name": "data", "type": "bytes"},
    {"name": "tags", "type": {"type": "map", "values": "long"}},
    {"name": "lines", "type": {"type": "array", "items": LINE}},
]
NOTES = {"name": "notes", "type": {"type": "map", "values": {"type": "array", "items": "Line"}}, "default": {}}


def order(number: int) -> dict[str, Any]:
    """Return a value of FIELDS."""
    cents = decimal.Decimal(number * (-1) ** number)
    return {
        "id": (1 << 40) + number,
        "at": datetime(2026, 3, 29, number % 24, 30, 0, 1000 * number),
        "local": datetime(1960, 3, 29, 2, 30, 0, number),
        "day": date(1850 + 10 * number, 2, 28),
        "state": ["NEW", "PAID"][number % 2],
        "ratio": number / 3 if number % 4 else None,
        "data": bytes(range(number)),
        "tags": {f"t{n}": n for n in range(number % 3)},
        "lines": [{"sku": f"s{n}", "price": cents / 100 + n} for n in range(number % 4)],
    }


def test_all_read_values_of_a_registry(shared: Shared) -> None:
    """kwire lake append begins the table, and jobs.table continues it with the schema's next version."""
    schemas, logs = shared.folder / "schemas", shared.folder / "logs"
    schemas.mkdir()
    for version, fields in enumerate((FIELDS, [*FIELDS, NOTES]), 1):
        text = json.dumps({"type": "record", "name": "Order", "fields": fields})
        (schemas / f"avro-value.{version}.{40 + version}.avsc").write_text(text)
        orders = [order(n) for n in range(12 * version - 12, 12 * version)]
        if version == 2:
            orders = [{**each, "notes": {"first": each["lines"][:1]}} for each in orders]
        values = [encode(zoned(each), Registry(schemas), schema=40 + version) for each in orders]
        write_values(logs, values, first=12 * version - 12)
        if version == 1:
            shared.append(str(logs), "--registry", str(schemas))
        else:
            assert shared.jars(copy_log, str(logs), shared.job(), {"registry": str(schemas)}) == 12
    expected = [{**order(n), "notes": {"first": order(n)["lines"][:1]} if n >= 12 else None} for n in range(24)]
    assert [row["value"] for row in sorted(shared.rows(), key=lambda row: row["offset"])] == expected
    shared.run("INSERT INTO @T SELECT * FROM @T WHERE offset = 5")
    assert len(shared.rows()) == 25


def zoned(value: dict[str, Any]) -> dict[str, Any]:
    """Return an order as encode() takes it."""
    return {**value, "at": value["at"].replace(tzinfo=UTC)}


def test_spark_reads_the_metadata_of_iceberg(iceberg: Shared) -> None:
    layout = Layout(partition_by=("days(timestamp)", "topic"), sort_by=("key", "offset desc"))
    iceberg.write(0, 100, 0, layout=layout)
    wide = kafka_rows(100, 110).set_column(1, "value", pa.array([1 << 40] * 10))
    write(iceberg.open(), wide.append_column("note", pa.array(["new"] * 10)), mark=Mark(query="q", batch=1))
    assert iceberg.run("SELECT sum(value), count(note) FROM @T") == [(sum(range(100)) + (10 << 40), 10)]
    summaries = iceberg.run(
        "SELECT operation, summary['kwire.query'], summary['kwire.batch'], summary['kwire.offsets'] "
        "FROM @T.snapshots ORDER BY committed_at"
    )
    assert summaries == [
        ("append", "q", "0", '{"orders":{"0":[[0,100]]}}'),
        ("append", "q", "1", '{"orders":{"0":[[100,110]]}}'),
    ]
    files = iceberg.run("SELECT record_count, sort_order_id, readable_metrics.offset.lower_bound FROM @T.files")
    assert sum(count for count, _, _ in files) == 110
    assert {order for _, order, _ in files} == {1}
    assert min(lowest for _, _, lowest in files) == 0
    assert iceberg.run("SELECT count(*) FROM @T WHERE timestamp < '1970-01-02'") == [(24,)]


# ---- Spark writes to and maintains what kwire goes on writing


def test_kwire_goes_on_exactly_once_while_spark_maintains_an_iceberg_table(iceberg: Shared) -> None:
    expire = (
        "expire_snapshots(table => 'sales.orders', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
    )
    steps = [
        [insert(1)],
        ["rewrite_data_files(table => 'sales.orders', options => map('rewrite-all', 'true'))"],
        ["rewrite_manifests('sales.orders')"],
        [insert(2), expire],  # the snapshot with kwire's offsets has expired
        ["DELETE FROM @T WHERE topic = 'spark'"],
        [insert(3), insert(4), expire],
    ]
    iceberg.write(0, 10, 0, layout=Layout(partition_by=("days(timestamp)",)))
    for batch, statements in enumerate(steps, 1):
        calls = f"CALL {iceberg.catalog}.system."
        iceberg.run(*(each if "@T" in each else f"{calls}{each}" for each in statements))
        before = 10 * batch
        assert not iceberg.write(before - 10, before, batch - 1), statements
        assert iceberg.write(before, before + 10, batch), statements
        table = iceberg.open()
        table.refresh()
        assert table.state().spans == {("orders", 0): ((0, before + 10),)}, statements
    assert iceberg.offsets() == list(range(10 * len(steps) + 10))
    assert iceberg.run("SELECT count(*) FROM @T WHERE topic = 'spark'") == [(2,)]
    assert len(iceberg.rows()) == 72
    assert iceberg.open().find_orphans(0) == []


def test_an_iceberg_table_that_spark_rolls_back_or_overwrites(iceberg: Shared) -> None:
    iceberg.write(0, 10, 0)
    (first,) = iceberg.run("SELECT snapshot_id FROM @T.snapshots")[0]
    iceberg.write(10, 20, 1)
    iceberg.run(insert(1), f"CALL {iceberg.catalog}.system.rollback_to_snapshot('sales.orders', {first})")
    assert not iceberg.write(0, 10, 0)
    assert iceberg.write(10, 20, 1)
    assert iceberg.offsets() == list(range(20))
    iceberg.run("INSERT OVERWRITE @T SELECT * FROM @T WHERE offset < 3")
    assert not iceberg.write(10, 20, 1)
    assert iceberg.write(20, 22, 2)
    assert iceberg.offsets() == [0, 1, 2, 20, 21]


def test_rows_that_spark_picks_from_another_snapshot_are_refused(iceberg: Shared) -> None:
    iceberg.write(0, 10, 0)
    (first,) = iceberg.run("SELECT snapshot_id FROM @T.snapshots")[0]
    iceberg.write(10, 20, 1)
    (picked,) = iceberg.run("SELECT snapshot_id FROM @T.snapshots ORDER BY committed_at DESC")[0]
    calls = f"CALL {iceberg.catalog}.system."
    iceberg.run(f"{calls}rollback_to_snapshot('sales.orders', {first})", insert(1))
    iceberg.run(f"{calls}cherrypick_snapshot('sales.orders', {picked})")
    with pytest.raises(TableError, match=f"has rows of snapshot {picked} .*, and not their offsets; roll back"):
        iceberg.write(10, 20, 1)
    assert iceberg.offsets() == list(range(20))


def test_a_delta_table_that_spark_restores(delta: Shared) -> None:
    delta.write(0, 10, 0)
    delta.write(10, 20, 1)
    delta.run(insert(1), "RESTORE TABLE @T TO VERSION AS OF 1", insert(2))
    assert not delta.write(0, 10, 0)
    assert delta.write(10, 20, 1)
    assert delta.offsets() == list(range(20))
    at = next(row[1] for row in delta.run("DESCRIBE HISTORY @T") if row[0] == 1)
    delta.run(f"RESTORE TABLE @T TO TIMESTAMP AS OF '{at}'")
    with pytest.raises(TableError, match="is a RESTORE that does not name a version of it"):
        delta.write(10, 20, 1)
    delta.run("RESTORE TABLE @T TO VERSION AS OF 1")
    assert delta.write(10, 22, 1)
    assert delta.offsets() == list(range(22))


def test_kwire_goes_on_exactly_once_while_spark_maintains_a_delta_table(delta: Shared) -> None:
    delta.write(0, 10, 0, layout=Layout(partition_by=("topic",)))
    folder = delta.folder / "orders" / "_delta_log"
    delta.run("ALTER TABLE @T SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")  # and with it a clean-up
    for batch in range(1, 8):
        if batch in (4, 6):  # as if the commits were older than their retention, 30 days
            for path in folder.iterdir():
                os.utime(path, (0, 0))
        delta.run({2: "OPTIMIZE @T", 3: "VACUUM @T RETAIN 0 HOURS"}.get(batch, insert(batch)))
        assert not delta.write(10 * batch - 10, 10 * batch, batch - 1), batch
        assert delta.write(10 * batch, 10 * batch + 10, batch), batch
    assert not (folder / f"{0:020}.json").exists()
    assert delta.offsets() == list(range(80))
    assert len(delta.rows()) == 85
    table = delta.open()
    table.refresh()
    assert table.state().spans == {("orders", 0): ((0, 80),)}


def test_rows_that_spark_has_deleted_stay_deleted_after_a_merge(shared: Shared) -> None:
    """Spark marks rows as deleted in files of their own, and kwire rewrites the data files."""
    shared.write(0, 100, 0, of_keys=20, key=("key",))
    if shared.format == "iceberg":
        modes = ", ".join(f"'write.{each}.mode' = 'merge-on-read'" for each in ("delete", "update"))
        shared.run(f"ALTER TABLE @T SET TBLPROPERTIES ({modes})")
    else:
        shared.run("ALTER TABLE @T SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    before = shared.files()
    shared.run("DELETE FROM @T WHERE key IN ('k1', 'k2', 'k12')", "UPDATE @T SET value = -5 WHERE key = 'k13'")
    assert set(before) & set(shared.files())
    assert shared.open().find_orphans(0) == []
    shared.write(100, 103, 1, of_keys=20, key=("key",))  # k0, k1, k2
    expected = {f"k{n}": 80 + n for n in range(20) if n != 12} | {"k0": 100, "k1": 101, "k2": 102, "k13": -5}
    assert dict(shared.run("SELECT key, value FROM @T")) == expected
    assert shared.run("SELECT count(*) FROM @T") == [(19,)]
    if shared.format == "iceberg":  # delta-rs writes tables with deletion vectors, and does not read them into Arrow
        assert len(shared.rows()) == 19


def test_spark_reads_what_kwire_has_compacted(shared: Shared) -> None:
    """Also without the rows that Spark has marked as deleted in files of their own, and Spark compacts after kwire."""
    for batch in range(4):
        shared.write(10 * batch, 10 * batch + 10, batch)
    rows = shared.run("SELECT * FROM @T ORDER BY offset")
    if shared.format == "iceberg":
        shared.run("ALTER TABLE @T SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
        shared.run("DELETE FROM @T WHERE offset IN (3, 17, 18)")
        rows = [row for row in rows if row[KAFKA.get_field_index("offset")] not in (3, 17, 18)]
    done = list(compact_table(shared.open()))
    assert [(each.files, each.files_after, each.rows) for each in done] == [(4, 1, 40)]
    assert shared.run("SELECT * FROM @T ORDER BY offset") == rows
    assert len(shared.files()) == 1
    shared.write(40, 50, 4)
    if shared.format == "iceberg":
        options = "options => map('min-input-files', '2')"
        shared.run(f"CALL {shared.catalog}.system.rewrite_data_files(table => 'sales.orders', {options})")
    else:
        shared.run("OPTIMIZE @T")
    shared.write(50, 60, 5)
    table = shared.open()
    table.refresh()
    assert table.state().spans == {("orders", 0): ((0, 60),)}
    assert shared.run("SELECT count(*) FROM @T") == [(len(rows) + 20,)]


# ---- Spark changes tables between two batches


def test_spark_changes_the_columns_of_an_iceberg_table(iceberg: Shared) -> None:
    def alter(change: str) -> None:
        iceberg.run(f"ALTER TABLE @T {change}")

    iceberg.write(0, 10, 0)
    plan = iceberg.open().prepare(KAFKA, Layout())
    alter("ALTER COLUMN value TYPE bigint")
    alter("ADD COLUMN note string FIRST")
    alter("ALTER COLUMN offset FIRST")
    assert iceberg.write(10, 12, 1, plan=plan)
    assert iceberg.write(12, 14, 2)
    alter("RENAME COLUMN value TO amount")
    with pytest.raises(TableError, match="column 'value' was renamed to 'amount' after schema 3; rename the column of"):
        iceberg.write(14, 16, 3)
    alter("RENAME COLUMN amount TO value")
    alter("DROP COLUMN key")
    with pytest.raises(TableError, match="column 'key' was dropped from the table after schema"):
        iceberg.write(14, 16, 3)
    alter("ADD COLUMN key string")
    assert iceberg.write(14, 16, 3)
    iceberg.jars(require_column, iceberg.sql, "must")
    with pytest.raises(TableError, match="column 'must' is required, and a row has null or no value for it"):
        iceberg.write(16, 18, 4)
    alter("ALTER COLUMN must DROP NOT NULL")
    assert iceberg.write(16, 18, 4)
    rows = iceberg.run("SELECT offset, value, key FROM @T ORDER BY offset")
    assert rows == [(n, n, f"k{n}" if n >= 14 else None) for n in range(18)]


def test_spark_changes_the_partitioning_and_sort_order_of_an_iceberg_table(iceberg: Shared) -> None:
    iceberg.write(0, 50, 0, layout=Layout(partition_by=("days(timestamp)", "topic"), sort_by=("key",)))
    plan = iceberg.open().prepare(KAFKA, Layout())
    iceberg.run("ALTER TABLE @T DROP PARTITION FIELD topic")
    with pytest.raises(TableError, match="its partitioning was changed while rows were written; run the query again"):
        iceberg.write(50, 60, 1, plan=plan)
    assert iceberg.write(50, 60, 1)
    iceberg.run("ALTER TABLE @T REPLACE PARTITION FIELD timestamp_day WITH hours(timestamp)")
    assert iceberg.write(60, 62, 2)
    iceberg.run("ALTER TABLE @T WRITE ORDERED BY offset DESC NULLS LAST")
    assert iceberg.write(62, 64, 3)
    iceberg.run("ALTER TABLE @T WRITE ORDERED BY truncate(2, key), offset")  # which kwire does not follow
    assert iceberg.write(64, 66, 4)
    assert iceberg.offsets() == list(range(66))
    files = iceberg.run("SELECT spec_id, sort_order_id, sum(record_count) FROM @T.files GROUP BY ALL ORDER BY 3, 1, 2")
    assert sorted(count for _, _, count in files) == [2, 2, 2, 10, 50]
    iceberg.run("ALTER TABLE @T ADD PARTITION FIELD bucket(4, key)")
    assert iceberg.write(66, 68, 5)
    assert iceberg.offsets() == list(range(68))
    assert iceberg.run("SELECT sum(record_count) FROM @T.files WHERE partition.key_bucket_4 IS NOT NULL") == [(2,)]


def test_tables_of_newer_formats_are_refused(iceberg: Shared) -> None:
    iceberg.write(0, 10, 0)
    plan = iceberg.open().prepare(KAFKA, Layout())
    iceberg.run("ALTER TABLE @T SET TBLPROPERTIES ('format-version' = '3')")
    for given in (None, plan):
        with pytest.raises(TableError, match="it has format version 3, and PyIceberg writes up to 2"):
            iceberg.write(10, 20, 1, plan=given)
    assert iceberg.offsets() == list(range(10))


DELTA_CHANGES = [
    ("('delta.columnMapping.mode' = 'name')", "it uses columnMapping, which is not supported"),
    ("('delta.enableRowTracking' = 'true')", "it uses rowTracking, which is not supported"),
    ("('delta.enableTypeWidening' = 'true')", r"Unsupported table features required: \[TypeWidening\]"),
    ("('delta.setTransactionRetentionDuration' = 'interval 1 days')", "makes it forget the offsets and micro-batches"),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "message"), DELTA_CHANGES)
def test_features_of_delta_that_kwire_does_not_write_are_refused(delta: Shared, properties: str, message: str) -> None:
    delta.write(0, 10, 0)
    delta.run(f"ALTER TABLE @T SET TBLPROPERTIES {properties}")
    with pytest.raises(TableError, match=message):
        delta.write(10, 20, 1)
    assert delta.offsets() == list(range(10))


def test_spark_changes_the_columns_of_a_delta_table(delta: Shared) -> None:
    delta.write(0, 10, 0)
    plan = delta.open().prepare(KAFKA, Layout())
    delta.run("ALTER TABLE @T ADD COLUMN note string FIRST")
    assert delta.write(10, 12, 1, plan=plan)
    assert delta.write(12, 14, 2)
    delta.run("ALTER TABLE @T ADD CONSTRAINT positive CHECK (offset >= 0)")
    with pytest.raises(TableError, match="it uses checkConstraints, which is not supported"):
        delta.write(14, 16, 3)
    delta.run("ALTER TABLE @T DROP CONSTRAINT positive")
    assert delta.write(14, 16, 3)
    delta.run("CREATE OR REPLACE TABLE @T USING delta PARTITIONED BY (topic) AS SELECT * FROM @T")
    with pytest.raises(TableError, match="removed or replaced by another program while rows were written; run again"):
        delta.write(16, 18, 4, plan=plan)
    assert delta.write(16, 18, 4)
    assert delta.offsets() == list(range(18))


def test_a_delta_table_that_spark_has_created(delta: Shared) -> None:
    """With a required column."""
    columns = "key string NOT NULL, value int, topic string, partition int, offset bigint, timestamp timestamp"
    delta.run(f"CREATE TABLE @T ({columns}) USING delta")
    with pytest.raises(TableError, match="column 'key' is required, and a row has null or no value for it"):
        write(delta.open(), kafka_rows(0, 2).drop_columns(["key"]), mark=Mark(query="q", batch=0))
    assert delta.write(0, 2, 0)
    assert not delta.write(0, 2, 0)
    assert delta.offsets() == [0, 1]
