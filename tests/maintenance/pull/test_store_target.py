"""Copies in an object store: the batches of the source, whole at any moment, continued after a stop at any write."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.client import Client, Producer
from kwire.errors import DirectoryInUse, LogError, OptionError
from kwire.log import LogDirectory
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.pull import MANIFEST, Manifest, PullOptions, pull
from kwire.maintenance.pull.lease import Owner
from kwire.maintenance.pull.manifest import manifest_damages
from kwire.maintenance.pull.store_target import LEASE, StoreTarget
from kwire.maintenance.verify import verify_directory
from kwire.records import ColumnWriter, read_batches
from kwire.storage.open_store import open_store
from kwire.storage.writable_store import WritableObjectStore, open_writable_store
from tests.broker.still import StillBroker
from tests.maintenance.pull.test_pull import NOW_MS, Batches, batches, create, delete, delete_records, write
from tests.object_store import ObjectStore
from tests.sampling import mostly_slow
from tests.storage.faults import Stopped


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "source") as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap_servers, **{"default.api.timeout.ms": 5000}) as opened:
        yield opened


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return f"memory://{uuid.uuid4().hex}/copy"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments and tails of a few batches."""
    monkeypatch.setattr("kwire.maintenance.pull.store_target.SEGMENT_BYTES", 40_000)
    monkeypatch.setattr("kwire.maintenance.pull.store_target.TAIL_BYTES", 20_000)
    monkeypatch.setattr("kwire.maintenance.pull.partition_copy.APPEND_BYTES", 4096)
    monkeypatch.setattr("kwire.maintenance.pull.copier.CHECKPOINT_S", 0.0)


class StoppingStore(WritableObjectStore):
    """A store that fails every request after a number of changes, as for a process that is killed."""

    def __init__(self, url: str, stop_at: int | None = None) -> None:
        super().__init__(url, {})
        self.steps, self._stop_at, self._lock = list[str](), stop_at, threading.Lock()

    def _step(self, what: str) -> None:
        with self._lock:
            if self._stop_at is not None and len(self.steps) >= self._stop_at:
                raise Stopped(what)
            self.steps.append(what)

    def write(self, path: str, data: bytes) -> None:
        self._step(f"write {path}")
        super().write(path, data)

    def create(self, path: str, data: bytes) -> bool:
        self._step(f"create {path}")
        return super().create(path, data)

    def copy(self, path: str, new: str) -> None:
        self._step(f"copy {path}")
        super().copy(path, new)

    def remove(self, path: str) -> None:
        self._step(f"remove {path}")
        super().remove(path)


def stored_batches(url: str, **options: Any) -> Batches:
    """Return the bytes of the batches of each partition of a copy."""
    found = LogDirectory(url, may_be_empty=True, **options)
    return {key: [bytes(each.buffer) for _, each in log.batches()] for key, log in found.items() if key[0][:2] != "__"}


def check_whole(url: str, source: Batches, **options: Any) -> None:
    """Check what a reader finds: everything that the manifest names, and the first batches of the source, once each."""
    store = open_writable_store(url, options)
    if MANIFEST not in store.find(""):
        return
    manifest = Manifest.parse(store.read_all(MANIFEST), MANIFEST)
    for topic, entry in manifest.topics.items():
        for number, partition in entry.partitions.items():
            for segment in partition.segments:
                data = store.read_all(f"{topic}-{number}/{segment.base_offset:020}.log")[: segment.size_bytes]
                assert hashlib.sha256(data).hexdigest() == segment.sha256
    for key, found in stored_batches(url, **options).items() if manifest.topics else ():
        assert found == source[key][: len(found)], key


