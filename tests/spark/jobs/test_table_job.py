"""jobs.table: logs in tables, from the offsets that a table has (the page's example on Spark: test_jobs_on_spark)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests import golden
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import FORMATS, Tables
from tests.lake.tables import write as write_rows
from tests.maintenance.pull.test_pull import create, delete, delete_records, write
from tests.object_store import ObjectStore
from tests.sampling import mostly_slow
from tests.spark.jobs.test_jobs import items_of_jobs as items_of_jobs
from tests.spark.jobs.test_jobs import own as own

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.cluster_logs import ClusterLogs
from kwire.errors import JobFailed, LogError, OptionError, TableError
from kwire.lake import Layout, append_logs
from kwire.log import LogDirectory
from kwire.schemas import Registry, encode
from kwire.spark import jobs
from kwire.spark.jobs import tabling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

TOPICS = ["orders", "txn", "compacted"]


@pytest.fixture(params=mostly_slow(FORMATS))
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(request.param, tmp_path)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many ranges, and steps of two of them."""
    monkeypatch.setattr(tabling, "SMALLEST_TASK_BYTES", 0)
    monkeypatch.setattr("kwire.spark.packing.MAX_PARTITION_BYTES", 60_000)
    monkeypatch.setattr(tabling, "STEP_BYTES", 120_000)


def where(tables: Tables) -> dict[str, Any]:
    """Return the arguments that name a table."""
    if tables.format == "delta":
        return {"target": str(tables.folder / "orders")}
    return {"target": "sales.orders", "catalog": tables.catalog(f"file://{tables.folder}")}


def places(tables: Tables) -> list[tuple[str, int, int]]:
    rows = tables.read()
    return sorted(zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True))


