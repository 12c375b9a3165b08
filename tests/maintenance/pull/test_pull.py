"""Copies of a running broker: the same batches, runs that continue, and what a cluster does to its logs meanwhile."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.errors import LogError, OptionError
from kwire.log import LogDirectory
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.pull import MANIFEST, Manifest, PullOptions, pull
from kwire.maintenance.pull.manifest import manifest_damages
from kwire.maintenance.verify import verify_directory
from kwire.records import ColumnWriter
from tests.broker.still import StillBroker
from tests.rewriting_proxy import RewritingProxy
from tests.storage.faults import Stopped, StoppingFileSystem
from tests.waiting import HANG_S, until

Batches = dict[tuple[str, int], list[bytes]]
NOW_MS = 1_700_000_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "source") as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap_servers, **{"default.api.timeout.ms": 5000}) as opened:
        yield opened


def administer(broker: Broker, what: Callable[[AdminClient], dict[Any, Future[Any]]]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for done in what(admin).values():
        done.result()


def create(broker: Broker, name: str, partitions: int = 1, **configs: str) -> None:
    new = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in configs.items()})
    administer(broker, lambda admin: admin.create_topics([new]))


def delete(broker: Broker, name: str) -> None:
    administer(broker, lambda admin: admin.delete_topics([name]))


def delete_records(broker: Broker, topic: str, before_offset: int) -> None:
    administer(broker, lambda admin: admin.delete_records([Place(topic, 0, before_offset)]))


def write(client: Client, topic: str, n: int = 1, partition: int = 0) -> None:
    """Write n batches of 10 records."""
    producer = Producer(client)
    for i in range(n):
        rows = pa.record_batch({"value": pa.array([b"value %d" % i] * 10, pa.binary())})
        (piece,) = ColumnWriter(**producer.fields(topic, partition)).write(rows)
        producer.send(topic, partition, piece, 10)


def batches(directory: Path) -> Batches:
    """Return the bytes of the batches of each partition."""
    found = LogDirectory(directory)
    return {
        key: [bytes(batch.buffer) for _, batch in log.batches()] for key, log in found.items() if key[0][:2] != "__"
    }


def damages(directory: Path) -> list[Any]:
    return [each for each in verify_directory(LogDirectory(directory)).damages if not each.is_harmless]


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ["modern", "modern44", "legacy"])
def test_batches_of_every_format_are_copied_unchanged(
    archive: str, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    """Magic 0 to 2, every codec, transactions, holes of compaction, log start offsets inside of segments."""
    source, copy = tmp_path / "source", tmp_path / "copy"
    shutil.copytree(kafka_logs[archive] / "data", source)
    with StillBroker(data_dir=source) as broker, Client(broker.bootstrap_servers) as client:
        result = pull(client, str(copy))
    assert result.is_complete
    expected, found = LogDirectory(source), LogDirectory(copy)
    there = {key for key in expected if key[0] != "__cluster_metadata"}
    assert set(found) == there
    for key in there:
        ours, theirs = found[key], expected[key]
        start = theirs.log_start_offset
        assert ours.log_end_offset == theirs.log_end_offset, key
        assert ours.log_start_offset == start or not ours.size_bytes, key
        assert theirs.topic_id in (None, ours.topic_id)  # the broker gives topics of Kafka 2.8 an id
        stored = [bytes(batch.buffer) for _, batch in theirs.batches(start) if batch.last_offset >= start]
        assert [bytes(batch.buffer) for _, batch in ours.batches()] == stored, key
    # in mixed-format, batches of magic 1 follow those of magic 2 and clear the leader epochs, as in Kafka
    assert [each for each in damages(copy) if each.topic != "mixed-format"] == []
    assert manifest_damages(str(copy), set(LogDirectory(copy))) == []


def test_a_second_run_copies_only_what_is_new(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders", 2, segment_bytes="1048576")
    write(client, "orders", 20)
    copy = tmp_path / "copy"
    first = pull(client, str(copy))
    assert first.is_complete
    assert first.copied_bytes > 0
    assert pull(client, str(copy)).copied_bytes == 0
    write(client, "orders", 1, partition=1)
    assert 0 < pull(client, str(copy)).copied_bytes < first.copied_bytes / 10
    assert batches(copy) == batches(tmp_path / "source")


def test_segments_roll_by_the_topics_configs_and_have_hashes(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "small", segment_bytes="1048576", index_interval_bytes="0")
    for _ in range(30):
        producer = Producer(client)
        rows = pa.record_batch({"value": pa.array([b"v" * 100_000], pa.binary())})
        (piece,) = ColumnWriter(**producer.fields("small", 0)).write(rows)
        producer.send("small", 0, piece, 1)
    copy = tmp_path / "copy"
    manifest = pull(client, str(copy)).manifest
    segments = manifest.topics["small"].partitions[0].segments
    assert [each.base_offset for each in segments] == [
        each.base_offset for each in LogDirectory(copy)["small", 0].segments
    ]
    assert len(segments) > 2
    assert manifest_damages(str(copy), set(LogDirectory(copy))) == []
    path = copy / "small-0" / f"{segments[1].base_offset:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    (damage,) = manifest_damages(str(copy), set(LogDirectory(copy)))
    assert damage.file == str(path)


def test_patterns_and_partitions_select_what_is_copied(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders", 2)
    create(broker, "users")
    pull(client, str(tmp_path / "copy"), PullOptions(topics=["ord*"], partitions=[1]))
    assert [path.name for path in (tmp_path / "copy").glob("*-*") if path.is_dir()] == ["orders-1"]
    with pytest.raises(OptionError, match=r"no topic matches 'payments'; .*orders, users"):
        pull(client, str(tmp_path / "other"), PullOptions(topics=["payments"]))
    assert not (tmp_path / "other").exists()
    wrong: list[dict[str, Any]] = [{"topics": "ord*"}, {"partitions": 0}]
    for given in wrong:  # the letters of a string were patterns, of which * takes all topics
        with pytest.raises(OptionError, match=r"^(topics|partitions): expected a list of"):
            PullOptions(**given)


def test_records_that_retention_removed_before_they_were_copied_are_reported(
    broker: Broker, client: Client, tmp_path: Path
) -> None:
    create(broker, "orders")
    write(client, "orders", 3)
    copy = str(tmp_path / "copy")
    pull(client, copy)
    write(client, "orders", 5)
    delete_records(broker, "orders", 60)
    result = pull(client, copy)
    assert result.is_complete
    (event,) = result.events
    assert (event.kind, event.first_offset, event.end_offset) == ("gap", 30, 60)
    assert [record.offset for record in LogDirectory(copy)["orders", 0].read()] == [*range(30), *range(60, 80)]


def test_a_log_that_begins_inside_a_batch_begins_there_in_the_copy(
    broker: Broker, client: Client, tmp_path: Path
) -> None:
    create(broker, "orders")
    write(client, "orders", 3)
    delete_records(broker, "orders", 15)
    pull(client, str(tmp_path / "copy"))
    log = LogDirectory(tmp_path / "copy")["orders", 0]
    assert (log.log_start_offset, log.log_end_offset) == (15, 30)
    assert [record.offset for record in log.read()] == list(range(15, 30))


def test_an_empty_log_that_begins_above_0_does_so_in_the_copy(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders")
    write(client, "orders", 2)
    delete_records(broker, "orders", 20)
    assert pull(client, str(tmp_path / "copy")).is_complete
    write(client, "orders", 1)
    assert pull(client, str(tmp_path / "copy")).is_complete
    log = LogDirectory(tmp_path / "copy")["orders", 0]
    assert [record.offset for record in log.read()] == list(range(20, 30))


def test_offsets_that_compaction_emptied_at_the_start_of_a_log_are_in_range_in_the_copy(
    broker: Broker, client: Client, tmp_path: Path
) -> None:
    """A consumer whose position is there continues with the next record, and gets no OFFSET_OUT_OF_RANGE."""
    create(broker, "orders")
    write(client, "orders", 8)
    source = tmp_path / "compacted"
    shutil.copytree(tmp_path / "source", source)
    (path,) = source.glob("orders-0/*.log")
    at = [batch.position for _, batch in LogDirectory(source)["orders", 0].batches()]
    path.write_bytes(path.read_bytes()[at[5] :])
    for index in source.glob("orders-0/*index"):
        index.unlink()
    with Broker(data_dir=source) as other, Client(other.bootstrap_servers) as connected:
        assert pull(connected, str(tmp_path / "copy"), PullOptions(topics=["orders"])).is_complete
    log = LogDirectory(tmp_path / "copy")["orders", 0]
    assert (log.log_start_offset, log.log_end_offset) == (0, 80)
    assert [record.offset for record in log.read()] == list(range(50, 80))
    assert damages(tmp_path / "copy") == []


def test_a_recreated_topic_is_copied_and_the_earlier_log_is_kept(
    broker: Broker, client: Client, tmp_path: Path
) -> None:
    create(broker, "orders")
    write(client, "orders", 3)
    copy = tmp_path / "copy"
    pull(client, str(copy))
    delete(broker, "orders")
    create(broker, "orders")
    write(client, "orders", 1)
    result = pull(client, str(copy))
    assert [(each.kind, each.end_offset) for each in result.events] == [("recreated", 30)]
    assert LogDirectory(copy)["orders", 0].log_end_offset == 10
    (stray,) = copy.glob("orders-0.*-stray")
    assert (stray / "00000000000000000000.log").stat().st_size > 0
    assert damages(copy) == []


def test_following_copies_new_records_topics_and_partitions(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.maintenance.pull.run.METADATA_S", 0.1)
    create(broker, "orders")
    steps = iter(range(1000))
    with Client(broker.bootstrap_servers) as writer:

        def stop() -> bool:
            step = next(steps)
            if step == 0:
                write(writer, "orders", 2)
            elif step == 1:
                create(broker, "users")
                write(writer, "users", 1)
                administer(broker, lambda admin: admin.create_partitions([NewPartitions("orders", 2)]))
                write(writer, "orders", 1, partition=1)
            return step > 1 and batches(tmp_path / "copy") == batches(tmp_path / "source")

        result = pull(client, str(tmp_path / "copy"), PullOptions(follow=True), stop=stop)
    assert result.is_complete
    assert set(result.copied) >= {("orders", 0), ("orders", 1), ("users", 0)}


def test_a_copy_does_not_wait_for_admin_requests(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Responses that describe the cluster again arrive only after records that were written since are copied."""
    monkeypatch.setattr("kwire.maintenance.pull.run.METADATA_S", 0.0)
    create(broker, "orders")
    asked, copied = threading.Event(), threading.Event()

    def hold(response: Any) -> None:
        asked.set()
        assert copied.wait(HANG_S)

    with RewritingProxy(("127.0.0.1", broker.port)) as proxy, Client(proxy.address) as puller:

        def stop() -> bool:
            if not asked.is_set():
                proxy.rewrite["DescribeAclsResponse"] = hold  # not of the first description
            elif not batches(tmp_path / "copy")["orders", 0]:
                write(client, "orders", 1)
            else:
                copied.set()
            return copied.is_set()

        assert pull(puller, str(tmp_path / "copy"), PullOptions(follow=True), stop=stop).is_complete


