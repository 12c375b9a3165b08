"""Kafka's log cleaner and ours leave the same batches, and Kafka starts on our result.

tools/java/CleanLog.java runs Kafka 3.9.1's own Cleaner. Kafka keeps the last batch of a range, emptied, only since 4.0
(KAFKA-17076), like ours: the only difference that is accepted.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from tests import golden
from tests.log.cleaner.compared import log_content, segment_files, transaction_content
from tests.log.cleaner.generated_logs import MINUTE_MS, NOW_MS, generated_log
from tools import kafka

from kwire.log.cleaner import Cleaner
from kwire.log.cleaner.offset_map import SLOT_BYTES
from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.maintenance.compaction import OfflineSettings, compact
from kwire.storage.file_system import FileSystem

JAVA = Path(kafka.ROOT) / "tools" / "java" / "CleanLog.java"
DAY_MS = 1440 * MINUTE_MS
LOGS = 48
# Passes of each log: its time, and whether it starts from the beginning or where the pass before has ended.
PASSES = [
    (NOW_MS, -1),
    (NOW_MS + DAY_MS // 2, -2),
    (NOW_MS + 2 * DAY_MS, -1),
    (NOW_MS + 2 * DAY_MS, -2),
    (NOW_MS + 10 * DAY_MS, -1),
]

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


class Case(NamedTuple):
    """A log in two directories, one per cleaner."""

    seed: int
    theirs: Path
    ours: Path
    settings: dict[str, str]
    map_bytes: int


def make_cases(root: Path) -> list[Case]:
    """Return logs of every magic, with offset maps for all keys or for a few."""
    cases = []
    for seed in range(LOGS):
        draw = random.Random(seed)
        log = generated_log(seed, magics=[(2,), (2,), (0, 1, 2), (0,), (1,)][seed % 5])
        settings = {
            "cleanup.policy": "compact",
            "segment.bytes": draw.choice(["9000", "5500", "100000"]),
            "segment.index.bytes": "65536",
            "delete.retention.ms": str(draw.choice([0, DAY_MS, 3 * DAY_MS])),
            "min.compaction.lag.ms": draw.choice(["0", "0", str(300 * MINUTE_MS)]),
            "file.delete.delay.ms": "3600000",  # Kafka opens the directory again while its scheduler is alive
            "retention.ms": "-1",
        }
        theirs, ours = (root / str(seed) / who / "t-0" for who in ("theirs", "ours"))
        log.write(theirs)
        log.write(ours)
        cases.append(Case(seed, theirs, ours, settings, draw.choice([1 << 20, 1 << 20, 8 * SLOT_BYTES])))
    return cases


def run_kafka(cases: list[Case], tasks: Path) -> dict[Path, list[tuple[int, int]]]:
    """Recover both directories and clean one; return (end offset, first uncleanable offset) of each pass."""
    lines = []
    for case in cases:
        settings = ",".join(f"{name}={value}" for name, value in case.settings.items())
        lines += [f"load {directory} {NOW_MS} {settings}" for directory in (case.theirs, case.ours)]
        lines += [f"clean {case.theirs} {now} {settings} {case.map_bytes} {start}" for now, start in PASSES]
    tasks.write_text("\n".join(lines) + "\n")
    found: dict[Path, list[tuple[int, int]]] = {}
    for line in kafka.java("CleanLog", str(tasks), classes=kafka.compile_java(JAVA)).splitlines():
        words = line.split()
        if line.startswith("/") and len(words) == 9:
            found.setdefault(Path(words[0]), []).append((int(words[1]), int(words[2])))
    return found


def run_ours(case: Case) -> list[tuple[int, int]]:
    """Run the same passes with our cleaner."""
    files, directory = FileSystem(), case.ours.parent
    found = []
    for now_ms, start in PASSES:
        if start == -1:
            (directory / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        log = PartitionWriter.open(
            files,
            str(case.ours),
            "t",
            0,
            LogConfig.parse(case.settings),
            now_ms=now_ms,
            checkpoints=PartitionCheckpoints(is_clean=True),
        )
        cleaner = Cleaner(CleanerCheckpoints(files, str(directory)), dedupe_buffer_bytes=case.map_bytes)
        end_offset = cleaner.plan(log, now_ms).end_offset
        cleaner.clean(log, now_ms)
        found.append((cleaner.checkpoints.get(("t", 0)) or 0, end_offset))
        log.close()
    return found


@pytest.mark.requirement(
    "X-01", "X-02", "X-10", "X-11", "X-12", "X-20", "X-21", "X-22", "X-23", "X-24", "X-25", "X-26", "X-27", "X-30"
)
@pytest.mark.requirement("X-31", "X-32", "X-33", "X-34", "X-35", "X-36", "F-64")
def test_kafkas_cleaner_and_ours_leave_the_same_batches(tmp_path: Path) -> None:
    cases = make_cases(tmp_path)
    theirs = run_kafka(cases, tmp_path / "tasks")
    let_pass = 0
    for case in cases:
        for ours, kafkas in zip(run_ours(case), theirs[case.theirs], strict=True):
            # A pass without dirty records: Kafka never starts one, and its Cleaner returns 0.
            assert ours[1] == kafkas[1]
            assert kafkas[0] in (ours[0], 0)
        left, expected = log_content(case.ours), log_content(case.theirs)
        assert left.keys() == expected.keys(), case.seed
        for name, batches in expected.items():
            if len(left[name]) == len(batches) + 1:
                extra = left[name].pop()
                assert len(extra) == 61, f"log {case.seed}: not an emptied batch"
                let_pass += 1
            assert left[name] == batches, f"log {case.seed}, {name}"
        assert transaction_content(case.ours) == transaction_content(case.theirs)
        times = [[path.stat().st_mtime_ns for path in segment_files(each)[:-1]] for each in (case.ours, case.theirs)]
        assert [[time // 10**6 for time in each] for each in times] == [[time // 10**6 for time in times[1]]] * 2
    assert let_pass < LOGS // 4


def consume(broker: kafka.KafkaBroker, topic: str, partition: int, isolation: str) -> list[str]:
    """Return `offset key value` of every record that Kafka's console consumer prints."""
    printed = kafka.java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server",
        broker.bootstrap_servers,
        "--topic",
        topic,
        "--partition",
        str(partition),
        "--offset",
        "earliest",
        "--isolation-level",
        isolation,
        "--timeout-ms",
        "5000",
        "--property",
        "print.key=true",
        "--property",
        "print.offset=true",
        "--property",
        "key.separator=|",
        "--key-deserializer",
        "org.apache.kafka.common.serialization.BytesDeserializer",
        "--value-deserializer",
        "org.apache.kafka.common.serialization.BytesDeserializer",
    )
    return [line for line in printed.splitlines() if line.startswith("Offset:")]


