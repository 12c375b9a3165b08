"""A full disk ends every command with exit code 2, an error that names the file, and nothing that looks complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from json import dumps
from pathlib import Path

import pytest
from tests.log.writing import NOW, record
from tests.maintenance.verify.damaging import flip

from kwire.cli.main import run
from kwire.errors import OptionError
from kwire.log import LogDirectory
from kwire.maintenance.new_directory import NewDirectory
from kwire.records import write_batch
from kwire.storage.file_system import FileSystem
from kwire.target_paths import write_whole

ROOT = Path(__file__).parents[2]
FULL = ("No space left on device", "not enough disk space")
RECORDS = 300


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; `fill` leaves some bytes of it."""
    target = tmp_path / "disk"
    target.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", target]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs requires root")
    yield target
    subprocess.run(["umount", "-l", target], check=True)


def fill(disk: Path, left_bytes: int) -> None:
    """Use all space of a disk except left_bytes."""
    with (disk / "filler").open("wb") as file:
        file.write(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - left_bytes))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of three segments with 100 kB each that does not compress."""
    path = tmp_path_factory.mktemp("source") / "data"
    new = NewDirectory(FileSystem(), str(path), now_ms=NOW, segment_bytes=1 << 20)
    new.create()
    log = new.open(("t", 0), 0)
    for segment in range(0, RECORDS, 100):
        log.begin_segment(segment)
        for base in range(segment, segment + 100, 10):
            keyed = [record(os.urandom(500).hex().encode(), NOW + base, b"%d" % n) for n in range(base, base + 10)]
            log.append(write_batch(keyed, base_offset=base))
    new.finish(("t", 0), RECORDS)
    new.publish()
    return path


@pytest.fixture(scope="module")
def parquet(source: Path) -> Path:
    path = source.with_name("t.parquet")
    assert run(["log", "export", str(source), "-o", str(path)]) == 0
    return path


NEW = {
    "convert": "log convert {source} --codec none -o {new}",
    "compact": "log compact {source} --all -o {new}",
    "repair": "log repair {damaged} -o {new}",
    "index": "log index {source} -o {new}",
    "restore": "log restore {source} --at 2100-01-01 -o {new}",
    "restore of Parquet": "log restore {parquet} -o {new}",
    "export": "log export {source} -o {new}",
    "export to Parquet": "log export {source} -o {new}.parquet",
    "export to Arrow": "log export {source} -o {new}.arrow",
    "export to JSON lines": "log export {source} -o {new}.jsonl",
    "report": "log report {source} -o {new}.html",
    "verify": "log verify {source} --report {new}.html",
    "adopt": "log adopt {source} --controller-dir 7={new} --apply",
    "schema generate": "schema generate {definitions} -o {new}",
    "schema import": "schema import {definitions} -o {new}",
    "encode": "encode ApiVersionsRequest --version 3 {json} -o {new}.bin",
    "lake append": "lake append {source} {new} --topic t",
}


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", NEW)
def test_new_output(
    command: str, source: Path, parquet: Path, disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = disk / "new"
    damaged = shutil.copytree(source, tmp_path / "damaged")
    flip(damaged / "t-0" / f"{0:020}.log", 500, 1)
    json = tmp_path / "message.json"
    json.write_text(dumps({"clientSoftwareName": "n" * 20_000, "clientSoftwareVersion": "1"}))
    values = {
        "source": source if command != "adopt" else shutil.copytree(source, tmp_path / "adopted"),
        "damaged": damaged,
        "parquet": parquet,
        "definitions": ROOT / "definitions" / "kafka-4.4.0",
        "json": json,
        "new": new,
    }
    words = [word.format(**values) for word in NEW[command].split()]
    fill(disk, 8192)
    assert run(words) == 2
    error = capsys.readouterr().err
    assert any(text in error for text in FULL)
    assert str(disk) in error
    left = [each.name for each in disk.iterdir() if each.name != "filler"]
    if command == "lake append":  # an empty table, which the next run appends to
        assert left in ([], ["new"])
    elif command.startswith("schema"):
        assert left in ([], ["new"])  # with whole files only
        assert not [each for each in new.rglob("*") if each.is_file() and not each.stat().st_size]
    else:
        assert [name for name in left if ".part" not in name] == []
    (disk / "filler").unlink()
    assert run(words) in (0, 1)  # the same command works with more space


IN_PLACE = {
    "convert": "log convert {} --codec none --apply",
    "compact": "log compact {} --all --apply",
    "repair": "log repair {} --apply",
    "index": "log index {} --apply",
    "adopt": "log adopt {} --apply",
}


@pytest.mark.sampled
@pytest.mark.parametrize("left_bytes", [0, 4096, 12288])
@pytest.mark.parametrize("command", IN_PLACE)
def test_in_place(command: str, left_bytes: int, source: Path, disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = shutil.copytree(source, disk / "data")
    (data / ".kafka_cleanshutdown").unlink()
    if command != "adopt":
        (data / "t-0" / f"{100:020}.index").write_bytes(b"damaged")  # so that there is something to do
    batches = [(each.base_offset, each.crc) for _, each in LogDirectory(data)["t", 0].batches()]
    fill(disk, left_bytes)
    code = run([word.format(data) for word in IN_PLACE[command].split()])
    error = capsys.readouterr().err
    if code != 2:
        assert left_bytes  # there was enough for the little that changes
        assert not any(text in error for text in FULL)
        return
    assert any(text in error for text in FULL)
    assert str(disk) in error
    assert [(each.base_offset, each.crc) for _, each in LogDirectory(data)["t", 0].batches()] == batches
    (disk / "filler").unlink()
    assert run([word.format(data) for word in IN_PLACE[command].split()]) in (0, 1)
    assert run(["log", "verify", str(data)]) == 0


@pytest.mark.parametrize(("more", "said"), [(40_000, FULL[0]), (120_000, FULL[1]), (200_000, FULL[0])])
def test_a_copy_that_is_compacted_needs_more_than_the_copy(
    more: int, said: str, source: Path, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No room for the copy; for the copy, not for a segment more; not for the cleaned one beside the two."""
    fill(disk, LogDirectory(source)["t", 0].directory_bytes + more)
    assert run(["log", "compact", str(source), "--all", "-o", str(disk / "new")]) == 2
    assert said in capsys.readouterr().err
    assert [each.name for each in disk.iterdir()] == ["filler"]


