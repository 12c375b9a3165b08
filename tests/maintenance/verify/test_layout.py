"""Duplicate, misnamed and missing segments: every valid record is found."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.log import Damage, LogDirectory, Severity
from kwire.log.files.damage import Kind
from kwire.maintenance.repair import repair_in_place, repair_into
from kwire.maintenance.repair_mode import Mode
from tests.maintenance.verify.damaging import batches_of, flip, key_of, plan_for, tree
from tests.storage.faults import Stopped, StoppingFileSystem

Copied = Callable[[str, str], Path]
ORDERS = (0, 844, 2238, 3953, 5132, 6304, 7015)  # base offsets of orders-0's segments, and its end


def log_file(folder: Path, base: int) -> Path:
    return folder / f"{base:020d}.log"


def with_kinds(folder: Path, base: int, number: int, all_kinds: bool) -> list[tuple[Path, Path]]:
    """Return (file of a segment, name with another base offset) for the log and its indexes."""
    kinds = ("log", "index", "timeindex") if all_kinds else ("log",)
    return [tuple(log_file(folder, n).with_suffix(f".{kind}") for n in (base, number)) for kind in kinds]  # type: ignore[misc]


def found_in(data: Path, name: str) -> list[Damage]:
    """Return the damage of one partition, without notes."""
    return [each for each in LogDirectory(data).verify() if not each.is_harmless and each.key == key_of(name)]


def check_repaired(data: Path, name: str, wanted: dict[tuple[int, int], bytes], target: Path) -> None:
    """Repair to a directory and in place; check that both give the same undamaged log with every expected batch."""
    before = tree(data)
    repair_into(plan_for(data), str(target))
    assert tree(data) == before
    assert batches_of(target, name) == wanted
    repair_in_place(plan_for(data))
    assert batches_of(data, name) == wanted
    logs = [{file.name: file.read_bytes() for file in (where / name).glob("*.log*")} for where in (target, data)]
    assert logs[0] == logs[1]
    for where in (target, data):
        assert plan_for(where).is_empty
        assert [each for each in found_in(where, name) if each.kind is not Kind.MISSING_RECORDS] == []


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "with_indexes"), [(845, False), (843, True), (5000, False), (9000, True)])
def test_a_duplicate_segment_is_one_finding_without_loss(
    number: int, with_indexes: bool, copied: Copied, tmp_path: Path
) -> None:
    """The valid segment was quarantined and the copy truncated at its name's offset: 15 records were lost."""
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    for source, target in with_kinds(data / "orders-0", 844, number, with_indexes):
        shutil.copy2(source, target)
    (found,) = found_in(data, "orders-0")
    assert (found.kind, found.name) == (Kind.SEGMENT, f"{number:020d}.log")
    assert "copy of 00000000000000000844.log" in found.cause
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


@pytest.mark.parametrize("mode", list(Mode))
def test_batches_intact_only_in_the_copy_are_restored_from_it(mode: Mode, copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    true, copy = (log_file(data / "orders-0", base) for base in (844, 845))
    shutil.copy2(true, copy)
    headers = list(LogDirectory(data)["orders", 0].segments[1].headers())
    flip(true, headers[3].position + 70, 2)
    flip(copy, headers[7].position + 70, 2)
    repair_into(plan_for(data, mode), str(tmp_path / "new"))
    assert batches_of(tmp_path / "new", "orders-0") == wanted


def test_the_longer_of_two_copies_keeps_the_right_name(copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    true = log_file(data / "orders-0", 844)
    shutil.copy2(true, log_file(data / "orders-0", 845))
    true.write_bytes(true.read_bytes()[:50_000])
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "with_indexes"), [(900, True), (700, False), (1, True)])
def test_a_misnamed_segment_is_renamed(number: int, with_indexes: bool, copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    for source, target in with_kinds(data / "orders-0", 844, number, with_indexes):
        source.rename(target)
    (found,) = found_in(data, "orders-0")
    assert (found.kind, found.name) == (Kind.SEGMENT, f"{number:020d}.log")
    assert "00000000000000000844.log" in found.cause
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


@pytest.mark.sampled
@pytest.mark.parametrize(("archive", "name"), [("legacy", "v1-2"), ("legacy", "v0-0"), ("modern", "orders-1")])
def test_two_segments_with_swapped_names_are_renamed(archive: str, name: str, copied: Copied, tmp_path: Path) -> None:
    data = copied(archive, name)
    wanted = batches_of(data, name)
    one, two = sorted((data / name).glob("*.log"))[1:3]
    one.rename(data / "held")
    two.rename(one)
    (data / "held").rename(two)
    assert {each.kind for each in found_in(data, name)} == {Kind.SEGMENT}
    check_repaired(data, name, wanted, tmp_path / "new")


@pytest.mark.slow
def test_renaming_segments_survives_an_interruption_at_any_step(copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "ids-0")
    wanted = batches_of(data, "ids-0")
    one, two = sorted((data / "ids-0").glob("*.log"))
    one.rename(data / "held")
    two.rename(one)
    (data / "held").rename(two)
    shutil.copytree(data, tmp_path / "before")
    counting = StoppingFileSystem()
    repair_in_place(plan_for(data), file_system=counting)
    assert batches_of(data, "ids-0") == wanted
    renames = [i for i, step in enumerate(counting.steps) if step.startswith("rename")]
    assert len(renames) > 4
    for stop_at in sorted({step + after for step in renames for after in (0, 1)} - {len(counting.steps)}):
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "before", data)
        with pytest.raises(Stopped):
            repair_in_place(plan_for(data), file_system=StoppingFileSystem(stop_at))
        repair_in_place(plan_for(data))
        assert batches_of(data, "ids-0") == wanted, counting.steps[stop_at]