@pytest.mark.requirement("X-22", "X-24", "X-26", "X-35")
@pytest.mark.parametrize("topic", ["orders", "txn"])
def test_kafka_starts_on_our_compacted_log_and_reads_the_last_value_of_each_key(topic: str, tmp_path: Path) -> None:
    shutil.copytree(golden.extract("modern", tmp_path) / "data", tmp_path / "broker" / "data")
    directory = tmp_path / "broker" / "data"
    before = LogDirectory(directory)[topic, 0]
    stable, active = before.last_stable_offset, before.segments[-1].base_offset
    records = list(before.read(isolation="read_committed"))
    settings = OfflineSettings.parse({"delete.retention.ms": "0"})
    [done] = compact(str(directory), lambda name, partition: (name, partition) == (topic, 0), settings, NOW_MS * 2)
    assert done.problem is None
    assert done.clean_offset == done.plan.end_offset <= min(stable, active)
    newest = {each.key: each.offset for each in records if each.offset < done.clean_offset}
    expected = [
        each.offset
        for each in records
        if each.offset >= done.clean_offset or (each.key is not None and newest[each.key] == each.offset)
    ]
    assert len(expected) < len(records) or topic == "txn"
    with kafka.KafkaBroker(tmp_path / "broker", **{"log.cleaner.enable": "false"}) as broker:
        lines = consume(broker, topic, 0, "read_committed")
    offsets = [int(line.split("|")[0].removeprefix("Offset:")) for line in lines]
    # On a slow machine the coordinator aborts the open transaction, so later records can be read too.
    assert [offset for offset in offsets if offset < stable] == expected
