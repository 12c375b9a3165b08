"""Repair: intact data is kept, damaged data quarantined, and the original unchanged until the end."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.errors import LogError
from kwire.log import LogDirectory
from kwire.log.files.damage import Kind
from kwire.log.files.producer_snapshot import parse_producer_snapshot
from kwire.maintenance.quarantine import Quarantine
from kwire.maintenance.repair import repair_in_place, repair_into
from kwire.maintenance.repair_mode import Mode
from kwire.maintenance.repair_plan import make_index_plan, make_plan
from kwire.maintenance.verify import verify_directory
from kwire.records.format.checksum import crc32c
from kwire.storage.directory_lock import DirectoryLock
from kwire.storage.file_system import FileSystem
from tests.log.expected import consumed, read_objects
from tests.log.test_missing_segments import make
from tests.maintenance.verify.damaging import LOGS, batches_of, copy_of, damage, flip, key_of, plan_for, tree
from tests.storage.faults import Stopped, StoppingFileSystem

Copied = Callable[[str, str], Path]
QUICK = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def real(data: Path) -> list[str]:
    """Return the damage below data, as text."""
    return [str(each) for each in LogDirectory(data).verify() if not each.is_harmless]


def put_back(quarantine: Path, manifest: dict, file: str) -> bytes:
    """Return the bytes of a quarantined entry, checked against the manifest."""
    entry = next(each for each in manifest["quarantined"] if each["file"] == file)
    data = (quarantine / file).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["size_bytes"], entry["sha256"])
    return data


@pytest.fixture
def damaged(kafka_logs: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the directory that damage.json describes."""
    return shutil.copytree(kafka_logs["unclean"] / "damaged" / "data", tmp_path / "data")


@pytest.mark.requirement("G-05", "G-08")
def test_salvage_loses_only_the_corrupt_batches(damaged: Path, tmp_path: Path) -> None:
    before, target = tree(damaged), tmp_path / "repaired"
    plan = plan_for(damaged)
    assert plan.left == []
    repair_into(plan, str(target))
    assert tree(damaged) == before
    assert real(target) == []
    old, new = LogDirectory(damaged), LogDirectory(target)
    lost = {("u-plain", 1): (550, 556), ("u-plain", 4): (203, 203)}
    for key, log in old.items():
        if key[0] == "__cluster_metadata":
            continue
        first, last = lost.get(key, (0, -1))
        name = f"{key[0]}-{key[1]}"
        kept = {k: v for k, v in batches_of(damaged, name).items() if not first <= k[0] <= last}
        assert batches_of(target, name) == kept
        assert new[key].topic_id == log.topic_id
    quarantine = tmp_path / "repaired.quarantine"
    manifest = json.loads((quarantine / "manifest.json").read_text())
    (cut,) = (e for e in manifest["quarantined"] if e["offsets"] == [203, 203])
    source = damaged / "u-plain-4" / "00000000000000000000.log"
    assert (cut["source"], cut["position"]) == (str(source), 29993)
    assert put_back(quarantine, manifest, cut["file"]) == source.read_bytes()[29993 : 29993 + 285]


