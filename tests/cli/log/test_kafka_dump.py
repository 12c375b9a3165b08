"""`kwire log dump --like-kafka`, compared with the output of Kafka's tool."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from tools.kafka import java

INDEXES = (".index", ".timeindex", ".txnindex", ".snapshot")
# Which release's tool dumped what, and where that output is.
DUMPS = {
    "modern": ("3.9", "modern/data", "modern/expected/dump"),
    "modern44": ("4.3", "modern44/data", "modern44/expected/dump"),
    "legacy": ("2.8", "legacy/data", "legacy/expected/dump"),
    "killed": ("3.9", "unclean/killed/data", "unclean/expected/killed-before/dump"),
    "damaged": ("3.9", "unclean/damaged/data", "unclean/expected/damaged-before/dump"),
    "recovered": ("3.9", "unclean/recovered/data", "unclean/expected/damaged-recovered/dump"),
}


def dumped_files(kind: str, name: str, data: Path) -> list[str]:
    """Return the files with a dump in expected/dump/KIND/NAME.txt.gz, relative to the log directory."""
    if kind == "records":
        partition, _, segment = name.partition(".00000")
        return [f"{partition}/00000{segment}"]
    suffixes = INDEXES if kind == "indexes" else (".log",)
    files = sorted(file for file in (data / name).iterdir() if file.name.endswith(suffixes))
    return [f"{name}/{file.name}" for file in files if kind == "batches" or file.stat().st_size]


def before_crash(expected: str) -> tuple[str, bool]:
    """Return the tool's output before it failed on damage, and whether it failed."""
    text, mark, _ = expected.partition("\n### exit")
    return text, bool(mark)


@pytest.mark.sampled
@pytest.mark.requirement("R-02", "R-10", "R-21", "R-38", "R-40", "F-30", "F-40")
@pytest.mark.parametrize(
    ("dump", "kind"),
    [(dump, kind) for dump in DUMPS for kind in ("batches", "indexes")]
    + [(dump, "records") for dump in ("modern", "modern44", "legacy")],
)
def test_the_dump_equals_kafkas(
    dump: str, kind: str, kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, data_path, expected_path = DUMPS[dump]
    archive = data_path.partition("/")[0]
    data = kafka_logs[archive].parent / data_path
    folder = kafka_logs[archive].parent / expected_path / kind
    monkeypatch.chdir(data)
    compared = 0
    for file in sorted(folder.glob("*.txt.gz")):
        expected, died = before_crash(gzip.decompress(file.read_bytes()).decode())
        files = dumped_files(kind, file.name.removesuffix(".txt.gz"), data)
        depth = ["--deep"] if kind == "records" else []
        result = kwire("log", "dump", "--like-kafka", "--kafka-version", version, *depth, *files)
        if died:
            # Kafka's tool fails with an exception; ours reports the error and continues with the next file
            assert result.out.startswith(expected), file.name
            assert result.code == 1
            assert "kwire: " in result.err
        else:
            assert result.out == expected, file.name
        compared += 1
    assert compared


@pytest.mark.requirement("R-40", "R-41", "R-43")
@pytest.mark.parametrize("dump", ["modern", "modern44"])
def test_control_records_of_the_metadata_log_print_their_contents(
    dump: str, kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data records of this topic are decoded in Kafka's dump and raw in ours, so only the other lines are compared."""
    version, data_path, expected_path = DUMPS[dump]
    data = kafka_logs[dump].parent / data_path
    monkeypatch.chdir(data)
    folder = data / "__cluster_metadata-0"
    files = [f"{folder.name}/{file.name}" for kind in ("*.log", "*.checkpoint") for file in sorted(folder.glob(kind))]
    expected = gzip.decompress(
        (kafka_logs[dump].parent / expected_path / "decoded" / "__cluster_metadata-0.txt.gz").read_bytes()
    ).decode()
    result = kwire("log", "dump", "--like-kafka", "--deep", "--kafka-version", version, *files)

    def comparable(text: str) -> list[str]:
        return [
            line
            for line in text.split("\n")
            if " payload: " not in line and line.startswith(("Dump", "Snap", "base", "| offset"))
        ]

    lines = comparable(expected)
    assert comparable(result.out) == lines
    shown = " ".join(lines)
    assert all(word in shown for word in ("KRaftVersion {", "KRaftVoters {", "SnapshotHeader {", "SnapshotFooter {"))


def test_errors_go_to_standard_error_as_in_kafka(
    kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed broker leaves a preallocated time index of zeros: its one entry points into the first batch."""
    monkeypatch.chdir(kafka_logs["unclean"] / "killed" / "data")
    index = Path("u-plain-1/00000000000000000550.index")
    result = kwire("log", "dump", "--like-kafka", index, index.with_suffix(".timeindex"))
    assert result.code == 1
    assert result.err == (
        f"Mismatches in :{index.absolute()}\n"
        "  Index offset: 550, log offset: 556\n"
        "The following indexed offsets are not found in the log.\n"
        "Indexed offset: 550, found log offset: 556\n"
    )


def test_gaps_of_compaction_are_reported_but_not_damage(
    kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kafka_logs["modern"] / "data")
    result = kwire("log", "dump", "--like-kafka", "--deep", "compacted-0/00000000000000000000.log")
    assert result.code == 0
    assert result.err.startswith("Non-consecutive offsets in /")


LEGACY = "v1-1/00000000000000000000.log"
LEGACY_RECORD = "| offset: 0 CreateTime: 1760000000529 keySize: 6 valueSize: 183 isValid: true crc: 3418026373"


@pytest.mark.parametrize(("version", "end"), [("3.9", "} key: k-2937 payload: "), ("4.3", " key: k-2937 payload: ")])
def test_magic_1_messages_print_their_inner_checksum(
    version: str, end: str, kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lone brace is a typing error of Kafka 3.0 to 3.9; scripts that read their output expect it."""
    monkeypatch.chdir(kafka_logs["legacy"] / "data")
    result = kwire("log", "dump", "--like-kafka", "--deep", "--kafka-version", version, LEGACY)
    assert result.out.split("\n")[3].startswith(LEGACY_RECORD + end)


@pytest.mark.jvm
def test_old_segments_print_as_in_kafkas_tool(
    kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka 3.9.1 on segments of 2.8.2: magic 0 and 1, compressed and not, with append times and holes."""
    monkeypatch.chdir(kafka_logs["legacy"] / "data")
    names = ("v0-0", "v1-1", "mixed-format-0", "append-v1-0", "compacted-v1-1", "compacted-v0-3")
    files = [f"{name}/00000000000000000000.log" for name in names]
    printed = java("kafka.tools.DumpLogSegments", "--deep-iteration", "--print-data-log", "--files", ",".join(files))
    assert kwire("log", "dump", "--like-kafka", "--kafka-version", "3.9", "--deep", *files).out == printed


def test_the_newest_release_is_the_default(
    kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kafka_logs["legacy"] / "data")
    arguments = ("log", "dump", "--like-kafka", "--deep", LEGACY)
    assert kwire(*arguments).out == kwire(*arguments, "--kafka-version", "4.3").out


def test_a_directory_selects_its_segments(
    kafka_logs: dict[str, Path], kwire: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kafka_logs["modern"] / "data")
    files = [f"ids-0/{file.name}" for file in sorted(Path("ids-0").glob("*.log"))]
    assert kwire("log", "dump", "--like-kafka", "ids-0").out == kwire("log", "dump", "--like-kafka", *files).out
