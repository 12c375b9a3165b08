"""kwire.spark.jobs: planning, output, resuming and merging (the examples of the page: test_jobs_on_spark)."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from kwire.errors import JobFailed, LogError, OptionError
from kwire.log import LogDirectory
from kwire.maintenance import compaction as offline
from kwire.maintenance.convert import LossRefused, TargetFormat, convert_directory
from kwire.maintenance.export import ExportOptions, export_logs
from kwire.maintenance.from_parquet import FromParquetOptions, restore_from_parquet
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression
from kwire.spark import jobs
from kwire.spark.jobs import runner
from kwire.spark.jobs.journal import Journal, publish
from kwire.spark.jobs.restoring import partitions_of_files
from kwire.spark.jobs.runner import Item, Outcome, group_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
CAPTURES = ROOT / "tests" / "data" / "captures"
NOW = 1_770_000_000_000
SOME = ["orders*", "txn", "compacted"]
MIB = 1 << 20


@pytest.fixture
def items_of_jobs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the items of each job."""
    ran: list[list[str]] = []
    on_spark = runner.on_spark

    def recorded(session: Any, items: Sequence[Item], work: Any, journal: Any) -> dict[str, Outcome]:
        ran.append([item.name for item in items])
        return on_spark(session, items, work, journal)

    monkeypatch.setattr(runner, "on_spark", recorded)
    return ran


@pytest.fixture
def own(modern: Path, tmp_path: Path) -> Path:
    """A copy of some partitions that tests can damage."""
    target = tmp_path / "own"
    target.mkdir()
    for name in ("orders-0", "orders-1", "txn-0", "meta.properties"):
        source = modern / name
        shutil.copytree(source, target / name) if source.is_dir() else shutil.copy(source, target / name)
    return target


def damage(log: Path) -> Callable[[], None]:
    """Change a byte in the middle of a segment; return a function that restores it."""
    data = bytearray(log.read_bytes())
    before = bytes(data)
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)

    def put_right() -> None:
        log.write_bytes(before)

    return put_right


def files_below(path: Path) -> dict[str, bytes]:
    """Return the bytes of every file, except snapshots and checkpoints with a timestamp."""
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in sorted(path.rglob("*"))
        if each.is_file() and each.name not in ("meta.properties", ".kafka_cleanshutdown")
    }


# ---- tasks


def test_large_items_get_their_own_tasks_first_and_small_ones_share() -> None:
    sizes = {"big": 200 * MIB, "small": 3 * MIB, "bigger": 300 * MIB, "empty": 0, "middle": 20 * MIB}
    tasks = group_items([Item(name=name, size_bytes=size, subject=None) for name, size in sizes.items()])
    assert [[item.name for item in task] for task in tasks] == [["bigger"], ["big"], ["middle", "small", "empty"]]
    assert group_items([]) == []


@pytest.mark.parametrize(("more", "tasks"), [(-1, 1), (0, 1), (1, 2)])
def test_items_of_exactly_the_smallest_task_are_one_task(more: int, tasks: int) -> None:
    sizes = [runner.SMALLEST_TASK_BYTES // 2 - runner.OPEN_COST_BYTES] * 2
    sizes[1] += more
    items = [Item(name=str(n), size_bytes=size, subject=None) for n, size in enumerate(sizes)]
    assert len(group_items(items)) == tasks


def test_many_empty_partitions_share_bounded_tasks() -> None:
    tasks = group_items([Item(name=str(n), size_bytes=0, subject=None) for n in range(100)])
    assert [len(task) for task in tasks] == [32, 32, 32, 4]


def test_the_first_complete_attempt_wins(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "job"))
    journal.begin({"job": "x"}, {})
    with journal.attempt() as one, journal.attempt() as other:
        for attempt, text in ((one, "first"), (other, "second")):
            os.makedirs(f"{attempt}/log")
            Path(attempt, "log", "file").write_text(text)
            publish(journal.files, f"{attempt}/log", str(tmp_path / "orders-0"))
    assert (tmp_path / "orders-0" / "file").read_text() == "first"
    assert os.listdir(tmp_path / "job" / "attempts") == []


def test_job_errors_pickle() -> None:
    failed = JobFailed("export: 1 of 2 failed", (("orders-0", "gone"),))
    failed.result = object()
    again = pickle.loads(pickle.dumps(failed))
    assert (str(again), again.failures, again.result) == ("export: 1 of 2 failed", (("orders-0", "gone"),), None)


# ---- verify