@pytest.mark.parametrize("base", ORDERS[1:-2])
def test_a_missing_segment_is_a_loss(base: int, copied: Copied) -> None:
    data = copied("modern", "orders-0")
    log_file(data / "orders-0", base).unlink()
    end = ORDERS[ORDERS.index(base) + 1]
    (found,) = found_in(data, "orders-0")
    assert (found.kind, found.offsets, found.severity) == (
        Kind.MISSING_RECORDS,
        (base, end - 1),
        Severity.LOSES_RECORDS,
    )
    assert log_file(Path(), base).name in found.cause  # its index is still there


def test_the_metadata_log_decides_whether_a_gap_is_a_loss(
    kafka_logs: dict[str, Path], copied: Copied, tmp_path: Path
) -> None:
    """Without it a gap is a note; a compacted topic always has gaps."""
    data = copied("modern", "orders-0")
    for file in (data / "orders-0").glob("00000000000000002238.*"):
        file.unlink()

    def gaps(where: Path, topic: str) -> list[tuple[Severity, tuple[int, int] | None]]:
        found = [each for each in LogDirectory(where).verify() if each.topic == topic]
        return [(each.severity, each.offsets) for each in found if each.kind is Kind.MISSING_RECORDS]

    assert gaps(data, "orders") == [(Severity.NOTE, (2238, 3952))]
    shutil.copytree(kafka_logs["modern"] / "data" / "__cluster_metadata-0", data / "__cluster_metadata-0")
    assert gaps(data, "orders") == [(Severity.LOSES_RECORDS, (2238, 3952))]
    assert gaps(data / "orders-0", "orders") == [(Severity.LOSES_RECORDS, (2238, 3952))]
    shutil.copytree(kafka_logs["modern"] / "data" / "compacted-1", data / "compacted-1")
    assert gaps(data, "compacted") == []
    (data / "cleaner-offset-checkpoint").unlink()
    assert gaps(data, "compacted") == []
    shutil.rmtree(data / "__cluster_metadata-0")
    assert [severity for severity, _ in gaps(data, "compacted")] == [Severity.NOTE]


@pytest.mark.parametrize(
    ("name", "leaves_empty_segment"),
    [("2238.log", True), ("00000000000000002238.log.bak", False), ("copy-of.log", False)],
)
def test_a_segment_with_an_ignored_name_is_found_and_restored(
    name: str, leaves_empty_segment: bool, copied: Copied, tmp_path: Path
) -> None:
    """Kafka 3.9.1 makes an empty segment 2238 when it starts on a file 2238.log."""
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    log_file(data / "orders-0", 2238).rename(data / "orders-0" / name)
    if leaves_empty_segment:
        for kind in ("log", "index", "timeindex"):
            log_file(data / "orders-0", 2238).with_suffix(f".{kind}").write_bytes(b"")
    (found,) = found_in(data, "orders-0")
    assert (found.name, found.kind, found.offsets) == (name, Kind.SEGMENT, (2238, 3952))
    assert found.severity is Severity.LOSES_RECORDS
    assert "00000000000000002238.log" in found.hint
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


