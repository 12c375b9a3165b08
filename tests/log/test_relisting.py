"""Reading and verifying next to a running broker: files change after they were listed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.log import LogDirectory
from kwire.log.files.damage import Kind
from kwire.log.reading.partition_log import PartitionLog
from kwire.maintenance.export import export_logs
from kwire.maintenance.reindex import rebuild_indexes
from kwire.maintenance.statistics import count_topics
from kwire.maintenance.verify import verify_directory
from kwire.storage.file_system import FileSystem
from kwire.storage.store import Entry, LocalStore, Store
from tests.maintenance.verify.damaging import flip

Copied = Callable[[str, str], Path]
Change = Callable[[], None]
ROLLED = 7015 - 6304  # records of the last segment


class ChangingStore(LocalStore):
    """A store that changes a directory right after it is listed, once for each change."""

    def __init__(self, root: str, changes: list[Change]) -> None:
        super().__init__(root)
        self.changes = changes

    def list(self, path: str) -> list[Entry]:
        found = super().list(path)
        if self.changes and path:
            self.changes.pop(0)()
        return found


def segment_files(folder: Path, base: int) -> list[Path]:
    return [file for kind in ("log", "index", "timeindex") for file in [folder / f"{base:020d}.{kind}"]]


def retention(folder: Path, *bases: int) -> Change:
    """Closed segments are deleted."""

    def change() -> None:
        for base in bases:
            for file in segment_files(folder, base):
                file.unlink()

    return change


def compaction(folder: Path, first: int, second: int) -> Change:
    """Two segments are merged under the first one's name, without loss of records."""

    def change() -> None:
        one, two = (folder / f"{base:020d}.log" for base in (first, second))
        merged = folder / f"{first:020d}.log.swap"
        merged.write_bytes(one.read_bytes() + two.read_bytes())
        merged.rename(one)
        for file in segment_files(folder, second):
            file.unlink()
        bases = sorted(int(file.stem) for file in folder.glob("*.log"))
        rebuild_indexes(FileSystem(), str(folder), bases, indexes={first}, snapshots=set(), leader_epochs=False)

    return change


def rolled(folder: Path, base: int, keep: Path) -> Change:
    """Remove the last segment; the change restores it, like a segment that was rolled since."""
    keep.mkdir()
    for file in segment_files(folder, base):
        shutil.move(file, keep)

    def change() -> None:
        for file in keep.iterdir():
            shutil.move(file, folder)

    return change


CHANGES: dict[str, Callable[[Path, Path], list[Change]]] = {
    "retention": lambda folder, keep: [retention(folder, 0)],
    "retention twice": lambda folder, keep: [retention(folder, 0), retention(folder, 844, 2238)],
    "compaction": lambda folder, keep: [compaction(folder, 844, 2238)],
    "roll and retention": lambda folder, keep: [rolled(folder, 6304, keep), retention(folder, 0)],
    "compaction and retention": lambda folder, keep: [compaction(folder, 2238, 3953), retention(folder, 0, 844)],
}


@pytest.fixture(params=CHANGES)
def changing(request: pytest.FixtureRequest, copied: Copied, tmp_path: Path) -> tuple[PartitionLog, Path]:
    """A log whose directory changes after its next listings, and that directory."""
    data = copied("modern", "orders-0")
    for file in data.glob("*checkpoint"):
        file.unlink()  # of the partitions that were not copied
    changes = CHANGES[request.param](data / "orders-0", tmp_path / "kept")
    return PartitionLog(ChangingStore(str(data), changes), "orders-0", "orders", 0), data


def offsets(log: PartitionLog) -> list[int]:
    return log.read_arrow(columns=["offset"]).read_all().column("offset").to_pylist()


def test_a_log_that_changes_during_a_read_is_not_damaged(changing: tuple[PartitionLog, Path]) -> None:
    """Regression: 54 lost records were reported for a running Kafka in 7 of 8 runs."""
    log, _ = changing
    assert [str(each) for each in log.verify() if not each.is_harmless] == []


def test_damage_is_found_in_a_log_that_changes_during_a_read(copied: Copied) -> None:
    data = copied("modern", "orders-0")
    flip(data / "orders-0" / f"{5132:020d}.log", 500, 1)
    changes = [retention(data / "orders-0", 0), retention(data / "orders-0", 844)]
    log = PartitionLog(ChangingStore(str(data), changes), "orders-0", "orders", 0)
    (found,) = (each for each in log.verify() if not each.is_harmless)
    assert (found.kind, found.name, found.position) == (Kind.CHECKSUM, f"{5132:020d}.log", 0)