@pytest.mark.slow
def test_verify_equals_a_single_process(spark: SparkSession, items_of_jobs: Any, kafka_logs: dict[str, Path]) -> None:
    for place in sorted(path.parent for path in kafka_logs["unclean"].rglob("meta.properties")):
        found = jobs.verify(spark, str(place))
        expected = verify_directory(LogDirectory(place))
        assert list(found.found) == [each.as_row() for each in expected.damages]
        assert found.total("damages") + found.total("notes") == sum(len(each.damages) for each in expected.partitions)


@pytest.mark.slow
def test_verify_reads_only_changed_partitions_again(
    spark: SparkSession, items_of_jobs: list[list[str]], own: Path, tmp_path: Path
) -> None:
    journal = str(tmp_path / "journal")
    assert jobs.verify(spark, str(own), journal=journal).is_fine
    with open(own / "orders-1" / "00000000000000000000.log", "ab") as log:
        log.write(b"\0" * 10)
    again = jobs.verify(spark, str(own), journal=journal)
    assert again.resumed == 2
    assert [name.rpartition("/")[2] for name in items_of_jobs[1]] == ["orders-1"]
    assert not again.is_fine


# ---- export


def test_export_equals_a_single_process(spark: SparkSession, items_of_jobs: Any, modern: Path, tmp_path: Path) -> None:
    result = jobs.export(spark, str(modern), str(tmp_path / "out"), topics=SOME, headers=True)
    logs = [
        log
        for key, log in LogDirectory(modern).items()
        if key[0] in ("orders", "orders.recompressed", "txn", "compacted")
    ]
    expected = export_logs(logs, str(tmp_path / "expected"), ExportOptions(headers=True))
    assert [(row["topic"], row["partition"], row["records"]) for row in result.rows] == [
        (each.topic, each.partition, each.records) for each in expected
    ]
    for row, each in zip(result.rows, expected, strict=True):
        assert Path(row["path"]).relative_to(tmp_path / "out") == Path(each.path).relative_to(tmp_path / "expected")
        assert pq.read_table(row["path"]).equals(pq.read_table(each.path))
    assert sorted(os.listdir(tmp_path / "out")) == ["_SUCCESS", "compacted", "orders", "orders.recompressed", "txn"]
    with pytest.raises(OptionError, match="not an empty directory"):
        jobs.export(spark, str(modern), str(tmp_path / "out"), topics=SOME)


def test_a_damaged_partition_does_not_fail_the_others_and_a_rerun_does_the_rest(
    spark: SparkSession, items_of_jobs: list[list[str]], own: Path, tmp_path: Path
) -> None:
    put_right = damage(own / "orders-1" / "00000000000000000000.log")
    out = tmp_path / "out"
    with pytest.raises(JobFailed, match=r"1 of 3 failed: orders-1: .*CRC") as caught:
        jobs.export(spark, str(own), str(out))
    [(name, _)] = caught.value.failures
    assert name == "orders-1"
    result: Any = caught.value.result
    assert [row["problem"] is None for row in result.rows] == [True, False, True]
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*.parquet")) == [
        "orders/partition=0/records.parquet",
        "txn/partition=0/records.parquet",
    ]
    assert not (out / "_SUCCESS").exists()
    put_right()
    with pytest.raises(OptionError, match="left by another job"):
        jobs.export(spark, str(own), str(out), headers=True)
    reported: list[jobs.Progress] = []
    again = jobs.export(spark, str(own), str(out), progress=reported.append)
    assert (again.resumed, items_of_jobs[-1]) == (2, ["orders-1"])
    assert (reported[-1].done, reported[-1].total, reported[-1].done_bytes) == (3, 3, reported[-1].total_bytes)
    assert sorted(os.listdir(out)) == ["_SUCCESS", "orders", "txn"]


def test_output_without_a_journal_entry_is_written_again(
    spark: SparkSession, items_of_jobs: list[list[str]], own: Path, tmp_path: Path
) -> None:
    put_right = damage(own / "txn-0" / "00000000000000000000.log")
    with pytest.raises(JobFailed):
        jobs.export(spark, str(own), str(tmp_path / "out"))
    put_right()
    for entry in (tmp_path / "out" / "_job" / "done").iterdir():
        if json.loads(entry.read_text())["name"] == "orders-0":
            entry.unlink()
    half = tmp_path / "out" / "orders" / "partition=0" / "records.parquet"
    half.write_bytes(b"half")
    jobs.export(spark, str(own), str(tmp_path / "out"))
    assert items_of_jobs[-1] == ["orders-0", "txn-0"]
    assert pq.read_metadata(half).num_rows == 7015