@pytest.mark.slow
def test_a_partition_whose_leader_comes_back_is_copied_on(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.maintenance.pull.run.METADATA_S", 0.1)
    create(broker, "orders", 2)
    create(broker, "late")
    write(client, "orders", 1)
    away = {("late", 0)}

    def without_leaders(response: Any) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                if (topic.name, each.partition_index) in away:
                    each.leader_id = -1

    result, copy = None, tmp_path / "copy"
    with (
        RewritingProxy(("127.0.0.1", broker.port)) as proxy,
        Client(proxy.address, **{"default.api.timeout.ms": 500}) as puller,
    ):
        proxy.rewrite["MetadataResponse"] = without_leaders
        assert list(pull(puller, str(copy)).failures) == [("late", 0)]
        steps = iter(range(1_000_000))

        def stop() -> bool:
            if next(steps) == 0:
                away.add(("orders", 0))
                broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=1)
            elif away and time.monotonic() > began + 2:  # its retries are over
                write(client, "late", 1)
                write(client, "orders", 1)
                away.clear()
            return not away and batches(copy) == batches(tmp_path / "source")

        began = time.monotonic()
        result = pull(puller, str(copy), PullOptions(follow=True), stop=stop)
    assert result.is_complete
    assert not result.failures


def test_a_deleted_topic_ends_its_copy_and_not_the_others(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "orders")
    create(broker, "users")
    write(client, "orders", 1)
    steps = iter(range(1000))

    def stop() -> bool:
        step = next(steps)
        if step == 2:
            delete(broker, "orders")
            write(client, "users", 1)
        return (
            step > 2
            and len(batches(tmp_path / "copy")["users", 0]) == 1
            and not (tmp_path / "source/orders-0").exists()
        )

    result = pull(client, str(tmp_path / "copy"), PullOptions(follow=True), stop=stop)
    assert LogDirectory(tmp_path / "copy")["orders", 0].log_end_offset == 10
    assert result.copied["users", 0].log_end_offset == 10