def damages(url: str, **options: Any) -> list[Any]:
    return [each for each in verify_directory(LogDirectory(url, **options)).damages if not each.is_harmless]


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ["modern", "legacy"])
def test_batches_of_every_format_are_copied_unchanged(
    archive: str, kafka_logs: dict[str, Path], tmp_path: Path, url: str
) -> None:
    source = tmp_path / "source"
    shutil.copytree(kafka_logs[archive] / "data", source)
    with StillBroker(data_dir=source) as broker, Client(broker.bootstrap_servers) as client:
        assert pull(client, url).is_complete
        local = pull(client, str(tmp_path / "local"))
    expected, found = LogDirectory(tmp_path / "local"), LogDirectory(url)
    assert set(found) == set(expected)
    for key, log in expected.items():
        ours = found[key]
        assert (ours.log_start_offset, ours.log_end_offset) == (log.log_start_offset, log.log_end_offset), key
        assert (ours.topic_id, ours.leader_epochs) == (log.topic_id, log.leader_epochs), key
        stored = [bytes(batch.buffer) for _, batch in log.batches()]
        assert [bytes(batch.buffer) for _, batch in ours.batches()] == stored, key
        assert list(ours.read(isolation="read_committed")) == list(log.read(isolation="read_committed")), key
        assert ours.snapshots.keys() == log.snapshots.keys(), key
        for offset, name in ours.snapshots.items():
            assert ours.read_file(name) == log.read_file(log.snapshots[offset]), key
    assert local.is_complete
    assert [each for each in damages(url) if each.topic != "mixed-format"] == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_stop_at_any_write_leaves_a_whole_copy_that_is_continued(
    stride: int, broker: Broker, client: Client, tmp_path: Path, url: str
) -> None:
    create(broker, "orders", 2)
    write(client, "orders", 500)
    write(client, "orders", 10, partition=1)
    source, stop_at, steps = batches(tmp_path / "source"), 0, 0
    while True:
        here = f"{url}-{stop_at}"
        store = StoppingStore(here, stop_at)
        try:
            pull(client, StoreTarget(store))
        except Stopped:
            check_whole(here, source)
            assert pull(client, here).is_complete
            assert stored_batches(here) == source, stop_at
            assert damages(here) == [], stop_at
            stop_at, steps = stop_at + stride, steps + 1
            continue
        break
    assert steps > 20 // stride
    assert sum(name.endswith(".log") for name in store.steps) > 4


@pytest.mark.usefixtures("small")
def test_a_later_run_reads_the_open_segment_and_copies_only_what_is_new(
    broker: Broker, client: Client, tmp_path: Path, url: str
) -> None:
    create(broker, "orders")
    write(client, "orders", 500)
    first = pull(client, url)
    write(client, "orders", 10)
    store = StoppingStore(url)
    second = pull(client, StoreTarget(store))
    assert 0 < second.copied_bytes < first.copied_bytes / 10
    assert len([name for name in store.steps if name.endswith(".log")]) <= 2
    assert stored_batches(url) == batches(tmp_path / "source")
    again = StoppingStore(url)
    assert pull(client, StoreTarget(again)).copied_bytes == 0
    assert [name for name in again.steps if ".log" in name] == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("late_s", mostly_slow([1e9, 0.0]))