# ---- convert, compact


@pytest.mark.slow
def test_convert_equals_a_single_process(spark: SparkSession, items_of_jobs: Any, modern: Path, tmp_path: Path) -> None:
    source, target = LogDirectory(modern), TargetFormat(codec=Compression.LZ4)
    keys = [key for key in source if key[0] in ("txn", "trimmed", "ids", "empty")]
    convert_directory(source, str(tmp_path / "expected"), target, keys, whole=False, now_ms=NOW)
    topics = ["txn", "trimmed", "ids", "empty"]
    result = jobs.convert(spark, str(modern), str(tmp_path / "new"), compression="lz4", topics=topics)
    assert files_below(tmp_path / "new") == files_below(tmp_path / "expected")
    assert [(row["topic"], row["partition"]) for row in result.rows] == sorted(keys)
    assert sorted(os.listdir(tmp_path)) == ["expected", "new"]


def test_losses_of_a_conversion_are_reported_before_anything_is_written(
    spark: SparkSession, items_of_jobs: Any, modern: Path, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {"magic": 1, "compression": "none", "topics": ["txn"]}
    with pytest.raises(LossRefused, match=r"\d+ control batches"):
        jobs.convert(spark, str(modern), str(tmp_path / "new"), **arguments)
    assert os.listdir(tmp_path) == []
    reported = jobs.convert(spark, str(modern), None, **arguments)
    assert all("control batches" in row["lost"] for row in reported.rows)
    done = jobs.convert(spark, str(modern), str(tmp_path / "new"), accept_loss=True, **arguments)
    assert [row["lost"] for row in done.rows] == [row["lost"] for row in reported.rows]
    assert {batch.magic for log in LogDirectory(tmp_path / "new").values() for _, batch in log.batches()} == {1}


def test_an_interrupted_conversion_resumes(
    spark: SparkSession, items_of_jobs: list[list[str]], own: Path, tmp_path: Path
) -> None:
    put_right = damage(own / "txn-0" / "00000000000000000000.log")
    new = tmp_path / "new"
    with pytest.raises(JobFailed, match=r"txn-0: .*run the job again"):
        jobs.convert(spark, str(own), str(new), compression="zstd")
    assert not new.exists()
    put_right()
    with pytest.raises(OptionError, match="left by another job"):
        jobs.convert(spark, str(own), str(new), compression="gzip")
    again = jobs.convert(spark, str(own), str(new), compression="zstd")
    assert (again.resumed, items_of_jobs[-1]) == (2, ["txn-0"])
    assert [each for each in verify_directory(LogDirectory(new)).damages if not each.is_harmless] == []
    assert sorted(os.listdir(tmp_path)) == ["new", "own"]


def test_compact_equals_a_single_process(spark: SparkSession, items_of_jobs: Any, modern: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(modern, source, ignore=shutil.ignore_patterns("m?-wide-*"))
    os.remove(source / "cleaner-offset-checkpoint")  # everything is dirty
    settings = {"delete.retention.ms": "0"}
    expected = tmp_path / "expected"
    offline.copy_logs(str(source), str(expected), lambda topic, _: topic.startswith("compacted"))
    of_one = {
        (each.topic, each.partition): each
        for each in offline.compact(
            str(expected), lambda *_: True, offline.OfflineSettings.parse(settings), NOW
        )
    }  # fmt: skip
    new = tmp_path / "new"
    result = jobs.compact(spark, str(source), str(new), topics=["compacted*"], settings=settings, now_ms=NOW)
    assert {(row["topic"], row["partition"]) for row in result.rows} == set(of_one)
    for row in result.rows:
        one = of_one[row["topic"], row["partition"]]
        assert row["passes"] == one.stats.passes == 1
        assert (row["records_read"], row["records_written"]) == (one.stats.records_read, one.stats.records_written)
        assert (row["clean_offset"], row["problem"]) == (one.clean_offset, None)
        name = f"{row['topic']}-{row['partition']}"
        made, wanted = files_below(new / name), files_below(expected / name)
        assert {n: data for n, data in made.items() if n.endswith(".log")} == {
            n: data for n, data in wanted.items() if n.endswith(".log")
        }
    assert [each for each in verify_directory(LogDirectory(new)).damages if not each.is_harmless] == []
    with pytest.raises(OptionError, match="topics: none given"):
        jobs.compact(spark, str(source), str(tmp_path / "other"), topics=[])


# ---- restore


@pytest.mark.sampled
@pytest.mark.parametrize("new_offsets", [False, True])
def test_restore_equals_a_single_process(
    new_offsets: bool, spark: SparkSession, items_of_jobs: Any, modern: Path, tmp_path: Path
) -> None:
    keys = [("compacted", 0), ("txn", 0), ("txn", 1)]
    export_logs([LogDirectory(modern)[key] for key in keys], str(tmp_path / "in"), ExportOptions(headers=True))
    tables = {name: str(tmp_path / f"{name}.parquet") if new_offsets else None for name in ("job", "one")}
    arguments = {"new_offsets": new_offsets, "topic_ids": {}}
    result = jobs.restore(
        spark, str(tmp_path / "in"), str(tmp_path / "job"), offset_table=tables["job"], compression="lz4", **arguments
    )
    restore_from_parquet(
        [str(tmp_path / "in")],
        str(tmp_path / "one"),
        FromParquetOptions(codec=Compression.LZ4, offset_table=tables["one"], **arguments),
        now_ms=NOW,
    )
    made, wanted = files_below(tmp_path / "job"), files_below(tmp_path / "one")
    assert sorted(made) == sorted(wanted)
    ids_apart = [name for name in made if not name.endswith("partition.metadata")]  # they are random
    assert {name: made[name] for name in ids_apart} == {name: wanted[name] for name in ids_apart}
    assert len({row["topic_id"] for row in result.rows if row["topic"] == "txn"}) == 1
    if new_offsets:
        assert pq.read_table(tables["job"]).equals(pq.read_table(tables["one"]))
    with pytest.raises(OptionError, match="not an empty directory"):
        jobs.restore(spark, str(tmp_path / "in"), str(tmp_path / "job"))


def test_files_of_many_partitions_are_split_by_partition() -> None:
    seen = [
        ("a", {"has_offsets": True, "partitions": [["t", 1], ["t", 0]]}),
        ("b", {"has_offsets": True, "partitions": [["t", 1]]}),
        ("c", {"has_offsets": True, "partitions": []}),
    ]
    assert partitions_of_files(seen, translates=True) == {("t", 0): ["a"], ("t", 1): ["a", "b"]}
    seen.append(("d", {"has_offsets": False, "partitions": [["t", 1]]}))
    with pytest.raises(OptionError, match=r"d: no column 'offset', which c has"):
        partitions_of_files(seen, translates=False)


# ---- advise


def test_advise_reads_captures_and_logs(
    spark: SparkSession, items_of_jobs: list[list[str]], kafka_logs: dict[str, Path]
) -> None:
    advice = jobs.advise(spark, captures=str(CAPTURES), logs=str(kafka_logs["modern44"] / "data"))
    by_name = {(row["message"], row["version"]): row for row in advice.messages}
    assert by_name["MetadataResponse", 12]["messages"] == 3
    assert sum(row["unreadable"] for row in advice.messages) == 0
    logs = LogDirectory(kafka_logs["modern44"] / "data")
    records = [each for (topic, _), log in logs.items() if topic == "__transaction_state" for each in log.read()]
    keys = by_name["TransactionLogKey", 0]
    assert (keys["messages"], keys["size_bytes"]) == (len(records), sum(len(each.key or b"") - 2 for each in records))
    # A value begins with its version, and with the id of the producer, eight bytes.
    found = [struct.unpack_from(">hq", each.value) for each in records if each.value is not None]
    for version in {each[0] for each in found}:
        ids = [each[1] for each in found if each[0] == version]
        (row,) = (
            row
            for row in advice.rows
            if (row["message"], row["version"], row["path"]) == ("TransactionLogValue", version, "producer_id")
        )
        assert (row["values"], row["smallest"], row["largest"]) == (len(ids), min(ids), max(ids))
        assert row["encodings"]["fixed64"] == 8 * len(ids)
        assert (
            row["saved_bytes"]
            == 8 * len(ids) - min(row["encodings"][name] for name in ("fixed64", "packed64", "upacked64"))
            > 0
        )
    assert found
    saved = [row["saved_bytes"] for row in advice.rows]
    assert saved == sorted(saved, reverse=True)
    with pytest.raises(OptionError, match="nothing to count"):
        jobs.advise(spark)


def test_a_task_that_sees_different_files_than_the_driver_is_reported(
    items_of_jobs: Any, own: Path, tmp_path: Path
) -> None:
    journal = Journal(str(tmp_path / "nowhere"))
    with pytest.raises(LogError, match="driver and executors must share a file system"), journal.attempt():
        pass