@pytest.mark.requirement("G-07", "G-08", "G-11")
def test_truncate_gives_the_result_of_broker_recovery(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    """Compared with Kafka's consumer after the recovery; partition 4 was below the recovery point."""
    unclean, target = kafka_logs["unclean"], tmp_path / "repaired"
    repair_into(plan_for(unclean / "damaged" / "data", Mode.TRUNCATE), str(target))
    assert real(target) == []
    directory = LogDirectory(target)
    for partition in range(6):
        expected, _ = consumed(unclean / "expected" / "damaged-recovered", "u-plain", partition, "read_uncommitted")
        assert read_objects(directory["u-plain", partition]) == expected, partition
    assert directory["u-plain", 4].log_end_offset == 203
    assert directory["u-plain", 4].high_watermark == 203


@pytest.mark.parametrize(
    ("tail", "loses"),
    [(bytes(500), False), (None, False), (b"\xff" * 500, True)],
)
def test_an_incomplete_end_is_not_lost_records(tail: bytes | None, loses: bool, tmp_path: Path) -> None:
    """Zeros and a batch that was being written are removed too, but nobody had read them."""
    data = make(tmp_path / "data")
    path = data / "t-0" / f"{200:020}.log"
    whole = path.read_bytes()
    path.write_bytes(whole + (whole[:50] if tail is None else tail))
    (partition,) = plan_for(data).partitions
    (removed,) = partition.segments[-1].removed
    assert (removed.position, removed.size_bytes) == (len(whole), 50 if tail is None else 500)
    assert partition.loses_batches == loses
    flip(data / "t-0" / f"{0:020}.log", 100, 3)
    assert plan_for(data).partitions[0].loses_batches


def test_an_intact_directory_is_unchanged(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    source = copy_of(kafka_logs["modern"] / "data", "txn-0", tmp_path / "data")
    for checkpoint in source.glob("*-offset-checkpoint"):
        checkpoint.unlink()  # those of the other partitions
    plan = plan_for(source)
    assert plan.is_empty
    repair_into(plan, str(tmp_path / "copy"))
    assert tree(tmp_path / "copy") == tree(source)
    assert not (tmp_path / "copy.quarantine").exists()


def test_repair_is_idempotent_and_deterministic(damaged: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        repair_into(plan_for(damaged), str(tmp_path / name))
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert plan_for(tmp_path / "one").is_empty


def test_in_place_gives_the_same_result_and_quarantines_the_originals(damaged: Path, tmp_path: Path) -> None:
    before = tree(damaged)
    repair_into(plan_for(damaged), str(tmp_path / "new"))
    quarantine = repair_in_place(plan_for(damaged))
    after = tree(damaged)
    after.pop(".lock")
    assert after == tree(tmp_path / "new")
    changed = {name for name in before if after.get(name) != before[name]}
    manifest = json.loads(Path(quarantine.directory, "manifest.json").read_text())
    for name in changed:
        assert put_back(Path(quarantine.directory), manifest, name) == before[name]
    assert not list(damaged.parent.glob("*.part"))


@pytest.mark.sampled
@pytest.mark.parametrize("in_place", [False, True])
def test_an_interruption_at_any_step_loses_nothing_and_another_run_completes(
    in_place: bool, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    source = kafka_logs["unclean"] / "damaged" / "data"
    work = tmp_path / "work"

    def fresh() -> Path:
        shutil.rmtree(work, ignore_errors=True)
        data = copy_of(source, "u-plain-4", work / "data")
        flip(data / "u-plain-4" / "00000000000000000245.index", 3, 6)
        (data / "u-plain-4" / "00000000000000000543.snapshot").unlink()
        return data

    def run(data: Path, files: FileSystem) -> Quarantine:
        if in_place:
            return repair_in_place(plan_for(data), file_system=files)
        return repair_into(plan_for(data), str(work / "new"), file_system=files)

    data = fresh()
    before = tree(data)
    counting = StoppingFileSystem()
    run(data, counting)
    wanted = tree(data if in_place else work / "new")
    wanted.pop(".lock", None)
    assert len(counting.steps) > 30
    for stop_at in [*range(0, len(counting.steps) - 8, 9), *range(len(counting.steps) - 8, len(counting.steps))]:
        data = fresh()
        files = StoppingFileSystem(stop_at, torn=True)
        with pytest.raises(Stopped):
            run(data, files)
        now = tree(data)
        if not in_place:
            assert now == before
            assert not (work / "new").exists() or wanted.items() <= tree(work / "new").items()
            if (work / "new").exists() and not (work / "new" / ".kwire-repair").exists():
                continue
        kept = [tree(folder) for folder in work.glob("data.quarantine*")]
        for name, content in before.items():
            assert now.get(name) == content or any(each.get(name) == content for each in kept), name
        run(data, FileSystem())
        result = tree(data if in_place else work / "new")
        assert not [name for name in result if name.endswith((".repaired", ".part"))]
        for name, content in wanted.items():  # an old index may stand where it fits the new log too
            assert result[name] == content or name.endswith("index"), name
        damages = LogDirectory(data if in_place else work / "new").verify()
        assert [each for each in damages if each.topic and not each.is_harmless] == []


def test_an_existing_target_is_rejected(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()
    with pytest.raises(LogError, match="not an empty directory"):
        repair_into(plan_for(damaged), str(tmp_path / "new"))
    (tmp_path / "other.part").mkdir()
    (tmp_path / "other.part" / "mine").touch()
    with pytest.raises(LogError, match="not of an interrupted repair"):
        repair_into(plan_for(damaged), str(tmp_path / "other"))
    assert (tmp_path / "other.part" / "mine").exists()


def test_a_directory_locked_by_a_broker_is_unchanged(damaged: Path) -> None:
    plan, before = plan_for(damaged), tree(damaged)
    lock = DirectoryLock(str(damaged))
    try:
        with pytest.raises(LogError, match="already open in this process"):
            repair_in_place(plan)
    finally:
        lock.release()
    after = tree(damaged)
    after.pop(".lock")
    assert after == before


def test_a_single_partition_is_repaired_in_place(damaged: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "u-plain-4"
    shutil.copytree(damaged / "u-plain-4", alone)
    repair_in_place(plan_for(alone))
    assert real(alone) == []
    assert [path.name for path in alone.parent.iterdir()] == ["u-plain-4"]
    assert (tmp_path / "alone.quarantine-1" / "manifest.json").exists()


def test_the_quarantine_of_one_partition_is_not_in_the_log_directory(damaged: Path) -> None:
    """Kafka 3.9.1 loaded it as a partition of the topic u-plain-4.quarantine, then renamed it to -stray."""
    before = {path.name for path in damaged.iterdir() if path.is_dir()}
    quarantine = repair_in_place(plan_for(damaged / "u-plain-4"))
    assert {path.name for path in damaged.iterdir() if path.is_dir()} == before
    assert Path(quarantine.directory) == damaged.with_name("data.quarantine-1")
    again = repair_in_place(plan_for(damaged / "u-plain-1"))
    assert Path(again.directory) == damaged.with_name("data.quarantine-2")
    assert list(LogDirectory(damaged).topics) == ["__cluster_metadata", "__transaction_state", "u-plain", "u-txn"]


def test_a_target_inside_a_log_directory_is_rejected(damaged: Path) -> None:
    with pytest.raises(LogError, match="inside a broker's log directory"):
        repair_into(plan_for(damaged / "u-plain-4"), str(damaged / "fixed-0"))


@pytest.mark.parametrize("alone", [False, True])
def test_the_topic_id_is_read_from_the_metadata_log(
    alone: bool, kafka_logs: dict[str, Path], copied: Copied, tmp_path: Path
) -> None:
    """It is the topic's only partition in the directory, so only the metadata log has the id."""
    data = copied("modern", "orders-0")
    shutil.copytree(kafka_logs["modern"] / "data" / "__cluster_metadata-0", data / "__cluster_metadata-0")
    file = data / "orders-0" / "partition.metadata"
    wanted = file.read_bytes()
    file.write_bytes(b"\0garbage")
    plan = plan_for(data / "orders-0" if alone else data)
    assert "partition.metadata" not in {each.name for each in plan.left}
    repair_in_place(plan)
    assert file.read_bytes() == wanted


@pytest.mark.slow
def test_an_archive_is_repaired_into_a_directory(damaged: Path, kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    """The records are those that Kafka's consumer got after the broker's own recovery."""
    shutil.make_archive(str(tmp_path / "data"), "zip", damaged)
    directory = LogDirectory(f"zip://::{tmp_path}/data.zip")
    plan = make_plan(directory, verify_directory(directory), Mode.TRUNCATE)
    repair_into(plan, str(tmp_path / "from-archive"))
    served = kafka_logs["unclean"] / "expected" / "damaged-recovered"
    repaired = LogDirectory(tmp_path / "from-archive")
    for partition in range(6):
        expected, _ = consumed(served, "u-plain", partition, "read_uncommitted")
        assert read_objects(repaired["u-plain", partition]) == expected, partition
    assert real(tmp_path / "from-archive") == []
    with pytest.raises(LogError, match="not a local directory"):
        repair_in_place(plan)


def test_a_symlinked_partition_is_not_changed_in_place(damaged: Path, tmp_path: Path) -> None:
    (damaged / "u-plain-4").rename(tmp_path / "elsewhere")
    (damaged / "u-plain-4").symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path / "elsewhere")
    with pytest.raises(LogError, match="symbolic link"):
        repair_in_place(plan_for(damaged))
    assert tree(tmp_path / "elsewhere") == before


class FullDisk(FileSystem):
    """Fails to copy and create after some files, like a full disk."""

    left = 5

    def open(self, path: str, *, create: bool = False):  # type: ignore[no-untyped-def]
        if create:
            self.left -= 1
            if self.left < 0:
                raise LogError("cannot be created: No space left on device", path)
        return super().open(path, create=create)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_full_disk_leaves_the_original_unchanged(in_place: bool, damaged: Path, tmp_path: Path) -> None:
    plan, before = plan_for(damaged), tree(damaged)

    def run() -> Quarantine:
        if in_place:
            return repair_in_place(plan, file_system=FullDisk())
        return repair_into(plan, str(tmp_path / "new"), file_system=FullDisk())

    with pytest.raises(LogError, match="No space left"):
        run()
    after = tree(damaged)
    after.pop(".lock", None)
    assert after == before


def test_a_file_that_disappears_is_an_error_and_the_original_is_kept(damaged: Path, tmp_path: Path) -> None:
    plan = plan_for(damaged)
    (damaged / "u-plain-4" / "00000000000000000000.log").unlink()
    before = tree(damaged)
    with pytest.raises(LogError, match=r"u-plain-4/0{20}\.log: cannot be opened: No such file"):
        repair_into(plan, str(tmp_path / "new"))
    assert tree(damaged) == before
    assert not (tmp_path / "new").exists()


def test_a_wrong_offset_or_leader_epoch_is_repaired(copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    segment = LogDirectory(data)["orders", 0].segments[0]
    headers = list(segment.headers())
    del wanted[headers[8].stored_offset, headers[8].last_offset]
    for row, at in ((5, 4), (7, 15), (8, 70), (10, 15), (12, 7)):
        flip(Path(segment.url), headers[row].position + at, 3)
    repair_into(plan_for(data), str(tmp_path / "new"))
    assert batches_of(tmp_path / "new", "orders-0") == wanted


@pytest.mark.requirement("F-10", "F-20", "F-30", "F-40", "G-05", "G-13")
@pytest.mark.parametrize("name", ["txn-0", "ids-0", "orders-1"])
def test_indexes_and_snapshots_are_rebuilt_identically(name: str, copied: Copied, tmp_path: Path) -> None:
    """All files of a log are rebuilt. Snapshots equal Kafka's bytes; indexes may have another interval."""
    data = copied("modern", name)
    folder = data / name
    bases = sorted(folder.glob("*.log"))[1:]
    snapshots = {base.with_suffix(".snapshot").name: base.with_suffix(".snapshot").read_bytes() for base in bases}
    aborted = {file.name: file.read_bytes() for file in folder.glob("*.txnindex")}
    for file in [*folder.glob("*index"), *(folder / each for each in list(snapshots)[1:])]:
        file.unlink()
    logs = {file.name: file.read_bytes() for file in folder.glob("*.log")}
    directory = LogDirectory(data)
    plan = make_index_plan(directory, verify_directory(directory))
    assert [each for each in plan.left if each.topic] == []
    repair_in_place(plan)
    assert [each for each in LogDirectory(data).verify() if each.topic] == []
    assert {file.name: file.read_bytes() for file in folder.glob("*.log")} == logs
    assert {file.name: file.read_bytes() for file in folder.glob("*.txnindex") if file.stat().st_size} == {
        file: content for file, content in aborted.items() if content
    }
    for file, content in snapshots.items():
        again = {each.producer_id: each for each in parse_producer_snapshot((folder / file).read_bytes())}
        for state in parse_producer_snapshot(content):
            assert again[state.producer_id] == state


def test_index_does_not_change_damaged_logs(damaged: Path) -> None:
    directory = LogDirectory(damaged)
    plan = make_index_plan(directory, verify_directory(directory))
    assert {each.name for each in plan.touched} == {"u-plain-2", "u-plain-3", "u-txn-0"}
    assert all(each.file.endswith(".log") for each in plan.left)


@pytest.mark.slow
@QUICK
@given(st.sampled_from(LOGS), st.integers(0, 2**32), st.booleans())
def test_random_damage_is_repaired_and_intact_records_are_kept(
    kafka_logs: dict[str, Path], tmp_path: Path, which: tuple[str, str], seed: int, truncates: bool
) -> None:
    archive, name = which
    source = kafka_logs[archive] / "data"
    data = copy_of(source, name, tmp_path / "data")
    chance = random.Random(seed)
    files = [f for f in sorted((data / name).iterdir()) if f.stat().st_size and f.name != "partition.metadata"]
    for file in chance.sample(files, min(len(files), 3)):
        damage(file, chance)
    before = tree(data)
    original = batches_of(source, name)
    logs = [content for file, content in before.items() if file.endswith(".log")]
    whole = {offsets for offsets, batch in original.items() if any(batch in log for log in logs)}
    target = tmp_path / "new"
    for old in (target, Path(f"{target}.quarantine")):
        shutil.rmtree(old, ignore_errors=True)
    plan = plan_for(data, Mode.TRUNCATE if truncates else Mode.SALVAGE)
    repair_into(plan, str(target))
    assert tree(data) == before
    left = {(os.path.basename(each.file), each.kind) for each in plan.left}
    found = LogDirectory(target)[key_of(name)].verify()
    assert [d for d in found if not d.is_harmless and (os.path.basename(d.file), d.kind) not in left] == []
    if not truncates:
        got = batches_of(target, name)
        assert {offsets: got.get(offsets) for offsets in whole} == {offsets: original[offsets] for offsets in whole}


def test_damage_directly_behind_a_removed_batch_is_left(tmp_path: Path) -> None:
    """Removing a batch repairs nothing of the next one."""
    data = make(tmp_path / "data")
    path = data / "t-0" / f"{200:020}.log"
    wrong = list(LogDirectory(data)["t", 0].segments[-1].headers())[4]
    flip(path, wrong.position - 1, 3)
    blob = bytearray(path.read_bytes())
    start, end = wrong.position, wrong.position + wrong.size_bytes
    blob[start + 35 : start + 43] = (1).to_bytes(8, "big")  # its largest timestamp
    blob[start + 17 : start + 21] = crc32c(bytes(blob[start + 21 : end])).to_bytes(4, "big")
    path.write_bytes(blob)
    assert [(each.kind, each.position) for each in plan_for(data).left] == [(Kind.TIMESTAMPS, start)]