def test_an_empty_open_segment_after_a_closed_one_gets_its_indexes(
    broker: Broker, client: Client, tmp_path: Path, url: str, late_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the copy has caught up, and when an upload is late."""
    monkeypatch.setattr("kwire.maintenance.pull.store_target.TAIL_S", late_s)
    create(broker, "orders")
    write(client, "orders", 20)
    assert pull(client, url).is_complete
    write(client, "orders", 300)
    logs: list[dict[int, int]] = []

    def is_rolled() -> bool:
        found = open_writable_store(url, {}).find("orders-0")
        logs.append({int(name[:20]): each.size_bytes for name, each in found.items() if name.endswith(".log")})
        return (0 in logs[-1].values() and len(logs[-1]) > 1) or len(logs) == 30

    assert pull(client, url, PullOptions(follow=True), stop=is_rolled).is_complete
    assert logs[-1][max(logs[-1])] == 0
    names = set(open_writable_store(url, {}).find("orders-0"))
    assert {f"{max(logs[-1]):020}.{kind}" for kind in ("log", "index", "timeindex")} <= names
    assert damages(url) == []
    assert run(["log", "verify", url]) == 0
    assert stored_batches(url) == batches(tmp_path / "source")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_transactions_continue_over_runs(kafka_logs: dict[str, Path], tmp_path: Path, url: str) -> None:
    """The producer state of a later run comes from the snapshot and the open segment in the store."""
    source = tmp_path / "source"
    shutil.copytree(kafka_logs["modern"] / "data", source)
    end = LogDirectory(source)["txn", 0].log_end_offset
    ends = range(end // 4, end, end // 4)
    for cut in (*ends, end):
        part = tmp_path / f"part-{cut}"
        shutil.copytree(source, part)
        with LogManager.open(part, now_ms=NOW_MS) as manager:
            manager.truncate_to("txn", 0, cut, now_ms=NOW_MS)
        with StillBroker(data_dir=part) as broker, Client(broker.bootstrap_servers) as client:
            assert pull(client, url, PullOptions(topics=["txn"], groups=False)).is_complete
    ours, theirs = LogDirectory(url)["txn", 0], LogDirectory(source)["txn", 0]
    assert list(ours.read(isolation="read_committed")) == list(theirs.read(isolation="read_committed"))
    assert ours.last_stable_offset == theirs.last_stable_offset
    assert damages(url) == []


@pytest.mark.sampled
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("offset", [20, 2500, 4995])
def test_a_shorter_log_of_the_leader_truncates_the_copy_at_any_stop(offset: int, tmp_path: Path, url: str) -> None:
    source = tmp_path / "source"
    with Broker(data_dir=source) as broker, Client(broker.bootstrap_servers) as client:
        create(broker, "orders")
        write(client, "orders", 500)
        pull(client, url)
        before = stored_batches(url)["orders", 0]
    with LogManager.open(source, now_ms=NOW_MS) as manager:
        manager.truncate_to("orders", 0, offset, now_ms=NOW_MS)
    cut = before[: offset // 10]
    with Broker(data_dir=source) as broker, Client(broker.bootstrap_servers) as client:
        for stop_at in range(3, 100, 4):
            try:
                result = pull(client, StoreTarget(StoppingStore(url, stop_at)))
            except Stopped:
                check_whole(url, {("orders", 0): before})
                continue
            break
        assert result.is_complete
        assert stored_batches(url)["orders", 0] == cut
        write(client, "orders", 40)
        assert pull(client, url).is_complete
    assert stored_batches(url)["orders", 0] == batches(source)["orders", 0]
    assert damages(url) == []


def test_what_happens_to_topics_is_as_on_a_disk(broker: Broker, client: Client, tmp_path: Path, url: str) -> None:
    for topic in ("orders", "inside", "late", "empty"):
        create(broker, topic)
    write(client, "orders", 3)
    write(client, "inside", 3)
    write(client, "late", 3)
    write(client, "empty", 2)
    delete_records(broker, "inside", 15)
    delete_records(broker, "empty", 20)
    assert pull(client, url).is_complete
    write(client, "late", 5)
    write(client, "empty", 1)
    delete_records(broker, "late", 60)
    delete(broker, "orders")
    create(broker, "orders")
    write(client, "orders", 1)
    result = pull(client, url)
    assert result.is_complete
    assert sorted((each.kind, each.first_offset, each.end_offset) for each in result.events) == [
        ("gap", 30, 60),
        ("recreated", None, 30),
    ]
    found = LogDirectory(url)
    offsets = {key[0]: [record.offset for record in log.read()] for key, log in found.items()}
    assert offsets["inside"] == list(range(15, 30))
    assert offsets["late"] == [*range(30), *range(60, 80)]
    assert offsets["empty"] == list(range(20, 30))
    assert offsets["orders"] == list(range(10))
    assert found["inside", 0].log_start_offset == 15
    (stray,) = [each.name for each in open_store(url).list("") if each.name.endswith("-stray")]
    assert "partition.metadata" in {each.name for each in open_store(url).list(stray)}
    assert damages(url) == []


def test_the_staging_directory_is_bounded_and_removed(
    broker: Broker, client: Client, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.maintenance.pull.store_target.STAGED_BYTES", 30_000)
    create(broker, "orders", 4)
    for partition in range(4):
        write(client, "orders", 300, partition)
    staged = list[int]()
    appended = StoreTarget.appended

    def measured(self: StoreTarget, key: tuple[str, int]) -> None:
        appended(self, key)
        staged.append(sum(path.stat().st_size for path in tmp_path.glob("kwire-pull-*/*/*.log")))

    monkeypatch.setattr(StoreTarget, "appended", measured)
    with Client(broker.bootstrap_servers, **{"max.partition.fetch.bytes": 10_000, "fetch.max.bytes": 10_000}) as slow:
        assert pull(slow, url).is_complete
    assert max(staged) < 50_000
    assert list(tmp_path.glob("kwire-pull-*")) == []
    assert stored_batches(url) == batches(tmp_path / "source")


def test_two_pulls_do_not_write_one_copy(
    broker: Broker, client: Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "orders")
    write(client, "orders", 1)
    store = open_writable_store(url, {})
    pull(client, url)
    other = Owner(id="1", host="elsewhere", pid=7, staging="/tmp")
    store.write(LEASE, msgspec.json.encode(other))
    monkeypatch.setattr("kwire.maintenance.pull.lease.POLL_S", 0.01)

    class Renewed(WritableObjectStore):
        """The store of another process, which renews its lease after each time that it is read."""

        renewals = 0

        def read_all(self, path: str) -> bytes:
            data = super().read_all(path)
            if path == LEASE:
                self.renewals += 1
                self.write(LEASE, msgspec.json.encode(msgspec.structs.replace(other, renewals=self.renewals)))
            return data

    with pytest.raises(DirectoryInUse, match="process 7 on elsewhere is pulling into it"):
        pull(client, StoreTarget(Renewed(url, {})))
    monkeypatch.setattr("kwire.maintenance.pull.lease.EXPIRES_S", 0.1)
    assert pull(client, url).is_complete

    def taken() -> bool:
        store.write(LEASE, msgspec.json.encode(other))
        return False

    monkeypatch.setattr("kwire.maintenance.pull.lease.RENEW_S", 0.0)
    monkeypatch.setattr("kwire.maintenance.pull.copier.CHECKPOINT_S", 0.0)
    with pytest.raises(LogError, match="process 7 on elsewhere has taken over this copy"):
        pull(client, url, PullOptions(follow=True), stop=taken)


def test_only_a_copy_of_the_same_cluster_is_continued(client: Client, url: str) -> None:
    pull(client, url)
    refused = pytest.raises(OptionError, match=r"a copy of cluster \S+, not of \S+")
    with Broker() as other, Client(other.bootstrap_servers) as of_other, refused:
        pull(of_other, url)
    open_writable_store(f"{url}-2", {}).write("notes.txt", b"")
    with pytest.raises(OptionError, match="not empty, and not a copy"):
        pull(client, f"{url}-2")
    with pytest.raises(OptionError, match="not supported as a target"):
        pull(client, "simplecache::memory://x")


# ---- S3


@pytest.mark.slow
def test_a_copy_in_s3_is_read_while_it_grows(
    broker: Broker, client: Client, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("kwire.maintenance.pull.copier.CHECKPOINT_S", 0.0)
    monkeypatch.setattr("kwire.maintenance.pull.store_target.TAIL_BYTES", 100_000)
    object_store.fs.mkdir("copies")
    create(broker, "orders", 2)
    url, options, sizes = "s3://copies/one", object_store.options, list[int]()
    with Client(broker.bootstrap_servers) as writer:

        def stop() -> bool:
            write(writer, "orders", 100, partition=len(sizes) % 2)
            source = batches(tmp_path / "source")
            check_whole(url, source, **options)
            sizes.append(sum(map(len, stored_batches(url, **options).values())))
            return len(sizes) > 12

        result = pull(client, url, PullOptions(follow=True), stop=stop, storage_options=options)
    assert result.copied_bytes
    assert pull(client, url, storage_options=options).is_complete
    assert sorted(sizes) == sizes
    assert len(set(sizes)) > 3
    assert stored_batches(url, **options) == batches(tmp_path / "source")
    assert damages(url, **options) == []


@pytest.mark.slow
def test_requests_of_a_copy_in_s3(
    broker: Broker, client: Client, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment takes four: its snapshot, batches and two indexes; a run a few more."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("kwire.maintenance.pull.store_target.SEGMENT_BYTES", 100_000)
    object_store.fs.mkdir("copies")
    create(broker, "orders")
    write(client, "orders", 6000)
    object_store.requests.clear()
    result = pull(client, "s3://copies/one", storage_options=object_store.options)
    segments = len(result.copied["orders", 0].segments)
    writes = [each for each in object_store.requests if each.startswith("PUT")]
    assert segments > 8
    assert len(writes) <= 4 * segments + 14, object_store.requests
    assert len(object_store.requests) - len(writes) <= 16, object_store.requests


def test_errors_of_a_store_name_the_file_and_the_remedy(
    broker: Broker, client: Client, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("kwire.maintenance.pull.copier.CHECKPOINT_S", 0.0)
    with pytest.raises(LogError, match=r"s3://nowhere/copy/kwire-manifest.json: cannot be written: .*bucket"):
        pull(client, "s3://nowhere/copy", storage_options=object_store.options)
    object_store.fs.mkdir("copies")
    create(broker, "orders")
    write(client, "orders", 1)
    steps = iter(range(100))

    def check_credentials_after(requests: str) -> None:
        url = f"{object_store.endpoint}/moto-api/reset-auth"
        check = urllib.request.Request(url, data=requests.encode(), method="POST")
        check.add_header("Content-Type", "text/plain")
        urllib.request.urlopen(check).close()

    def revoke() -> bool:
        if next(steps) == 1:
            check_credentials_after("0")
            write(client, "orders", 1)
        return False

    denied = pytest.raises(LogError, match=r"s3://copies/one/.*access denied: .*; check the credentials and their perm")
    try:
        with denied:
            pull(client, "s3://copies/one", PullOptions(follow=True), stop=revoke, storage_options=object_store.options)
    finally:
        check_credentials_after("inf")
    with pytest.raises(LogError, match="cannot be opened"):
        pull(client, "nothing://nowhere/copy")
    assert list(tmp_path.glob("kwire-pull-*")) == []


@pytest.mark.slow
def test_copies_in_s3_continue_after_kills_and_are_whole_for_readers_meanwhile(
    broker: Broker, client: Client, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 kills at random moments; a reader checks each manifest that it sees, and what a directory reader finds."""
    object_store.fs.mkdir("copies")
    create(broker, "orders", 3, segment_bytes="1048576")
    url, options, rng = "s3://copies/one", object_store.options, random.Random(11)
    environment = os.environ | {
        "AWS_ENDPOINT_URL": object_store.endpoint,
        "AWS_ACCESS_KEY_ID": "hunter2",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "TMPDIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "kwire.cli", "log", "pull", f"kafka://{broker.bootstrap_servers}", "-o", url]
    stopped, errors, checked = threading.Event(), list[BaseException](), list[int]()

    def read() -> None:
        while not stopped.is_set():
            try:
                check_latest(url, tmp_path / "source", options)
                checked.append(1)
            except BaseException as error:
                errors.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    leftovers = 0
    try:
        for i in range(30):
            for partition in range(3):
                write_large(client, "orders", partition, rng.randrange(1, 12))
            process = subprocess.Popen([*command, *(["--follow"] if i % 3 == 2 else [])], env=environment)
            while process.poll() is None and not list(tmp_path.glob("kwire-pull-*/orders-*/*.log")):
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.8))
            process.send_signal(signal.SIGKILL)
            process.wait()
            leftovers += bool(list(tmp_path.glob("kwire-pull-*/orders-*/*.log")))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finally:
        stopped.set()
        reader.join()
    for error in errors:
        raise error
    assert done.returncode == 0, done.stderr
    assert len(checked) > 10
    assert leftovers > 5  # kills in the middle of copying
    assert stored_batches(url, **options) == batches(tmp_path / "source")
    assert damages(url, **options) == []
    assert manifest_damages(url, set(LogDirectory(url, **options)), options=options) == []
    assert list(tmp_path.glob("kwire-pull-*")) == []