@pytest.mark.parametrize("base", [0, 6304])
def test_the_first_and_last_misnamed_segments_are_found(base: int, copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    log_file(data / "orders-0", base).rename(data / "orders-0" / f"{base:020d}.log.bak")
    found = found_in(data, "orders-0")
    assert [each.name for each in found if each.kind is Kind.SEGMENT] == [f"{base:020d}.log.bak"]
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


@pytest.mark.parametrize("base", [0, 843, 900])
def test_an_empty_segment_inside_another_is_removed(base: int, copied: Copied, tmp_path: Path) -> None:
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    if base == 0:
        log_file(data / "orders-0", 0).rename(log_file(data / "orders-0", 5))
    log_file(data / "orders-0", base).touch()
    assert {each.kind for each in found_in(data, "orders-0")} == {Kind.SEGMENT}
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


def test_an_offset_too_large_for_the_active_segment_is_damage(copied: Copied, tmp_path: Path) -> None:
    """Rebuilding its index failed with an internal error."""
    data = copied("modern", "orders-0")
    wanted = batches_of(data, "orders-0")
    segment = LogDirectory(data)["orders", 0].segments[-1]
    last = list(segment.headers())[-1]
    flip(Path(segment.url), last.position + 3, 1)
    del wanted[last.stored_offset, last.last_offset]
    check_repaired(data, "orders-0", wanted, tmp_path / "new")


def test_a_file_with_batches_of_the_log_is_not_a_loss(copied: Copied) -> None:
    data = copied("modern", "orders-0")
    shutil.copy2(log_file(data / "orders-0", 2238), data / "orders-0" / "saved.bak")
    notes = [each for each in LogDirectory(data).verify() if each.name == "saved.bak"]
    assert [each.severity for each in notes] == [Severity.NOTE]
    assert found_in(data, "orders-0") == []
    shutil.copy2(log_file(data / "orders-0", 2238), data / "orders-0" / "2500.log")
    (found,) = found_in(data, "orders-0")
    assert (found.name, found.severity) == ("2500.log", Severity.MISLEADS)


def test_a_compacted_log_does_not_restore_old_files(kafka_logs: dict[str, Path], copied: Copied) -> None:
    data = copied("modern", "compacted-0")
    base = log_file(data / "compacted-0", 1547)
    base.rename(f"{base}.bak")
    assert {each.kind for each in found_in(data, "compacted-0")} <= {Kind.LEFTOVER}
    assert not [each for each in plan_for(data).touched if each.gone]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_damage_in_duplicate_or_misnamed_files_is_found(seed: int, copied: Copied, tmp_path: Path) -> None:
    """Every batch that is intact in some file is in the repaired log."""
    data = copied("modern", "orders-0")
    folder = data / "orders-0"
    wanted = batches_of(data, "orders-0")
    draw = random.Random(seed)
    base = draw.choice(ORDERS[1:-2])
    other = draw.choice([number for number in range(base - 300, base + 300) if number not in ORDERS])
    if draw.random() < 0.5:
        shutil.copy2(log_file(folder, base), log_file(folder, other))
    else:
        log_file(folder, base).rename(log_file(folder, other))
    for file in sorted(folder.glob("*.log")):
        for _ in range(draw.randrange(3)):
            data_bytes = bytearray(file.read_bytes())
            at = draw.randrange(len(data_bytes) - 300)
            data_bytes[at : at + 40] = draw.randbytes(40)
            file.write_bytes(data_bytes)
    logs = [file.read_bytes() for file in folder.glob("*.log")]
    whole = {offsets: batch for offsets, batch in wanted.items() if any(batch in log for log in logs)}
    repair_into(plan_for(data), str(tmp_path / "new"))
    assert batches_of(tmp_path / "new", "orders-0") == whole


def test_a_name_inside_the_segment_before_it_is_not_its_base_offset(copied: Copied) -> None:
    """The last offset of that segment is 843."""
    data = copied("modern", "orders-0")
    log_file(data / "orders-0", 844).rename(data / "orders-0" / f"{843:020d}.log.bak")
    (found,) = [each for each in found_in(data, "orders-0") if each.kind is Kind.SEGMENT]
    assert found.hint.startswith("rename it to 00000000000000000844.log")
