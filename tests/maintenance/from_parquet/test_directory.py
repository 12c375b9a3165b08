"""Log directories from Parquet: exported records are restored, and invalid rows rejected."""

from __future__ import annotations

import random
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from kwire.errors import KwireError, LogError, MissingExtra, OptionError
from kwire.log import LogDirectory
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.export import ExportOptions, export_logs
from kwire.maintenance.from_parquet import FromParquetOptions, restore_from_parquet
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression
from kwire.storage.file_system import FileSystem
from tests.log.expected import Row, read_objects
from tests.storage.faults import Stopped, StoppingFileSystem

NOW = 1_770_000_000_000
KEYS = [("orders", 1), ("txn", 0), ("compacted", 0), ("trimmed", 0), ("logappend", 1), ("orders.recompressed", 0)]


@pytest.fixture(scope="module")
def exported(modern: LogDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """KEYS as Parquet, one directory per topic."""
    target = tmp_path_factory.mktemp("exported") / "out"
    export_logs([modern[key] for key in KEYS], str(target), ExportOptions(headers=True))
    return target


def restore(inputs: Any, target: Path, file_system: FileSystem | None = None, **options: Any) -> LogDirectory:
    paths = [str(each) for each in inputs]
    restore_from_parquet(paths, str(target), FromParquetOptions(**options), now_ms=NOW, file_system=file_system)
    return LogDirectory(target)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_exported_records_are_restored(
    codec: Compression, modern: LogDirectory, exported: Path, tmp_path: Path
) -> None:
    new = restore([exported], tmp_path / "new", codec=codec, segment_bytes=300_000)
    assert sorted(new) == sorted(KEYS)
    for key in KEYS:
        rows = read_objects(modern[key])
        assert read_objects(new[key]) == rows
        assert (new[key].log_start_offset, new[key].log_end_offset) == (rows[0].offset, rows[-1].offset + 1)
        assert all(segment.size_bytes <= 300_000 for segment in new[key].segments)
        assert {batch.compression for _, batch in new[key].batches()} == {codec}
    assert len(new["orders", 1].segments) > 1
    assert [each for each in verify_directory(new).damages if each.severity.text != "note"] == []
    with LogManager.open(tmp_path / "new", now_ms=NOW) as opened:
        assert opened.was_clean
        assert {key: log.log_end_offset for key, log in opened.logs.items()} == {
            key: log.log_end_offset for key, log in new.items()
        }


def table(rows: list[Row], of: str = "t", number: int = 0, **changed: pa.Array | None) -> pa.Table:
    """Return rows with Spark's columns. changed: columns to replace, None to remove."""
    columns: dict[str, Any] = {
        "topic": pa.array([of] * len(rows)),
        "partition": pa.array([number] * len(rows), pa.int32()),
        "offset": pa.array([row.offset for row in rows], pa.int64()),
        "timestamp": pa.array([row.timestamp * 1000 for row in rows], pa.timestamp("us", "UTC")),
        "key": pa.array([row.key for row in rows], pa.binary()),
        "value": pa.array([row.value for row in rows], pa.binary()),
        "headers": pa.array(
            [[{"key": key, "value": value} for key, value in row.headers] or None for row in rows],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
        **changed,
    }
    return pa.table({name: column for name, column in columns.items() if column is not None})


def write(path: Path, content: pa.Table, row_group_size: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path, row_group_size=row_group_size)
    return path


@pytest.fixture(scope="module")
def rows(modern: LogDirectory) -> list[Row]:
    """Return rows 20 to 3000 of a partition without gaps."""
    return read_objects(modern["orders", 2])[20:3000]


def test_hive_directories_give_topic_and_partition(rows: list[Row], tmp_path: Path) -> None:
    content = table(rows, "a.b", 3)
    ds.write_dataset(
        content, tmp_path / "in", format="parquet", partitioning=["topic", "partition"], partitioning_flavor="hive"
    )
    assert (tmp_path / "in/topic=a.b/partition=3").is_dir()
    (tmp_path / "in/_SUCCESS").write_text("")
    (tmp_path / "in/topic=a.b/partition=3/.part-0.parquet.crc").write_text("x")
    new = restore([tmp_path / "in"], tmp_path / "new")
    assert list(new) == [("a.b", 3)]
    assert read_objects(new["a.b", 3]) == rows


@pytest.mark.parametrize("order", ["reversed", "shuffled", "overlapping files", "partitions mixed"])
def test_rows_are_sorted_by_offset(order: str, rows: list[Row], tmp_path: Path) -> None:
    content = table(rows)
    if order == "reversed":
        write(tmp_path / "in/a.parquet", content.take(list(range(len(rows) - 1, -1, -1))), 500)
    elif order == "shuffled":
        write(tmp_path / "in/a.parquet", content.take([(i * 1009) % len(rows) for i in range(len(rows))]), 500)
    elif order == "overlapping files":
        write(tmp_path / "in/a.parquet", content.take(list(range(1, len(rows), 2))), 300)
        write(tmp_path / "in/b.parquet", content.take(list(range(0, len(rows), 2))), 700)
    else:
        both = pa.concat_tables([content, table(rows, number=7)])
        mixed = both.take([i // 2 + i % 2 * len(rows) for i in range(2 * len(rows))])
        write(tmp_path / "in/a.parquet", mixed, 999)
    new = restore([tmp_path / "in"], tmp_path / "new")
    for key in new:
        assert read_objects(new[key]) == rows
    assert len(new) == (2 if order == "partitions mixed" else 1)


def test_files_in_any_order_are_merged_by_offset(rows: list[Row], tmp_path: Path) -> None:
    write(tmp_path / "in/a.parquet", table(rows[1500:]))
    write(tmp_path / "in/b.parquet", table(rows[:1500]))
    assert read_objects(restore([tmp_path / "in"], tmp_path / "new", max_sort_bytes=0)["t", 0]) == rows
    write(tmp_path / "in/a.parquet", table(rows[1400:]))
    write(tmp_path / "in/b.parquet", table(rows[:1400:-1]))
    with pytest.raises(OptionError, match=r"t-0 are unsorted over 2 row groups .*write the files sorted"):
        restore([tmp_path / "in"], tmp_path / "other", max_sort_bytes=100_000)


@pytest.mark.parametrize("where", ["one row group", "two files", "far apart"])
def test_a_duplicate_offset_is_rejected_with_both_positions(where: str, rows: list[Row], tmp_path: Path) -> None:
    content = table(rows)
    if where == "one row group":
        write(tmp_path / "in/a.parquet", pa.concat_tables([content.slice(0, 50), content.slice(49, 10)]))
        said = rf"in/a\.parquet: row group 0: offset {rows[49].offset} of t-0 is a duplicate of row group 0"
    elif where == "two files":
        write(tmp_path / "in/a.parquet", content.slice(0, 50))
        write(tmp_path / "in/b.parquet", content.slice(49, 10))
        said = rf"in/b\.parquet: row group 0: offset {rows[49].offset} .*a duplicate of row group 0 of .*a\.parquet"
    else:
        write(tmp_path / "in/a.parquet", pa.concat_tables([content.slice(0, 2000), content.slice(7, 1)]), 500)
        said = rf"row group 4: offset {rows[7].offset} of t-0 is a duplicate of row group 0"
    with pytest.raises(LogError, match=said):
        restore([tmp_path / "in"], tmp_path / "new")
    assert not list(tmp_path.glob("new*"))


def test_the_name_of_an_input_may_look_like_a_pattern(rows: list[Row], tmp_path: Path) -> None:
    for name in ("e[1]", "e1"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "a.parquet", table(rows[: 3 if name == "e1" else 2]))
    assert restore([tmp_path / "e[1]"], tmp_path / "new")["t", 0].log_end_offset == rows[1].offset + 1
    assert restore([tmp_path / "e[0-9]/*"], tmp_path / "other")["t", 0].log_end_offset == rows[2].offset + 1
    with pytest.raises(OptionError, match=r"kafka://h:1: a running cluster has no files; copy it with kwire log pull"):
        restore(["kafka://h:1"], tmp_path / "third")


def test_local_files_are_read_without_fsspec(rows: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # kwire[cli,arrow] exported Parquet files and asked for kwire[s3] to read them.
    monkeypatch.setitem(sys.modules, "fsspec", None)
    write(tmp_path / "in/topic=t/partition=0/a.parquet", table(rows[:2]).drop_columns(["topic", "partition"]))
    write(tmp_path / "in/_temporary/b.parquet", table(rows[2:3]))
    for number, given in enumerate([tmp_path / "in", f"file://{tmp_path}/in", tmp_path / "in/**/*.parquet"]):
        new = restore([given], tmp_path / f"new{number}")
        assert read_objects(new["t", 0]) == rows[: 3 if number == 2 else 2]  # as in Spark: patterns name hidden files
    with pytest.raises(MissingExtra, match=r"s3://bucket/in: needs fsspec, which is not installed; pip install"):
        restore(["s3://bucket/in"], tmp_path / "remote")


def test_rows_without_offsets_are_numbered_in_file_order(rows: list[Row], tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", table(rows[:1000], offset=None), 100)
    write(tmp_path / "a.parquet", table(rows[1000:], offset=None))
    new = restore([tmp_path / "b.parquet", tmp_path / "a.parquet"], tmp_path / "new")
    assert read_objects(new["t", 0]) == [row._replace(offset=i) for i, row in enumerate(rows)]


def test_renumbered_records_have_a_table_of_old_and_new_offsets(
    modern: LogDirectory, exported: Path, tmp_path: Path
) -> None:
    old = read_objects(modern["compacted", 0])
    new = restore(
        [exported / "compacted"], tmp_path / "new", new_offsets=True, offset_table=str(tmp_path / "offsets.parquet")
    )
    found = read_objects(new["compacted", 0])
    assert found == [row._replace(offset=i) for i, row in enumerate(old)]
    translated = {}
    for each in pq.read_table(tmp_path / "offsets.parquet").to_pylist():
        assert (each["topic"], each["partition"]) == ("compacted", 0)
        for i in range(each["count"]):
            translated[each["old_offset"] + i] = each["new_offset"] + i
    assert translated == {row.offset: i for i, row in enumerate(old)}
    with pytest.raises(OptionError, match="already exists"):
        restore([exported], tmp_path / "x", new_offsets=True, offset_table=str(tmp_path / "offsets.parquet"))


def test_column_types_are_converted_as_in_spark(rows: list[Row], tmp_path: Path) -> None:
    text = [row._replace(value=b"v%d" % i, headers=()) for i, row in enumerate(rows[:50])]
    content = table(
        text,
        value=pa.array([row.value.decode() for row in text if row.value], pa.large_string()),
        topic=pa.array(["t"] * 50).dictionary_encode(),
        partition=pa.array([0] * 50, pa.int64()),
        offset=pa.array([row.offset for row in text], pa.int32()),
        timestamp=pa.array([row.timestamp for row in text], pa.timestamp("ms")),
        headers=None,
    )
    assert read_objects(restore([write(tmp_path / "a.parquet", content)], tmp_path / "new")["t", 0]) == text
    bare = pa.table({"value": pa.array([b"a", None])})
    new = restore([write(tmp_path / "b.parquet", bare)], tmp_path / "bare", topic="named")
    assert read_objects(new["named", 0]) == [Row(0, -1, 0, None, b"a", ()), Row(1, -1, 0, None, None, ())]


def test_topic_ids_of_a_cluster_are_kept(rows: list[Row], tmp_path: Path) -> None:
    known = uuid.uuid4()
    path = write(tmp_path / "a.parquet", pa.concat_tables([table(rows[:9]), table(rows[:9], "other")]))
    new = restore([path], tmp_path / "new", topic_ids={"t": known}, node_id=5, cluster_id="abc")
    assert new["t", 0].topic_id == known
    assert new["other", 0].topic_id not in (known, None)
    assert new.meta_properties["node.id"] == "5"
    assert new.meta_properties["cluster.id"] == "abc"
    with pytest.raises(OptionError, match=r"topic id of 'other2': the files have no such topic .did you mean 'other'"):
        restore([path], tmp_path / "wrong", topic_ids={"other2": known})
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topic": pa.array(["../x"] * 9)}, "row group 0: topic name '../x'"),
        ({"topic": pa.array([".."] * 9)}, "topic name"),
        ({"topic": pa.array(["a/b"] * 9)}, "topic name"),
        ({"topic": pa.array(["", *["t"] * 8])}, "topic name"),
        ({"topic": pa.array([None, *["t"] * 8])}, "1 rows without topic"),
        ({"topic": pa.array([7] * 9)}, "a string and a number"),
        ({"partition": pa.array([-1] * 9)}, "partition -1"),
        ({"partition": pa.array([1 << 40] * 9)}, "partition 1099511627776"),
        ({"partition": pa.array(["x"] * 9)}, "a string and a number"),
        ({"offset": pa.array([-5, *range(8)])}, "offset -5 is negative"),
        ({"offset": pa.array([None, *range(8)])}, "with 1 nulls"),
        ({"offset": pa.array([0.5] * 9)}, "is double"),
        ({"value": None}, "no column 'value'"),
        ({"value": pa.array([1.5] * 9)}, "expected binary or string"),
        ({"timestamp": pa.array(["now"] * 9)}, "timestamp or int64"),
        ({"timestamp": pa.array([-99] * 9)}, "before 1970"),
    ],
    ids=lambda each: each if isinstance(each, str) else next(iter(each)),
)
def test_invalid_rows_are_rejected_without_leftover_files(
    changed: dict[str, Any], said: str, rows: list[Row], tmp_path: Path
) -> None:
    path = write(tmp_path / "in" / "a.parquet", table(rows[:9], **changed))
    with pytest.raises(KwireError, match=said.replace("(", r"\(")):
        restore([path], tmp_path / "deep" / ".." / "new")
    assert {each.name for each in tmp_path.iterdir()} <= {"in", "deep"}


def test_a_hive_path_cannot_escape_the_target(rows: list[Row], tmp_path: Path) -> None:
    path = write(tmp_path / "in/topic=..%2F..%2Fx/partition=0/a.parquet", table(rows[:5], topic=None, partition=None))
    with pytest.raises((LogError, OptionError)):
        restore([path], tmp_path / "new")
    content = table(rows[:5]).drop_columns(["topic"])
    with pytest.raises(LogError, match=r"topic name '\.\./\.\./x'"):
        restore([write(tmp_path / "in/topic=..%2F..%2Fx/b.parquet", content)], tmp_path / "new")


def test_invalid_files_are_reported(rows: list[Row], tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(LogError, match=r"bad\.parquet: cannot be read as Parquet"):
        restore([tmp_path / "bad.parquet"], tmp_path / "new")
    with pytest.raises(OptionError, match="no Parquet files"):
        restore([tmp_path / "nothing-*.parquet"], tmp_path / "new")
    good = write(tmp_path / "good.parquet", table(rows, headers=None))
    data = bytearray(good.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 2000] = bytes(2000)
    good.write_bytes(data)
    with pytest.raises(LogError, match=r"good\.parquet: row group 0|from offset"):
        restore([good], tmp_path / "new")
    one = write(tmp_path / "mix/a.parquet", table(rows[:5]))
    write(tmp_path / "mix/b.parquet", table(rows[5:9], offset=None))
    with pytest.raises(OptionError, match="no column 'offset'"):
        restore([one.parent], tmp_path / "new")


def test_an_existing_target_is_unchanged(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new/file").write_text("x")
    with pytest.raises(OptionError, match="not an empty directory"):
        restore([exported], tmp_path / "new")
    (tmp_path / "other.part").mkdir()
    with pytest.raises(OptionError, match="interrupted"):
        restore([exported], tmp_path / "other")


def test_an_interruption_at_any_step_leaves_no_directory_or_a_whole_one(rows: list[Row], tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.concat_tables([table(rows[:99]), table(rows[:99], number=1)]))
    counting = StoppingFileSystem()
    restore([path], tmp_path / "counted", file_system=counting)
    for stop_at in range(0, len(counting.steps), len(counting.steps) // 12):
        target, files = tmp_path / f"new{stop_at}", StoppingFileSystem(stop_at, torn=True)
        with pytest.raises(Stopped):
            restore([path], target, file_system=files)
        files.lose_unsynced(random.Random(stop_at))
        assert not target.exists() or read_objects(LogDirectory(target)["t", 1]) == rows[:99]


def test_a_full_disk_is_a_log_error(exported: Path, tmp_path: Path, limit_file_size: Callable[[], None]) -> None:
    with pytest.raises(LogError, match=r"orders-1: .*exceeds the maximum configured segment size"):
        restore([exported], tmp_path / "new", segment_bytes=100_000)
    limit_file_size()
    with pytest.raises(LogError, match=r"cannot be (written|resized)"):
        restore([exported], tmp_path / "new")
    assert not list(tmp_path.glob("new*"))
