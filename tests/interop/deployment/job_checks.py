"""Each job of kwire.spark.jobs gives the bytes of a single process without Spark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
from given import Given, create_topic, of_broker, of_log

from kwire.log import LogDirectory
from kwire.log.topics import replay_groups
from kwire.maintenance import compaction as offline
from kwire.maintenance.convert import TargetFormat, convert_directory
from kwire.maintenance.export import ExportOptions, export_logs
from kwire.maintenance.from_parquet import FromParquetOptions, restore_from_parquet
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression
from kwire.spark import jobs

NOW = 1_770_000_000_000


def verify(given: Given) -> None:
    directory = LogDirectory(given.logs)
    found = jobs.verify(given.spark, str(given.logs))
    expected = verify_directory(directory)
    assert list(found.found) == [each.as_row() for each in expected.damages]
    assert found.partitions.count() == len(directory)


def export(given: Given) -> None:
    target, plain = given.out / "export", given.out / "export-plain"
    result = jobs.export(given.spark, str(given.logs), str(target), topics=["orders", "txn"], headers=True)
    logs = [log for key, log in LogDirectory(given.logs).items() if key[0] in ("orders", "txn")]
    for row, each in zip(result.rows, export_logs(logs, str(plain), ExportOptions(headers=True)), strict=True):
        assert pq.read_table(row["path"]).equals(pq.read_table(each.path))
        assert row["records"] == each.records


def convert(given: Given) -> None:
    target, plain = given.out / "convert", given.out / "convert-plain"
    source = LogDirectory(given.logs)
    keys = [key for key in source if key[0] in ("txn", "ids")]
    convert_directory(source, str(plain), TargetFormat(codec=Compression.LZ4), keys, whole=False, now_ms=NOW)
    jobs.convert(given.spark, str(given.logs), str(target), compression="lz4", topics=["txn", "ids"])
    assert files_below(target) == files_below(plain)


def compact(given: Given) -> None:
    source, target, plain = (given.out / f"compact-{name}" for name in ("source", "job", "plain"))
    shutil.copytree(given.logs, source, ignore=shutil.ignore_patterns("m?-wide-*", "orders*"))
    os.remove(source / "cleaner-offset-checkpoint")  # everything is dirty
    settings = {"delete.retention.ms": "0"}
    offline.copy_logs(str(source), str(plain), lambda topic, _: topic.startswith("compacted"))
    list(offline.compact(str(plain), lambda *_: True, offline.OfflineSettings.parse(settings), NOW))
    jobs.compact(given.spark, str(source), str(target), topics=["compacted*"], settings=settings, now_ms=NOW)
    logs = {path.relative_to(plain) for path in plain.rglob("*.log")}
    assert len(logs) > 2
    for path in logs:
        assert (target / path).read_bytes() == (plain / path).read_bytes(), path


def restore_and_translate(given: Given) -> None:
    source, target, plain = (given.out / f"restore-{name}" for name in ("source", "job", "plain"))
    table = given.out / "offsets.parquet"
    logs = [log for key, log in LogDirectory(given.logs).items() if key[0] in ("orders", "txn")]
    export_logs(logs, str(source), ExportOptions(headers=True))
    restored = jobs.restore(
        given.spark, str(source), str(target), compression="lz4", new_offsets=True, offset_table=str(table)
    )
    restore_from_parquet(
        [str(source)],
        str(plain),
        FromParquetOptions(codec=Compression.LZ4, new_offsets=True, offset_table=f"{table}.plain"),
        now_ms=NOW,
    )
    made, wanted = files_below(target), files_below(plain)
    assert made.keys() == wanted.keys()
    assert all(data == wanted[name] for name, data in made.items() if not name.endswith("partition.metadata"))
    committed = given.spark.read.format("kafka-internal").option("kind", "offsets").load(str(given.logs))
    moved = jobs.translate_offsets(given.spark, committed, restored.translation).collect()
    runs = pq.read_table(f"{table}.plain").to_pylist()
    for row in moved:
        if row.offset is None:
            assert row.new_offset is None
            continue
        own = [each for each in runs if (each["topic"], each["partition"]) == (row.topic, row.partition)]
        within = [each for each in own if each["old_offset"] + each["count"] > row.offset]
        if not own:
            assert row.new_offset is None
        elif within:
            first = min(within, key=lambda each: each["old_offset"])
            assert row.new_offset == first["new_offset"] + max(row.offset - first["old_offset"], 0)
        else:
            assert row.new_offset == max(each["new_offset"] + each["count"] for each in own)
    committed_offsets = sum(len(group.offsets) for group in replay_groups(LogDirectory(given.logs)).groups.values())
    assert sum(row.offset is not None for row in moved) == committed_offsets > 10


def advise(given: Given) -> None:
    found = jobs.advise(given.spark, captures=str(given.captures / "k391.clean.pcap"), logs=str(given.logs))
    directory = LogDirectory(given.logs)
    keys = sum(len(list(log.read())) for (topic, _), log in directory.items() if topic == "__transaction_state")
    by_name = {(row["message"], row["version"]): row for row in found.by_message.collect()}
    assert by_name["TransactionLogKey", 0]["messages"] == keys
    assert by_name["ProduceRequest", 11]["messages"] == 45
    assert found.fields.where("saved_bytes > 0").count() > 10


def pull_and_table(given: Given) -> None:
    from deltalake import DeltaTable

    topic = create_topic(given.servers, "pulled", 3)
    source, copy = f"kafka://{given.servers}/{topic}", given.out / "pulled"
    orders = given.spark.read.format("kafka-log").option("subscribe", "orders").load(str(given.logs))
    orders.select("key", "value").write.format("kafka-live").options(
        **{"kafka.bootstrap.servers": given.servers, "topic": topic}
    ).mode("append").save()
    expected = of_broker(given.servers, topic)
    assert jobs.pull(given.spark, source, str(copy)).is_complete
    assert of_log(copy, topic) == expected
    for rows in (len(expected), 0):
        assert jobs.table(given.spark, source, str(given.out / "table")).total("rows") == rows
    pulled = given.spark.read.format("kafka-log").option("subscribe", topic).load(str(copy))
    pulled.write.format("kwire-delta").option("partitionBy", "partition").mode("append").save(str(given.out / "sink"))
    for name in ("table", "sink"):
        made = DeltaTable(str(given.out / name)).to_pyarrow_table().select(["partition", "offset", "key", "value"])
        found = sorted(tuple(row.values()) for row in made.to_pylist())
        assert found == sorted((partition, offset, key, value) for partition, offset, _, key, value, _ in expected)


def files_below(path: Path) -> dict[str, bytes]:
    """Return the bytes of every file except those with a timestamp."""
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in sorted(path.rglob("*"))
        if each.is_file() and each.name not in ("meta.properties", ".kafka_cleanshutdown")
    }
