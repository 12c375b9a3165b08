"""The oldest and newest Kafka start on our logs: magic 0 and 1; repaired, compacted, restored directories."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests import golden
from tests.interop.booted_logs import MODERN44, PEER, as_printed, booted, by_place
from tests.log.expected import consumed
from tests.maintenance.verify.damaging import flip
from tools import kafka

from kwire.log import LogDirectory
from kwire.maintenance.compaction import OfflineSettings, compact
from kwire.maintenance.convert import TargetFormat, convert_directory
from kwire.maintenance.export import ExportOptions, export_logs
from kwire.maintenance.from_parquet import FromParquetOptions, restore_from_parquet
from kwire.maintenance.repair import repair_into
from kwire.maintenance.repair_mode import Mode
from kwire.maintenance.repair_plan import make_plan
from kwire.maintenance.verify import verify_directory
from kwire.records import Compression

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

NOW_MS = time.time_ns() // 1_000_000
NEWEST = "4.4.0"
TOPICS = ("events44", "logappend44", "compacted44", "txn44")


@pytest.mark.parametrize(("magic", "codec"), [(0, Compression.GZIP), (1, Compression.LZ4), (1, Compression.NONE)])
def test_kafka_2_8_starts_on_our_magic_0_and_1_logs(
    magic: int, codec: Compression, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    """Its ZooKeeper knows the topic; our logs replace its empty ones."""
    source = LogDirectory(kafka_logs["legacy"] / "data")
    keys = [key for key in source if key[0] == "v2"]
    target = TargetFormat(magic=magic, codec=codec)
    convert_directory(source, str(tmp_path / "new"), target, keys, whole=False, accept_loss=True, now_ms=NOW_MS)
    settings: dict[str, str | int] = {
        "inter.broker.protocol.version": "0.10.0" if magic else "0.9.0",
        "log.message.format.version": "0.10.0" if magic else "0.9.0",
        "log.index.size.max.bytes": 65536,
    }
    folder = tmp_path / "kafka"
    with kafka.KafkaBroker(folder, version="2.8.2", **settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for created in admin.create_topics([NewTopic("v2", len(keys), 1)]).values():
            created.result()
    data = folder / "data"
    for _, partition in keys:
        for file in (data / f"v2-{partition}").iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        for file in (tmp_path / "new" / f"v2-{partition}").iterdir():
            if file.name != "partition.metadata":
                shutil.copy2(file, data / f"v2-{partition}")
    (data / ".kafka_cleanshutdown").unlink()  # so that it checks every batch
    before = {path: path.stat().st_size for path in data.glob("v2-*/*.log")}
    assert len(before) > 10
    classes = kafka.compile_java(PEER)
    with kafka.KafkaBroker(folder, version="2.8.2", **settings) as broker:
        server = broker.bootstrap_servers
        lines = kafka.java("LogPeer", server, "read", "read_uncommitted", "v2", classes=classes, timeout=200)
    found = by_place(lines.splitlines())
    for topic, partition in keys:
        rows, _ = consumed(kafka_logs["legacy"] / "expected", topic, partition, "read_uncommitted")
        if magic == 0:
            rows = [row._replace(timestamp=-1) for row in rows]
        assert found[topic, partition] == as_printed(rows), partition
    assert {path: path.stat().st_size for path in before} == before  # nothing was cut
    assert not re.findall(r"Corruption found.*", (folder / "server.log").read_text(errors="replace"))


@pytest.fixture(scope="module")
def source44(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory that Kafka 4.4.0 wrote."""
    return golden.extract("modern44", tmp_path_factory.mktemp("logs"))


def expected44(source: Path, topic: str, partition: int) -> list[tuple[int, int, str, str]]:
    return as_printed(consumed(source / "expected", topic, partition, "read_uncommitted")[0])


def test_kafka_4_4_starts_on_a_repaired_directory(source44: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(source44 / "data", tmp_path / "damaged")
    broken = LogDirectory(damaged)["events44", 0].segments[0]
    headers = list(broken.headers())
    for header in (headers[3], headers[9]):
        flip(Path(broken.url), header.position + header.size_bytes - 1, 3)
    lost = {o for h in (headers[3], headers[9]) for o in range(h.stored_offset, h.last_offset + 1)}
    log = damaged / "txn44-0" / f"{8:020d}.log"
    shutil.copy2(log, log.with_name(f"{9:020d}.log"))
    log.rename(log.with_name("8.log.bak"))
    (damaged / "logappend44-0" / "partition.metadata").write_bytes(b"\0")
    (damaged / ".kafka_cleanshutdown").unlink()
    directory = LogDirectory(damaged)
    plan = make_plan(directory, verify_directory(directory), Mode.SALVAGE)
    assert plan.left == []
    repair_into(plan, str(tmp_path / "kafka" / "data"))
    with booted(tmp_path / "kafka", version=NEWEST, controller=MODERN44) as read:
        found = by_place(read("read_uncommitted", *TOPICS))
    for topic, partition in (key for key in LogDirectory(source44 / "data") if key[0] in TOPICS):
        rows = expected44(source44, topic, partition)
        if (topic, partition) == ("events44", 0):
            rows = [row for row in rows if row[0] not in lost]
        assert found[topic, partition] == rows, (topic, partition)


def test_kafka_4_4_starts_on_a_compacted_directory(source44: Path, tmp_path: Path) -> None:
    data = shutil.copytree(source44 / "data", tmp_path / "kafka" / "data")
    records = list(LogDirectory(data)["compacted44", 0].read())
    settings = OfflineSettings.parse({"delete.retention.ms": "0"})
    [done] = compact(str(data), lambda topic, partition: topic == "compacted44", settings, NOW_MS * 2)
    assert done.problem is None
    newest = {each.key: each.offset for each in records if each.offset < done.clean_offset}
    kept = {each.offset for each in records if each.offset >= done.clean_offset or newest[each.key] == each.offset}
    with booted(tmp_path / "kafka", version=NEWEST, controller=MODERN44) as read:
        found = by_place(read("read_uncommitted", "compacted44"))
    rows = [row for row in expected44(source44, "compacted44", 0) if row[0] in kept]
    values = {each.offset: each.value for each in records}
    # tombstones are gone a delete.retention.ms after they were clean
    assert [row for row in found["compacted44", 0] if values[row[0]] is not None] == [
        row for row in rows if values[row[0]] is not None
    ]


def test_kafka_4_4_starts_on_a_restored_directory(source44: Path, tmp_path: Path) -> None:
    directory = LogDirectory(source44 / "data")
    logs = [log for key, log in directory.items() if key[0] in TOPICS]
    export_logs(logs, str(tmp_path / "parquet"), ExportOptions(headers=True))
    ids = {log.topic: log.topic_id for log in logs if log.topic_id is not None}
    data = tmp_path / "kafka" / "data"
    data.parent.mkdir()
    restore_from_parquet(
        [str(tmp_path / "parquet")],
        str(data),
        FromParquetOptions(codec=Compression.ZSTD, segment_bytes=60_000, topic_ids=ids),
        now_ms=NOW_MS,
    )
    for name in ("meta.properties", "bootstrap.checkpoint"):  # the cluster that knows the topics
        if (source44 / "data" / name).exists():
            shutil.copy2(source44 / "data" / name, data / name)
    shutil.copytree(source44 / "data" / "__cluster_metadata-0", data / "__cluster_metadata-0")
    with booted(tmp_path / "kafka", version=NEWEST, controller=MODERN44) as read:
        found = by_place(read("read_uncommitted", *TOPICS))
    for log in logs:
        assert found[log.topic, log.partition] == expected44(source44, log.topic, log.partition)