def expected(logs: Mapping[Any, Any], topics: list[str] = TOPICS) -> list[tuple[str, int, int]]:
    return sorted(
        (*key, record.offset)
        for key, log in logs.items()
        if key[0] in topics
        for record in log.read(isolation="read_committed")
    )


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_killed_job_continues_where_the_tables_offsets_end(
    tables: Tables, modern: Path, spark: SparkSession, items_of_jobs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, steps = tabling.run_items, []

    def killed_before_the_third_commit(*arguments: Any, **rest: Any) -> Any:
        done = run(*arguments, **rest)
        steps.append(done)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(tabling, "run_items", killed_before_the_third_commit)
    with pytest.raises(KeyboardInterrupt):
        jobs.table(spark, str(modern), **where(tables), topics=TOPICS)
    logs = LogDirectory(modern)
    before = places(tables)
    assert 0 < len(before) < len(expected(logs))
    states: list[jobs.Progress] = []
    result = jobs.table(spark, str(modern), **where(tables), topics=TOPICS, progress=states.append)
    assert places(tables) == expected(logs)
    assert result.total("rows") == len(expected(logs)) - len(before)
    assert [each.done for each in states] == sorted(each.done for each in states)
    assert len(states) > 2
    assert (states[-1].done, states[-1].done_bytes) == (states[-1].total, states[-1].total_bytes)
    jobs_before = len(items_of_jobs)
    again = jobs.table(spark, str(modern), **where(tables), topics=TOPICS)
    assert (again.resumed, again.total("rows"), len(items_of_jobs)) == (len(again.rows), 0, jobs_before)
    list(append_logs(tables.open(), [logs["orders", 0]], layout=Layout()))  # the command continues it as well
    assert places(tables) == expected(logs)
    assert tables.open().find_orphans(0) != []  # of the step that was killed


@pytest.mark.usefixtures("small")
def test_holes_of_a_table_are_reported_and_filled(
    tmp_path: Path, modern: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    """In several ranges and steps, before what is new."""
    tables, logs = Tables("delta", tmp_path), LogDirectory(modern)
    log = logs["orders", 0]
    for start, end in ((0, 500), (3000, 3100), (6000, 6001)):
        rows = log.read_arrow(start, end, "read_committed").read_all()
        write_rows(tables.open(), rows, spans={("orders", 0): ((start, end),)})
    arguments: Any = {"topics": ["orders"], "partitions": [0]}
    plain = jobs.table(spark, str(modern), **where(tables), **arguments)
    (row,) = plain.rows
    assert (row["start_offset"], row["end_offset"]) == (6001, 7015)
    assert row["problem"] == "the table lacks offsets 500 to 2999, 3100 to 5999; append them with --fill (fill=True)"
    items_before = len(items_of_jobs)
    filled = jobs.table(spark, str(modern), **where(tables), **arguments, fill=True)
    assert len(items_of_jobs) > items_before + 1
    assert [each["problem"] for each in filled.rows] == [None]
    assert places(tables) == [place for place in expected(logs, ["orders"]) if place[1] == 0]
    table = tables.open()
    table.refresh()
    assert table.state().spans == {("orders", 0): ((0, 7015),)}


def test_a_job_appends_what_is_new_of_a_cluster(
    tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    tables = Tables("delta", tmp_path)
    with Broker(data_dir=tmp_path / "source") as broker, Client(broker.bootstrap_servers) as client:
        source = f"kafka://{broker.bootstrap_servers}"
        create(broker, "orders", 3)
        create(broker, "other")
        write(client, "other", 1)
        for partition in range(2):
            write(client, "orders", 20, partition)
        first = jobs.table(spark, f"{source}/orders", **where(tables), settings={"client.id": "copy"})
        assert [(row["start_offset"], row["end_offset"], row["rows"]) for row in first.rows] == [
            (0, 200, 200),
            (0, 200, 200),
            (0, 0, 0),
        ]
        write(client, "orders", 5)
        write(client, "orders", 5)
        delete_records(broker, "orders", 230)
        second = jobs.table(spark, source, **where(tables), topics=["ord*"])
        assert [(row["rows"], row["problem"]) for row in second.rows] == [
            (70, "retention deleted offsets 200 to 229 before they were appended"),
            (0, None),
            (0, None),
        ]
        gap = {("orders", 0, offset) for offset in range(230)}
        assert set(places(tables)) - gap == set(expected(ClusterLogs(source), ["orders"]))
        delete(broker, "orders")
        create(broker, "orders", 3)
        write(client, "orders", 30)  # as many records as the table has
        with pytest.raises(TableError, match="the topic was deleted and created again, or is one of another cluster"):
            jobs.table(spark, source, **where(tables), topics=["orders"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of boto and its server
def test_logs_in_an_object_store(
    object_store: ObjectStore, tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    """Tiered storage, then a pulled copy, which grows."""
    object_store.fs.mkdir("logs")
    objects = golden.extract_tiered(tmp_path / "objects")
    object_store.upload(objects / "plain", "logs/tiered")
    tiered = LogDirectory("tiered+s3://logs/tiered", **object_store.options)
    tables = Tables("delta", tmp_path)
    options: Any = {"storage": object_store.options}
    jobs.table(spark, "tiered+s3://logs/tiered", **where(tables), **options)
    assert places(tables) == expected(tiered, [topic for (topic, _), _ in tiered.items()])
    with Broker(data_dir=tmp_path / "source") as broker, Client(broker.bootstrap_servers) as client:
        create(broker, "pulled", 2)
        tables = Tables("delta", tmp_path / "second")
        for _ in range(2):
            write(client, "pulled", 20)
            write(client, "pulled", 20, 1)
            jobs.pull(spark, f"kafka://{broker.bootstrap_servers}", "s3://logs/copy", groups=False, **options)
            jobs.table(spark, "s3://logs/copy", **where(tables), topics=["pulled"], **options)
            assert places(tables) == expected(LogDirectory(tmp_path / "source"), ["pulled"])


def test_a_topic_that_changes_while_the_job_runs_fails(
    tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, run = Tables("delta", tmp_path), tabling.run_items
    with Broker(data_dir=tmp_path / "source") as broker, Client(broker.bootstrap_servers) as client:
        create(broker, "orders")
        write(client, "orders", 2)

        def recreated(*arguments: Any, **rest: Any) -> Any:
            delete(broker, "orders")
            create(broker, "orders")
            write(client, "orders", 2)
            return run(*arguments, **rest)

        monkeypatch.setattr(tabling, "run_items", recreated)
        with pytest.raises(JobFailed, match=r"1 of 1 failed: orders-0: .*deleted and created again while the job ran"):
            jobs.table(spark, f"kafka://{broker.bootstrap_servers}", **where(tables))
    assert tables.read().num_rows == 0


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_damaged_partition_ends_before_the_damage_and_the_others_are_complete(
    tables: Tables, own: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    log = LogDirectory(own)["orders", 0]
    complete = expected(LogDirectory(own))
    path = sorted((own / "orders-0").glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(JobFailed, match=r"table: 1 of 3 failed: orders-0: .*run the job again to continue") as failed:
        jobs.table(spark, str(own), **where(tables))
    assert [row["topic"] for row in failed.value.result.rows if row["problem"]] == ["orders"]
    found = [place for place in places(tables) if place[:2] == ("orders", 0)]
    assert 0 < len(found) < log.log_end_offset
    assert [place for place in places(tables) if place[:2] != ("orders", 0)] == [
        place for place in complete if place[:2] != ("orders", 0)
    ]
    assert tables.open().find_orphans(0) == []
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    jobs.table(spark, str(own), **where(tables))
    assert places(tables) == complete


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_compacted_topic_becomes_a_table_of_its_latest_values(
    tables: Tables, modern: Path, spark: SparkSession, items_of_jobs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.spark.packing.MAX_PARTITION_BYTES", 10_000)
    monkeypatch.setattr(tabling, "MERGED_STEP_BYTES", 20_000)
    latest: dict[bytes | None, bytes | None] = {}
    for record in LogDirectory(modern)["compacted", 0].read(isolation="read_committed"):
        latest[record.key] = record.value
    jobs.table(spark, str(modern), **where(tables), topics=["compacted"], partitions=[0], merge_key=["key"])
    assert len(items_of_jobs) > 1
    rows = tables.read()
    found = dict(zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True))
    assert found == {key: value for key, value in latest.items() if value is not None}
    assert rows.num_rows == len(found)


def test_wrong_arguments_are_named(
    tmp_path: Path, modern: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    target = str(tmp_path / "orders")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"topics": "orders"}, "topics: expected a list of names and patterns, got the string 'orders'"),
        ({"partitions": 0}, "partitions: expected a list of numbers, got 0"),
        ({"partitions": "0"}, "partitions: expected a list of numbers, got '0'"),
        ({"merge_key": "key"}, "merge_key: expected a list of columns, got the string 'key'"),
        ({"merge_key": ["kee"]}, "unknown column 'kee'"),
        ({"topics": ["none"]}, "no topic matches 'none'; available topics: __cluster"),
        ({"topics": ["orders", "none"]}, "no topic matches 'none'; available topics: __cluster"),
        ({"topics": ["orders"], "partitions": [0, 9]}, "no selected topic has partition 9; the highest is 2"),
        ({"isolation": "committed"}, "isolation 'committed': expected one of read_uncommitted, read_committed"),
        ({"catalog": {"uri": "x"}}, "catalog: requires an Iceberg table NAMESPACE.NAME"),
        ({"settings": {"client.id": "x"}}, "settings: configs of a client, which require the URL of a cluster"),
    ]
    for given, message in wrong:
        with pytest.raises(OptionError, match=message):
            jobs.table(spark, str(modern), target, **given)
    with pytest.raises(OptionError, match="a cluster is read alone"):
        jobs.table(spark, [str(modern), "kafka://127.0.0.1:9"], target)
    with pytest.raises(LogError):
        jobs.table(spark, str(tmp_path / "nothing"), target)
    assert items_of_jobs == []


def test_tasks_of_spark_write_the_files(spark: SparkSession, modern: Path, tmp_path: Path) -> None:
    tables, options = Tables("iceberg", tmp_path), {"partition_by": ["days(timestamp)"], "headers": True}
    result = jobs.table(spark, str(modern), **where(tables), topics=["orders"], **options)
    assert places(tables) == expected(LogDirectory(modern), ["orders"])
    assert "headers" in tables.read().column_names
    assert result.partitions.count() == 3
    assert tables.open().find_orphans(0) == []
    with pytest.raises(TableError, match=r"partitioned by days\(timestamp\), and .* partition_by\) says topic, which"):
        jobs.table(spark, str(modern), **where(tables), topics=["orders"], partition_by=["topic"])


def test_values_of_a_registry_become_structs(
    tables: Tables, tmp_path: Path, registry: Registry, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    """Each value by the schema that wrote it, read as the topic's latest."""
    values = [encode({"id": n}, registry, schema=41 + n % 2) for n in range(6)]
    logs = write_values(tmp_path / "logs", [value for value in values if value is not None])
    jobs.table(spark, str(logs), registry=str(tmp_path / "schemas"), **where(tables))
    assert tables.read().sort_by("offset").column("value").to_pylist() == [{"id": n, "note": None} for n in range(6)]


def test_a_value_that_does_not_decode_fails_its_partition(
    tables: Tables, tmp_path: Path, registry: Registry, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    good = encode({"id": 1}, registry, topic="avro")
    assert good is not None
    logs = write_values(tmp_path / "logs", [good, b"plain text"])
    with pytest.raises(JobFailed, match="avro-0, offset 1: ") as failed:
        jobs.table(spark, str(logs), registry=registry, **where(tables))
    assert "schema id" in str(failed.value)


def test_with_strict_names_another_record_fails_its_partition(
    tables: Tables, tmp_path: Path, registry: Registry, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    logs = write_values(tmp_path / "logs", [encode({"id": 1}, registry, topic="avro")])
    other = registry.latest("avro-value").text.replace('"Order"', '"Payment"')
    given: dict[str, Any] = {**where(tables), "registry": registry}
    with pytest.raises(JobFailed, match="schema id 42: the writer's record Order has another name than the reader's"):
        jobs.table(spark, str(logs), **given, values={"schema": other, "names": "strict"})
    jobs.table(spark, str(logs), **given, values={"schema": other})
    assert tables.read().num_rows == 1


def test_small_partitions_share_files(tmp_path: Path, spark: SparkSession, items_of_jobs: list[list[str]]) -> None:
    """Also when one of them is damaged: it fails, and the others are complete."""
    logs = tmp_path / "logs"
    for partition in range(100):
        write_values(logs, [b"%d" % partition] * 3, partition=partition)
    tables = Tables("iceberg", tmp_path)
    jobs.table(spark, str(logs), **where(tables))
    rows = tables.read()
    assert sorted(rows.column("value").to_pylist()) == sorted(b"%d" % n for n in range(100) for _ in range(3))
    table: Any = tables.open()
    table.refresh()
    files = len(table.table.inspect.files())
    assert files <= 10
    for partition in range(100):
        write_values(logs, [b"more"], partition=partition, first=3)
    path = logs / "avro-7" / f"{3:020}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(JobFailed, match=r"table: 1 of 100 failed: avro-7: "):
        jobs.table(spark, str(logs), **where(tables))
    assert tables.read().num_rows == 399
    assert tables.open().find_orphans(0) == []


def test_a_registry_requires_one_topic(
    tables: Tables, modern: Path, registry: Registry, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    with pytest.raises(OptionError, match=r"registry: requires one topic or a subject, .*: orders, txn"):
        jobs.table(spark, str(modern), topics=["orders", "txn"], registry=registry, **where(tables))


def test_a_value_that_does_not_decode_becomes_a_dead_letter_and_keeps_its_key(
    tables: Tables, tmp_path: Path, registry: Registry, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    """A table merged by key: a tombstone deletes, a bad value does not."""
    first, second = encode({"id": 1}, registry, topic="avro"), encode({"id": 2}, registry, topic="avro")
    logs = write_values(tmp_path / "logs", [first, b"plain text", second, None], keys=[b"a", b"b", b"c", b"c"])
    given: dict[str, Any] = {**where(tables), "registry": registry, "merge_key": ["key"]}
    with pytest.raises(OptionError, match="mode: with permissive, values that cannot be decoded are null, which del"):
        jobs.table(spark, str(logs), **given, values={"mode": "permissive"})
    with pytest.raises(OptionError, match="names: strict requires the schema of a reader, not a union"):
        jobs.table(spark, str(logs), **given, values={"schema": "union", "names": "strict"})
    jobs.table(spark, str(logs), **given, values={"mode": "deadletter", "schema": "union"})
    rows = tables.read().sort_by("offset").select(["key", "value", "value_error", "value_bytes"]).to_pylist()
    assert rows[0] == {"key": b"a", "value": {"id": 1, "note": None}, "value_error": None, "value_bytes": None}
    assert (rows[1]["key"], rows[1]["value"], rows[1]["value_bytes"]) == (b"b", None, b"plain text")
    assert "no schema id" in rows[1]["value_error"]
    assert len(rows) == 2


def test_dead_letters_have_a_table_of_their_own(
    tables: Tables, tmp_path: Path, registry: Registry, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    good = encode({"id": 1}, registry, topic="avro")
    logs = write_values(tmp_path / "logs", [good, b"plain text", good], keys=[b"a", b"b", b"c"])
    target = where(tables)
    given: dict[str, Any] = {**target, "registry": registry, "merge_key": ["key"]}
    given["dead_letters"] = target["target"].replace("orders", "dead")
    done = jobs.table(spark, str(logs), **given)
    assert (done.total("rows"), done.total("dead_letters")) == (2, 1)
    assert jobs.table(spark, str(logs), **given).total("dead_letters") == 0
    assert tables.read().sort_by("offset").column("key").to_pylist() == [b"a", b"c"]
    (row,) = tables.read("dead").to_pylist()
    assert (row["offset"], row["key"], row["value"]) == (1, b"b", b"plain text")
    with pytest.raises(OptionError, match="mode: dead_letters requires deadletter, got 'failfast'"):
        jobs.table(spark, str(logs), **given, values={"mode": "failfast"})


def test_options_of_decoding_require_a_registry(
    tables: Tables, modern: Path, spark: SparkSession, items_of_jobs: list[list[str]]
) -> None:
    for option, value in (("mode", "deadletter"), ("names", "strict")):
        given: dict[str, Any] = {**where(tables), "values": {option: value}}
        with pytest.raises(OptionError, match=f"{option}: requires registry"):
            jobs.table(spark, str(modern), **given, topics=["orders"])