def test_a_shorter_log_of_the_leader_truncates_the_copy(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    with Broker(data_dir=source) as broker, Client(broker.bootstrap_servers) as client:
        create(broker, "orders")
        write(client, "orders", 5)
        pull(client, str(copy))
    with LogManager.open(source, now_ms=NOW_MS) as manager:
        manager.truncate_to("orders", 0, 20, now_ms=NOW_MS)
    with Broker(data_dir=source) as broker, Client(broker.bootstrap_servers) as client:
        result = pull(client, str(copy))
        assert [(each.kind, each.first_offset, each.end_offset) for each in result.events] == [("truncated", 20, 50)]
        write(client, "orders", 4)
        assert pull(client, str(copy)).is_complete
    assert batches(copy) == batches(source)
    assert damages(copy) == []
    assert manifest_damages(str(copy), set(LogDirectory(copy))) == []


def test_only_a_copy_of_the_same_cluster_is_continued(client: Client, tmp_path: Path) -> None:
    pull(client, str(tmp_path / "copy"))
    refused = pytest.raises(OptionError, match=r"a copy of cluster \S+, not of \S+")
    with Broker() as other, Client(other.bootstrap_servers) as of_other, refused:
        pull(of_other, str(tmp_path / "copy"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(OptionError, match="not empty, and not a copy"):
        pull(client, str(tmp_path / "full"))
    (tmp_path / "copy" / MANIFEST).write_text("{}")
    with pytest.raises(LogError, match=r"kwire-manifest.json: not a manifest of a copy"):
        pull(client, str(tmp_path / "copy"))


def test_a_batch_that_arrives_damaged_ends_its_partition_only(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders")
    write(client, "orders", 1)
    broker.faults.corrupt("Fetch", times=1)
    result = pull(client, str(tmp_path / "copy"))
    assert not result.is_complete
    assert list(result.failures) == [("orders", 0)]
    assert LogDirectory(tmp_path / "copy")["orders", 0].log_end_offset == 0
    assert pull(client, str(tmp_path / "copy")).is_complete


def test_errors_of_a_broker_are_retried(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders")
    write(client, "orders", 3)
    broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.faults.drop("Fetch", times=2)
    broker.faults.drop("Metadata", times=1)
    assert pull(client, str(tmp_path / "copy")).is_complete
    assert batches(tmp_path / "copy") == batches(tmp_path / "source")


def test_a_full_disk_leaves_a_copy_that_a_later_run_continues(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders", segment_bytes="1048576")
    write(client, "orders", 200)
    copy = tmp_path / "copy"
    for step in (10, 25, 40):
        with pytest.raises(Stopped):
            pull(client, str(copy), file_system=StoppingFileSystem(step))
        if (copy / MANIFEST).exists():
            assert not Manifest.parse((copy / MANIFEST).read_bytes(), MANIFEST).complete
    assert pull(client, str(copy)).is_complete
    assert batches(copy) == batches(tmp_path / "source")


@pytest.mark.slow
def test_copies_continue_after_kills(broker: Broker, client: Client, tmp_path: Path) -> None:
    create(broker, "orders", 3, segment_bytes="1048576")
    copy, rng = tmp_path / "copy", random.Random(7)
    command = [sys.executable, "-m", "kwire.cli", "log", "pull", f"kafka://{broker.bootstrap_servers}", "-o", str(copy)]
    for _ in range(30):
        for partition in range(3):
            write(client, "orders", 50, partition)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.1, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert batches(copy) == batches(tmp_path / "source")
    assert damages(copy) == []


def test_a_terminated_copy_has_its_manifest(broker: Broker, client: Client, tmp_path: Path) -> None:
    """What systemd does to `pull --follow`; a second one meanwhile says that the directory is in use."""
    create(broker, "orders")
    write(client, "orders", 1)
    copy = tmp_path / "copy"
    command = [sys.executable, "-m", "kwire.cli", "log", "pull", f"kafka://{broker.bootstrap_servers}", "-f"]
    command += ["-o", str(copy)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: (copy / "orders-0").exists() and LogDirectory(copy)["orders", 0].log_end_offset == 10)
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (second.returncode, "locked by another process" in second.stderr) == (2, True)
        process.terminate()
        _, err = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
    assert (process.returncode, "terminated: " in err) == (128 + signal.SIGTERM, True)
    manifest = Manifest.parse((copy / MANIFEST).read_bytes(), MANIFEST)
    assert manifest.topics["orders"].partitions[0].log_end_offset == 10


def test_an_offset_that_the_broker_has_after_all_is_fetched_again(
    broker: Broker, client: Client, tmp_path: Path
) -> None:
    """A new leader may deny the offset where its log begins; this is no gap in the copy."""
    create(broker, "orders")
    write(client, "orders", 2)
    broker.faults.fail("Fetch", "OFFSET_OUT_OF_RANGE", times=1)
    result = pull(client, str(tmp_path / "copy"))
    assert result.is_complete
    assert result.events == []
    assert [record.offset for record in LogDirectory(tmp_path / "copy")["orders", 0].read()] == list(range(20))
