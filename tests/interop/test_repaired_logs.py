"""Real Kafka starts on repaired directories, truncates nothing, and its consumer reads exactly the intact records."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.booted_logs import as_hex
from tests.log.expected import consumed
from tools import kafka

from kwire.log import LogDirectory
from kwire.maintenance.repair import repair_in_place, repair_into
from kwire.maintenance.repair_mode import Mode
from kwire.maintenance.repair_plan import make_plan
from kwire.maintenance.verify import verify_directory

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "LogPeer.java"
SETTINGS = {"log.index.interval.bytes": 1024, "log.index.size.max.bytes": 65536}
LOGGING = """
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m%n
"""


def repaired(source: Path, folder: Path, mode: Mode, *, in_place: bool) -> Path:
    """Repair a copy of source, as the log directory of a KafkaBroker in `folder`."""
    folder.mkdir()
    data = folder / "data"
    if in_place:
        shutil.copytree(source, data)
        alone = LogDirectory(data / "u-plain-1")  # its quarantine must not be where the broker looks
        repair_in_place(make_plan(alone, verify_directory(alone), mode))
    directory = LogDirectory(data if in_place else source)
    plan = make_plan(directory, verify_directory(directory), mode)
    assert plan.left == []
    if in_place:
        repair_in_place(plan)
    else:
        repair_into(plan, str(data))
    return data


def expected_lines(unclean: Path, mode: Mode) -> list[str]:
    """Return the expected lines: the recovered broker's records and, in salvage, those after corrupt batches."""
    lines = []
    for partition in range(6):
        if mode is Mode.SALVAGE and partition in (1, 4):
            rows, _ = consumed(unclean / "expected" / "killed-recovered", "u-plain", partition, "read_uncommitted")
            lost = range(550, 557) if partition == 1 else range(203, 204)
            rows = [row for row in rows if row.offset not in lost]
        else:
            rows, _ = consumed(unclean / "expected" / "damaged-recovered", "u-plain", partition, "read_uncommitted")
        lines += [
            f"u-plain {partition} {row.offset} {row.timestamp} {as_hex(row.key)} {as_hex(row.value)}" for row in rows
        ]
    return lines


def dump_problems(data: Path) -> Iterator[str]:
    """Return the problems that Kafka's DumpLogSegments finds in logs and indexes."""
    logs = sorted(str(path) for path in data.glob("u-*/*.log"))
    indexes = sorted(str(path) for path in data.glob("u-*/*.*index") if path.suffix != ".txnindex")
    assert len(indexes) > 20
    dumped = kafka.java("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(logs))
    yield from re.findall(r".*isvalid: false.*|.*corrupt.*|.*[Tt]railing.*|Found.*", dumped)
    verified = kafka.java("kafka.tools.DumpLogSegments", "--verify-index-only", "--files", ",".join(indexes))
    yield from re.findall(r"(?i).*mismatch.*|Found.*|.*out of order.*", verified)


@pytest.mark.requirement("G-05", "G-07", "G-08", "G-11", "G-13")
@pytest.mark.parametrize(("mode", "in_place"), [(Mode.SALVAGE, False), (Mode.TRUNCATE, False), (Mode.SALVAGE, True)])
def test_kafka_starts_on_a_repaired_directory_and_serves_the_intact_records(
    mode: Mode, in_place: bool, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    unclean, folder = kafka_logs["unclean"], tmp_path / "kafka"
    data = repaired(unclean / "damaged" / "data", folder, mode, in_place=in_place)
    assert list(dump_problems(data)) == []
    before = {path: path.stat().st_size for path in data.glob("u-plain-*/*.log")}
    classes = kafka.compile_java(PEER)
    (folder / "log4j.properties").write_text(LOGGING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"-Dlog4j.configuration=file:{folder}/log4j.properties")
        with kafka.KafkaBroker(folder, **SETTINGS) as broker:
            patch.undo()
            server = broker.bootstrap_servers
            printed = kafka.java("LogPeer", server, "read", "read_uncommitted", "u-plain", classes=classes)
            committed = kafka.java("LogPeer", server, "read", "read_committed", "u-txn", classes=classes)
    assert sorted(printed.splitlines()) == sorted(expected_lines(unclean, mode))
    log = (folder / "server.log").read_text(errors="replace")
    assert not re.findall(r"Corruption found.*|.*[Ii]nvalid offset.*|ERROR.*CorruptRecord.*", log)
    assert "quarantine" not in log
    assert "Recovering unflushed segment" in log  # it did recover, since the clean shutdown file is missing
    assert {path: path.stat().st_size for path in before} == before
    transactions = {
        (partition, row.offset)
        for partition in (0, 1)
        for row in consumed(unclean / "expected" / "damaged-recovered", "u-txn", partition, "read_committed")[0]
    }
    got = {(int(line.split()[1]), int(line.split()[2])) for line in committed.splitlines()}
    assert got == transactions