def write_large(client: Client, topic: str, partition: int, n: int) -> None:
    """Write n batches of 200 kB."""
    producer = Producer(client)
    for _ in range(n):
        rows = pa.record_batch({"value": pa.array([os.urandom(200_000)], pa.binary())})
        (piece,) = ColumnWriter(**producer.fields(topic, partition)).write(rows)
        producer.send(topic, partition, piece, 1)


def check_latest(url: str, source: Path, options: dict[str, Any]) -> None:
    """Check the newest segments that a manifest names, and that the offsets of a directory reader have no holes."""
    store = open_writable_store(url, options)
    if MANIFEST not in store.find(""):
        return
    manifest = Manifest.parse(store.read_all(MANIFEST), MANIFEST)
    for topic, entry in manifest.topics.items():
        for number, partition in entry.partitions.items():
            ends = [each.base_offset for each in partition.segments[1:]] + [partition.log_end_offset]
            for segment, end in list(zip(partition.segments, ends, strict=False))[-2:]:
                data = store.read_all(f"{topic}-{number}/{segment.base_offset:020}.log")[: segment.size_bytes]
                assert hashlib.sha256(data).hexdigest() == segment.sha256
                found = [batch.last_offset for batch in read_batches(data)]
                assert found[-1] + 1 == end
    for key, log in LogDirectory(url, may_be_empty=True, **options).items() if manifest.topics else ():
        original = LogDirectory(source)[key]
        start = max(log.log_end_offset - 10, 0)
        ours = {record.offset: record.value for record in log.read(start_offset=start)}
        theirs = {record.offset: record.value for record in original.read(start_offset=start)}
        assert list(ours) == list(range(start, start + len(ours)))
        assert all(theirs[offset] == value for offset, value in ours.items())
