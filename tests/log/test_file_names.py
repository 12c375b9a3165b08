"""Valid files of a directory: those that remain after a broker's startup."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.identifiers import MAX_OFFSET
from kwire.log import LogDirectory
from kwire.log.files.file_names import decide_files, explain_directory, parse_partition_directory, plain_segments
from tests.log.expected import read_arrow, read_objects

Copied = Callable[[str, str], Path]


def name(base: int, kind: str) -> str:
    return f"{base:020d}.{kind}"


def no_swap(name: str, base: int) -> int:
    raise AssertionError("not asked for without .swap logs")


def test_topic_and_partition_are_split_at_the_last_dash() -> None:
    assert parse_partition_directory("orders-0") == ("orders", 0)
    assert parse_partition_directory("a-b.c_d-12-7") == ("a-b.c_d-12", 7)
    assert parse_partition_directory("__cluster_metadata-0") == ("__cluster_metadata", 0)
    for other in ("orders", "-0", "orders-", "orders-x", "orders-99999999999", "orders--1x", "orders-٣"):
        assert parse_partition_directory(other) is None
    marked = "orders-0.0123456789abcdef0123456789abcdef-"
    assert [explain_directory(marked + mark) for mark in ("delete", "future", "stray")] == [
        "a log that is being deleted",
        "a replica that is being moved to this directory",
        "a replica that is not assigned to this broker",
    ]
    assert explain_directory("lost+found") == "not named like a partition"


def test_plain_segments_are_kept_in_offset_order() -> None:
    files = decide_files(
        [name(5, "log"), name(0, "log"), name(0, "index"), name(5, "snapshot"), "leader-epoch-checkpoint", "x.log"],
        no_swap,
    )
    assert [(s.base_offset, s.names) for s in files.segments] == [
        (0, {"log": name(0, "log"), "index": name(0, "index")}),
        (5, {"log": name(5, "log")}),
    ]
    assert files.snapshots == {5: name(5, "snapshot")}
    assert files.ignored == []


@pytest.mark.requirement("G-02")
def test_deleted_and_cleaned_files_are_ignored() -> None:
    names = [name(0, "log"), name(0, "log.cleaned"), name(5, "log.deleted"), name(5, "index.deleted")]
    files = decide_files(names, no_swap)
    assert [s.base_offset for s in files.segments] == [0]
    assert {each.name: each.reason for each in files.ignored} == {
        name(0, "log.cleaned"): "unfinished output of compaction or splitting",
        name(5, "log.deleted"): "marked for removal",
        name(5, "index.deleted"): "marked for removal",
    }


@pytest.mark.requirement("G-02")
def test_swap_files_of_an_unfinished_split_are_ignored() -> None:
    names = [name(0, "log"), name(5, "log.cleaned"), name(5, "index.swap"), name(9, "log.swap"), name(9, "log")]
    files = decide_files(names, no_swap)
    assert [(s.base_offset, s.names["log"]) for s in files.segments] == [(0, name(0, "log")), (9, name(9, "log"))]
    assert {each.name for each in files.ignored} == {name(5, "log.cleaned"), name(5, "index.swap"), name(9, "log.swap")}


@pytest.mark.requirement("G-03", "G-04", "X-35")
def test_a_swap_file_replaces_everything_in_its_range() -> None:
    asked = []

    def next_offset(swap: str, base: int) -> int:
        asked.append((swap, base))
        return 10

    names = [name(b, k) for b in (0, 5, 10) for k in ("log", "index", "snapshot")]
    files = decide_files([*names, name(0, "log.swap"), name(0, "index.swap")], next_offset)
    assert asked == [(name(0, "log.swap"), 0)]
    assert [(s.base_offset, s.names) for s in files.segments] == [
        (0, {"log": name(0, "log.swap"), "index": name(0, "index.swap")}),
        (10, {"log": name(10, "log"), "index": name(10, "index")}),
    ]
    assert files.snapshots == {10: name(10, "snapshot")}
    assert {each.reason for each in files.ignored} == {"replaced by a .swap file"}
    assert len(files.ignored) == 6


@pytest.mark.requirement("G-05")
def test_an_index_without_its_log_is_ignored() -> None:
    files = decide_files([name(0, "log"), name(7, "index"), name(7, "timeindex"), name(99, "snapshot")], no_swap)
    assert [s.base_offset for s in files.segments] == [0]
    assert {each.reason for each in files.ignored} == {"an index without its log"}


def test_a_number_beyond_int64_is_not_an_offset() -> None:
    files = decide_files(["99999999999999999999.log"], no_swap)
    assert files.segments == []
    assert files.ignored[0].reason == "the number in its name is not an offset"


@pytest.mark.slow
@pytest.mark.requirement("G-02", "G-03", "G-04", "X-35")
def test_the_log_reads_the_same_at_every_step_of_a_compaction(copied: Copied) -> None:
    """The cleaner merges segments 0 and 1 into one; a crash may leave any of these states."""
    data = copied("modern", "orders-0")
    folder = data / "orders-0"
    before = LogDirectory(data)["orders", 0]
    first, second = before.segments[:2]
    expected = read_objects(before)
    merged = Path(first.url).read_bytes() + Path(second.url).read_bytes()
    originals = [
        folder / f"{s.base_offset:020d}.{kind}" for s in (first, second) for kind in ("log", "index", "timeindex")
    ]

    def state() -> None:
        log = LogDirectory(data)["orders", 0]
        assert read_objects(log) == expected
        assert read_arrow(log) == expected

    cleaned, swap = folder / name(0, "log.cleaned"), folder / name(0, "log.swap")
    cleaned.write_bytes(merged[: len(merged) // 2])
    state()
    cleaned.write_bytes(merged)
    state()
    cleaned.rename(swap)
    state()
    for original in reversed(originals):
        original.rename(f"{original}.deleted")
        state()
    swap.rename(folder / name(0, "log"))
    state()
    assert len(LogDirectory(data)["orders", 0].segments) == len(before.segments) - 1


def test_directories_without_a_log_are_skipped_with_a_reason(copied: Copied) -> None:
    data = copied("modern", "ids-0")
    marked = "ids-0.0123456789abcdef0123456789abcdef-"
    for other in (marked + "delete", marked + "future", marked + "stray", "remote-log-index-cache"):
        shutil.copytree(data / "ids-0", data / other)
    directory = LogDirectory(data)
    assert list(directory) == [("ids", 0)]
    assert {each.name.removeprefix(marked) for each in directory.ignored} == {
        "delete", "future", "stray", "remote-log-index-cache",
    }  # fmt: skip


def test_directories_with_partition_names_but_no_kafka_files_are_not_logs(tmp_path: Path) -> None:
    # /etc has dbus-1 and polkit-1: two empty partitions, it seemed
    parent, tmp_path = tmp_path, tmp_path / "etc"
    tmp_path.mkdir()
    for name in ("dbus-1", "polkit-1"):
        (tmp_path / name).mkdir()
    (tmp_path / "polkit-1" / "rules.d").mkdir()
    (tmp_path / "dbus-1" / "system.conf").write_text("")
    with pytest.raises(LogError, match=r"no Kafka logs: .*; found dbus-1/, polkit-1/"):
        LogDirectory(tmp_path)
    with pytest.raises(LogError, match=rf"no Kafka logs: .*; found {tmp_path.name}/$"):  # nor a log directory to use
        LogDirectory(parent)
    (tmp_path / "polkit-1" / "00000000000000000000.log").touch()
    with pytest.raises(LogError, match=rf"; use {tmp_path}$"):
        LogDirectory(parent)
    assert list(LogDirectory(tmp_path)) == [("dbus", 1), ("polkit", 1)]
    (tmp_path / "polkit-1" / "00000000000000000000.log").unlink()
    (tmp_path / "meta.properties").write_text("version=1\n")  # what a broker reads, and takes each of them for a log
    assert list(LogDirectory(tmp_path)) == [("dbus", 1), ("polkit", 1)]


def test_a_directory_without_topics_is_empty_if_allowed(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="found an empty directory"):
        LogDirectory(tmp_path, may_be_empty=True)
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert not list(LogDirectory(tmp_path, may_be_empty=True))
    with pytest.raises(LogError, match=r"found meta\.properties"):
        LogDirectory(tmp_path)


def test_a_path_without_logs_reports_expected_and_found_files(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"no Kafka logs: expected a Kafka log directory .*; found an empty directory"):
        LogDirectory(tmp_path)
    for i in range(7):
        (tmp_path / f"file{i}.csv").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(LogError, match=r"found file0.csv, .*file4.csv and 3 more"):
        LogDirectory(tmp_path)
    with pytest.raises(LogError, match="not a segment: expected a Kafka log directory"):
        LogDirectory(tmp_path / "file0.csv")
    with pytest.raises(LogError, match="no such file or directory") as caught:
        LogDirectory(tmp_path / "missing")
    assert caught.value.file == str(tmp_path / "missing")


def test_a_missing_partition_lists_the_existing_ones(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    with pytest.raises(LogError, match=r"no partition 7 of topic 'orders'; available partitions: \[0, 1, 2\]"):
        directory["orders", 7]
    with pytest.raises(LogError, match=r"no partition '0' of topic 'orders'; available partitions: \[0, 1, 2\]"):
        directory["orders", "0"]  # type: ignore[index]
    for wrong in ("orders", "ab", ["orders", 0], ("orders",), ("orders", 0, 1), 7):
        with pytest.raises(LogError, match=r"expected a topic and a partition, such as logs\['orders', 0\], got "):
            directory[wrong]  # type: ignore[index]
    with pytest.raises(LogError, match=r"no partition 0 of topic 'ordres'; available topics: __cluster_metadata, "):
        directory["ordres", 0]
    assert ("orders", 7) not in directory
    assert list(directory) == sorted(directory)
    assert ("__cluster_metadata", 0) in directory
    assert directory.topics[:3] == ["__cluster_metadata", "__consumer_offsets", "__transaction_state"]


def test_the_largest_offset_is_the_largest_number_of_a_segment() -> None:
    for number, found in ((MAX_OFFSET - 1, True), (MAX_OFFSET, True), (MAX_OFFSET + 1, False)):
        names = [name(0, "log"), name(number, "log")]
        expected = [0, number] if found else [0]
        assert [base for base, _ in plain_segments(names) or ()] == expected
        assert [each.base_offset for each in decide_files(names, no_swap).segments] == expected