def test_remaining_records_are_read_once(changing: tuple[PartitionLog, Path]) -> None:
    log, data = changing
    got = offsets(log)
    left = offsets(LogDirectory(data)["orders", 0])
    assert got == sorted(set(got))
    assert set(left) - set(range(7015 - ROLLED, 7015)) <= set(got)  # a segment rolled later is for the next listing


def test_a_report_counts_the_remaining_records(changing: tuple[PartitionLog, Path]) -> None:
    log, data = changing
    (topic,) = count_topics([log], lambda amount: None)
    (wanted,) = count_topics([LogDirectory(data)["orders", 0]], lambda amount: None)
    assert topic.unread == []
    assert topic.records in (7015, wanted.records, wanted.records - ROLLED)  # 7015: all were read before the changes
    assert topic.records == topic.partitions[0].records == sum(each.records for each in topic.codecs.values())


def test_an_export_contains_the_remaining_records(changing: tuple[PartitionLog, Path], tmp_path: Path) -> None:
    log, data = changing
    (done,) = export_logs([log], str(tmp_path / "out"))
    assert done.records >= len(offsets(LogDirectory(data)["orders", 0])) - ROLLED


class SwappingStore(ChangingStore):
    """A store that changes a directory right after a reader lists it."""

    def list_files(self, path: str, measured: tuple[str, ...]) -> dict[str, Entry | None]:
        found = super().list_files(path, measured)
        if self.changes:
            self.changes.pop(0)()
        return found


def test_segments_that_are_swapped_in_during_a_read_are_read(copied: Copied) -> None:
    """A new listing has the `.swap` file, which then gets its final name."""
    data = copied("modern", "orders-0")
    store = SwappingStore(str(data), [])
    reader = PartitionLog(store, "orders-0", "orders", 0).read_arrow(columns=["offset"], max_bytes=1000)
    read = reader.read_next_batch().column("offset").to_pylist()
    one, two = (data / "orders-0" / f"{base:020d}.log" for base in (844, 2238))
    swap = one.with_suffix(".log.swap")
    swap.write_bytes(one.read_bytes() + two.read_bytes())
    one.unlink()
    two.unlink()
    store.changes = [lambda: swap.rename(one) and None]
    read += reader.read_all().column("offset").to_pylist()
    assert store.changes == []
    assert read == offsets(LogDirectory(data)["orders", 0])


def test_a_topic_deleted_meanwhile_is_not_damage(copied: Copied) -> None:
    data = copied("modern", "orders-0")
    shutil.copytree(data / "orders-0", data / "kept-0")
    directory = LogDirectory(data)
    (data / "orders-0").rename(data / f"orders-0.{'ab' * 16}-delete")
    found = verify_directory(directory).damages
    assert [str(each) for each in found if not each.is_harmless and each.topic == "orders"] == []
    assert [topic.topic for topic in count_topics(list(directory.values()), lambda amount: None)] == ["kept"]


class GhostStore(LocalStore):
    """A store that lists a file that cannot be opened."""

    def list(self, path: str) -> list[Entry]:
        ghost = Entry(name=f"{844:020d}.log", is_directory=False, size_bytes=1000)
        return sorted([*super().list(path), *([ghost] if path else [])], key=lambda entry: entry.name)

    def list_files(self, path: str, measured: tuple[str, ...]) -> dict[str, Entry | None]:
        return Store.list_files(self, path, measured)


def test_a_listed_file_that_cannot_be_opened_is_an_error(copied: Copied) -> None:
    data = copied("modern", "orders-0")
    (data / "orders-0" / f"{844:020d}.log").unlink()
    log = PartitionLog(GhostStore(str(data)), "orders-0", "orders", 0)
    with pytest.raises(LogError, match="No such file"):
        offsets(log)
    with pytest.raises(LogError, match="No such file"):
        count_topics([log], lambda amount: None)
    assert [each.kind for each in log.verify() if each.name == f"{844:020d}.log"] == [Kind.UNREADABLE]


@pytest.mark.parametrize("removed", [1, 2, None])
def test_segments_removed_from_the_end_during_a_read_are_lost(copied: Copied, removed: int | None) -> None:
    """Not as with retention, which removes the oldest ones: a reader would miss the newest records, and not know it."""
    data = copied("modern", "orders-0")
    log = LogDirectory(data)["orders", 0]
    reader = log.read_arrow(columns=["offset"], max_bytes=1000)
    assert len(log.segments) > 3
    assert reader.read_next_batch()
    for segment in log.segments[-removed:] if removed else log.segments:
        for file in (data / "orders-0").glob(f"{segment.base_offset:020d}.*"):
            file.unlink()
    with pytest.raises(LogError, match=r"cannot be opened|the log ends at offset 0, and ended at 7015 or above"):
        reader.read_all()
