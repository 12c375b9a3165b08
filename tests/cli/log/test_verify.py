"""`kwire log verify`: the table, JSON, the page, and exit codes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.crafted import ACTED_ON, HOSTILE, hostile_log


def damaged(kafka_logs: dict[str, Path]) -> Path:
    return kafka_logs["unclean"] / "damaged" / "data"


def test_a_clean_directory_has_exit_code_0(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("log", "verify", kafka_logs["modern"] / "data")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("read: no damage\n")
    assert kwire("log", "verify", kafka_logs["modern"] / "data", "--format", "json").out == "[]\n"


def test_the_table_is_sorted_by_severity_and_ends_with_totals(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("log", "verify", damaged(kafka_logs))
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0].split()[:3] == ["SEVERITY", "KIND", "FILE:BYTE"]
    assert lines[1].startswith("loses records")
    assert "u-plain-1/00000000000000000550.log:0" in lines[1]
    assert "550-556" in lines[1]
    assert len(lines) == 1 + 11 + 1
    assert "11 findings (1 loses records, 1 stops consumers, 9 recovers); 22 notes (--notes shows them)" in lines[-1]
    assert len(kwire("log", "verify", damaged(kafka_logs), "--notes").out.splitlines()) == 1 + 11 + 22 + 1


def test_json_has_every_field(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("log", "verify", damaged(kafka_logs), "--format", "json", "--topic", "u-plain", "--partition", "4")
    (found,) = json.loads(result.out)
    assert result.code == 1
    assert found.pop("file").endswith("u-plain-4/00000000000000000000.log")
    assert all(found.pop(key) for key in ("effect", "hint"))
    assert found == {
        "severity": "stops consumers",
        "kind": "checksum",
        "topic": "u-plain",
        "partition": 4,
        "position": 29993,
        "size_bytes": 285,
        "first_offset": 203,
        "last_offset": 203,
        "cause": "stored CRC 2399441880, computed 1583324694",
    }


def test_notes_alone_have_exit_code_0(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    assert kwire("log", "verify", kafka_logs["unclean"] / "killed" / "data").code == 0


def page(kwire: Callable, path: Path, target: Path) -> str:
    kwire("log", "verify", path, "--report", target)
    return target.read_text("utf-8")


def test_the_report_page_is_well_formed_and_marks_each_damage(
    kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path
) -> None:
    text = page(kwire, damaged(kafka_logs), tmp_path / "page.html")
    root = ElementTree.fromstring(text.removeprefix("<!doctype html>\n"))
    assert not {node.tag for node in root.iter()} & {"script", "img", "link", "iframe"}
    assert "http" not in text.replace("http-equiv", "")
    hits = [node for node in root.iter("rect") if node.attrib["class"].startswith("hit")]
    assert len(hits) == 11
    findings = [node for node in root.iter("div") if node.attrib.get("class", "").startswith("finding s")]
    assert len(findings) == 11 + 22
    for node in root.iter("rect"):
        assert 0 <= float(node.attrib["x"]) <= 100
        assert float(node.attrib["x"]) + float(node.attrib["width"]) <= 100.6


def test_the_report_page_of_a_clean_directory_reports_no_damage(
    kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path
) -> None:
    text = page(kwire, kafka_logs["modern"] / "data", tmp_path / "page.html")
    ElementTree.fromstring(text.removeprefix("<!doctype html>\n"))
    assert "No damage" in text


def test_names_from_the_directory_are_escaped(kwire: Callable, tmp_path: Path) -> None:
    data = hostile_log(tmp_path / "data")
    for file in data.glob("*/*.log"):
        file.write_bytes(file.read_bytes()[:-3])
    (data / f"{HOSTILE}x").mkdir()
    result = kwire("log", "verify", data, "--notes")
    assert result.code == 1
    text = page(kwire, data, tmp_path / "page.html")
    for each in ACTED_ON:
        assert each not in result.out
        assert each not in text
    assert "<script" not in text


@pytest.mark.parametrize("options", [["--report", "/no/such/directory/page.html"], ["--topic", "none"]])
def test_wrong_usage_is_reported_before_anything_is_read(
    options: list[str], kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    assert kwire("log", "verify", kafka_logs["modern"] / "data", *options).code == 2


def test_a_directory_without_logs_is_wrong_usage(kwire: Callable, tmp_path: Path) -> None:
    assert kwire("log", "verify", tmp_path).code == 2
    assert kwire("log", "verify", tmp_path / "nothing").code == 2


def test_a_single_partition_can_be_verified(kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path) -> None:
    alone = shutil.copytree(damaged(kafka_logs) / "u-plain-4", tmp_path / "u-plain-4")
    result = kwire("log", "verify", alone)
    assert result.code == 1
    assert "stops consumers" in result.out


NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run as a user whom permissions bind."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@contextmanager
def readable_copy(data: Path) -> Iterator[Path]:
    """Copy a directory to where other users may read it; pytest's own is closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        copy = Path(folder) / "data"
        shutil.copytree(data, copy)
        for each in copy.rglob("*"):
            each.chmod(0o755)
        yield copy


@pytest.mark.sampled
@pytest.mark.parametrize("which", ["*/*.log", "*/*.index", "*/partition.metadata", "meta.properties", "*/*.snapshot"])
def test_files_of_another_user_are_not_damage(kafka_logs: dict[str, Path], kwire: Callable, which: str) -> None:
    with readable_copy(kafka_logs["modern"] / "data") as data:
        assert kwire("log", "verify", data).code == 0  # and everything is imported
        closed = list(data.glob(which))
        for each in closed:
            each.chmod(0)
        with unprivileged():
            result = kwire("log", "verify", data)
    assert result.code == 2
    assert result.err.startswith(f"kwire: not checked: {len(closed)} file")
    assert result.err.endswith(" that this user may not read\n")
    *found, totals = result.out.splitlines()[1:]
    assert len(found) == len(closed)
    assert all(line.startswith("not checked  unreadable") and "Permission denied" in line for line in found)
    assert f"no damage in what this user may read; {len(closed)} file" in totals


def test_damage_beside_files_of_another_user_has_exit_code_1(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    with readable_copy(damaged(kafka_logs)) as data:
        next(data.glob("u-plain-0/*.index")).chmod(0)
        with unprivileged():
            result = kwire("log", "verify", data)
    assert result.code == 1
    assert "12 findings (1 loses records, 1 stops consumers, 9 recovers, 1 not checked)" in result.out


def test_a_closed_directory_has_the_exit_code_of_wrong_usage(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    with readable_copy(kafka_logs["modern"] / "data") as data:
        (data / "__cluster_metadata-0").chmod(0)
        with unprivileged():
            result = kwire("log", "verify", data)
        (data / "__cluster_metadata-0").chmod(0o755)
    said = f"kwire: {data}/__cluster_metadata-0: cannot list this directory: Permission denied\n"
    assert (result.code, result.err) == (2, said)