@pytest.mark.parametrize("left_bytes", [110_000, 140_000, 180_000])
def test_compaction_in_place_needs_room_for_a_cleaned_segment(
    left_bytes: int, source: Path, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shutil.copytree(source, disk / "data")
    fill(disk, left_bytes)
    assert run(["log", "compact", str(data), "--all", "--apply"]) == 2
    error = capsys.readouterr().err
    assert f"{disk}/data/t-0/" in error
    assert FULL[0] in error
    assert len(list(LogDirectory(data)["t", 0].read())) == RECORDS
    (disk / "filler").unlink()
    assert run(["log", "compact", str(data), "--all", "--apply"]) == 0
    assert run(["log", "verify", str(data)]) == 0


OUTPUTS = [
    "--version",
    "--help",
    "log ls {source}",
    "log ls {source} --format json",
    "log ls {source} --format jsonl",
    "log dump {source} --deep",
    "log verify {source}",
    "log convert {source} --codec lz4",
    "schema show FetchRequest",
]


@pytest.mark.sampled
@pytest.mark.parametrize("words", OUTPUTS)
def test_standard_output(words: str, source: Path) -> None:
    for unbuffered in ("", "1"):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "kwire.cli", *words.format(source=source).split()],
                stdout=full,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                check=False,
                text=True,
            )
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == "kwire: standard output: cannot be written: No space left on device"
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


def test_a_broker_does_not_start(disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(disk, 4096)
    assert run(["serve", "--port", "0", "--data-dir", str(disk / "data")]) == 2
    error = capsys.readouterr().err
    assert str(disk / "data") in error
    assert "No space left on device" in error


# ---- files that appear whole


def test_a_file_keeps_its_bytes_until_it_has_all_new_ones(disk: Path, tmp_path: Path) -> None:
    page = disk / "page.html"
    write_whole(page, b"old")
    page.chmod(0o640)
    fill(disk, 4096)
    with pytest.raises(OptionError, match=rf"{page}: cannot be written: No space left on device"):
        write_whole(page, bytes(100_000))
    assert page.read_bytes() == b"old"
    assert sorted(each.name for each in disk.iterdir()) == ["filler", "page.html"]
    (disk / "filler").unlink()
    link = tmp_path / "link.html"
    link.symlink_to(page)
    write_whole(link, b"new")
    assert (page.read_bytes(), page.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o640, True)


def test_a_device_is_written_itself(tmp_path: Path) -> None:
    write_whole("/dev/null", b"page")
    with pytest.raises(OptionError, match="/dev/full: cannot be written: No space left"):
        write_whole("/dev/full", b"page")
    with pytest.raises(OptionError, match=r"no/page\.html: cannot be written: No such file or directory"):
        write_whole(tmp_path / "no" / "page.html", b"page")
