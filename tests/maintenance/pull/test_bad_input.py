"""Brokers that lie, disks that are full, credentials that end: clear errors, and a copy that a later run completes."""

from __future__ import annotations

import hashlib
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.errors import BrokerError, LogError
from kwire.log import LogDirectory
from kwire.maintenance.pull import MANIFEST, Manifest, PullOptions, pull
from kwire.maintenance.pull.cluster import Bounds, SourceCluster
from kwire.maintenance.pull.manifest import manifest_damages
from kwire.maintenance.verify import verify_directory
from kwire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateTopicsRequest,
)
from kwire.records import ColumnWriter
from tests.maintenance.pull.test_pull import batches, create, write
from tests.rewriting_proxy import RewritingProxy

SMALL: dict[str, object] = {"max.partition.fetch.bytes": 300, "fetch.max.bytes": 300}
Lie = Callable[[bytes], bytes]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "source") as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap_servers, **{"default.api.timeout.ms": 1500}) as opened:
        yield opened


def is_intact(copy: Path) -> bool:
    """Return whether the copy has no damage, and what its manifest says."""
    logs = LogDirectory(copy)
    damages = [each for each in verify_directory(logs).damages if not each.is_harmless]
    return not damages and not manifest_damages(str(copy), set(logs))


def with_length(n: int) -> Lie:
    """Set the length of the first batch."""
    return lambda records: records[:8] + struct.pack(">i", n) + records[12:]


LIES: dict[str, tuple[Lie, str]] = {
    "nothing": (lambda records: b"", "no records from offset 0 on for 2 s; the high watermark was 200"),
    "part of a batch": (lambda records: records[:100], "100 bytes of a larger batch at offset 0"),
    "too long": (with_length(1_000_000), "bytes of a larger batch at offset 0"),
    "too short": (with_length(1), "size 1 is below the minimum"),
    "negative": (with_length(-5), "size -5 is below the minimum"),
    "unknown magic": (lambda records: records[:16] + b"\x09" + records[17:], "magic 9"),
    "wrong offset": (lambda records: struct.pack(">q", 100) + records[8:], "offset"),
    "changed byte": (lambda records: records[:90] + b"?" + records[91:], "stored crc"),
    "noise": (lambda records: random.Random(1).randbytes(len(records)), ""),
}


@pytest.mark.sampled
@pytest.mark.parametrize("lie", LIES)
def test_records_that_are_no_batches_end_their_partition(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    create(broker, "orders")
    write(client, "orders", 20)
    change, expected = LIES[lie]
    with monkeypatch.context() as patch:
        patch.setattr("kwire.broker.faults.corruption.flip_last_byte", change)
        broker.faults.corrupt("Fetch", times=None)
        result = pull(client, str(tmp_path / "copy"))
        broker.faults.clear()
    assert not result.is_complete
    assert not Manifest.parse((tmp_path / "copy" / MANIFEST).read_bytes(), MANIFEST).complete
    assert expected in str(result.failures["orders", 0])
    assert is_intact(tmp_path / "copy")
    assert pull(client, str(tmp_path / "copy")).is_complete
    assert batches(tmp_path / "copy") == batches(tmp_path / "source")


def test_a_broker_that_rejects_the_offsets_it_states_is_asked_again_with_pauses(broker: Broker, tmp_path: Path) -> None:
    create(broker, "orders")
    broker.faults.fail("Fetch", "OFFSET_OUT_OF_RANGE", times=10_000)
    settings = {"default.api.timeout.ms": 1500, "retry.backoff.ms": 200}
    with Client(broker.bootstrap_servers, **settings) as client:
        write(client, "orders", 20)
        result = pull(client, str(tmp_path / "copy"))
        (fault,) = broker.faults.pending
        assert fault.times is not None
        assert 2 <= 10_000 - fault.times <= 10
        assert "no records from offset 0 on" in str(result.failures["orders", 0])
        broker.faults.clear()
        assert pull(client, str(tmp_path / "copy")).is_complete
    assert batches(tmp_path / "copy") == batches(tmp_path / "source")


def test_batches_that_were_already_sent_are_not_appended_again(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "orders")
    write(client, "orders", 20)
    first: list[bytes] = []

    def repeat(records: bytes) -> bytes:
        first.append(records)
        return first[0]

    with Client(broker.bootstrap_servers, **{"max.partition.fetch.bytes": 300}) as small:
        monkeypatch.setattr("kwire.broker.faults.corruption.flip_last_byte", repeat)
        broker.faults.corrupt("Fetch", times=None)
        result = pull(small, str(tmp_path / "copy"))
        broker.faults.clear()
    assert "a Fetch response for offset" in str(result.failures["orders", 0])
    assert pull(client, str(tmp_path / "copy")).is_complete
    assert batches(tmp_path / "copy") == batches(tmp_path / "source")


def test_a_copy_is_complete_if_compaction_leaves_no_batch_below_the_high_watermark(
    broker: Broker, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run copies, compaction may remove what it still has to copy: the next batch is beyond its end."""
    source = tmp_path / "with hole"
    create(broker, "orders")
    write(client, "orders", 20)
    shutil.copytree(tmp_path / "source", source)
    (log,) = source.glob("orders-0/*.log")
    at = [batch.position for _, batch in LogDirectory(source)["orders", 0].batches()]
    log.write_bytes(log.read_bytes()[: at[5]] + log.read_bytes()[at[15] :])
    for index in source.glob("orders-0/*index"):
        index.unlink()
    monkeypatch.setattr(
        SourceCluster,
        "bounds",
        lambda self, *wanted: ({("orders", 0): Bounds(log_start_offset=0, high_watermark=100)}, {}),
    )
    with Broker(data_dir=source) as other, Client(other.bootstrap_servers) as connected:
        result = pull(connected, str(tmp_path / "copy"), PullOptions(topics=["orders"], groups=False))
    assert result.is_complete
    assert result.copied["orders", 0].log_end_offset == 50


def test_noise_is_not_a_manifest(broker: Broker, client: Client, tmp_path: Path) -> None:
    pull(client, str(tmp_path / "copy"))
    path = tmp_path / "copy" / MANIFEST
    for noise in (
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"topics":' * 100_000,
        path.read_bytes()[:-20],
        b'{"version": 1}',
    ):
        path.write_bytes(noise)
        with pytest.raises(LogError, match=r"kwire-manifest\.json: not a manifest of a copy"):
            pull(client, str(tmp_path / "copy"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    target = tmp_path / "disk"
    target.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", target], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs requires root")
    yield target
    subprocess.run(["umount", "-l", target], check=True)


def test_a_full_disk_is_reported_and_a_later_run_continues(
    broker: Broker, client: Client, tmp_path: Path, small_disk: Path
) -> None:
    create(broker, "orders", segment_bytes="1048576")
    for _ in range(14):
        write_value(client, "orders", b"x" * 900_000)
    copy = small_disk / "copy"
    command = [sys.executable, "-m", "kwire.cli", "log", "pull", f"kafka://{broker.bootstrap_servers}", "-o", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert not Manifest.parse((copy / MANIFEST).read_bytes(), MANIFEST).complete
    subprocess.run(["mount", "-o", "remount,size=60m", small_disk], check=True)
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert batches(copy) == batches(tmp_path / "source")
    assert is_intact(copy)


def write_value(client: Client, topic: str, value: bytes) -> None:
    producer = Producer(client)
    rows = pa.record_batch({"value": pa.array([value], pa.binary())})
    (piece,) = ColumnWriter(**producer.fields(topic, 0)).write(rows)
    producer.send(topic, 0, piece, 1)


def set_password(client: Client, user: str, password: str) -> None:
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user,
        mechanism=1,
        iterations=4096,
        salt=b"salt",
        salted_password=hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096),
    )
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
    results = client.request(request, AlterUserScramCredentialsResponse).results
    assert [each.error_code for each in results] == [0]


def test_a_password_that_is_changed_during_a_run_ends_it(tmp_path: Path) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "default.api.timeout.ms": 3000}
    listeners = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "users": {"root": "root-secret"}}
    copy = tmp_path / "copy"
    with Broker(data_dir=tmp_path / "source", **listeners) as broker:

        def connect(user: str, password: str, **settings: object) -> Client:
            given = {**login, "sasl.username": user, "sasl.password": password, **settings}
            return Client(broker.bootstrap_servers, **given)

        with connect("root", "root-secret") as root, connect("carol", "first", **SMALL) as carol:
            new = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
            root.request(CreateTopicsRequest(topics=[new]))
            write(root, "orders", 100)
            set_password(root, "carol", "first")

            def change(n: int) -> None:
                set_password(root, "carol", "second")
                broker.faults.drop("Fetch", client_id="*", times=1)

            small = PullOptions(topics=["orders"], groups=False)
            with pytest.raises(BrokerError, match="Authentication failed"):
                pull(carol, str(copy), small, progress=change)
        assert not Manifest.parse((copy / MANIFEST).read_bytes(), MANIFEST).complete
        broker.faults.clear()
        with connect("carol", "second") as carol:
            assert pull(carol, str(copy), small).is_complete
    assert batches(copy) == batches(tmp_path / "source")


def test_a_permission_that_is_revoked_during_a_run_ends_the_topic(broker: Broker, tmp_path: Path) -> None:
    create(broker, "orders")
    create(broker, "users")
    with Client(broker.bootstrap_servers, **SMALL) as client:
        write(client, "orders", 20)
        write(client, "users", 20)
        revoked = []

        def revoke(n: int) -> None:
            if not revoked:
                broker.faults.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED", times=1)
            revoked.append(n)

        result = pull(client, str(tmp_path / "copy"), progress=revoke)
    assert {each.code for each in result.failures.values() if isinstance(each, BrokerError)} == {29}
    assert not result.is_complete
    assert is_intact(tmp_path / "copy")


def test_topics_that_cannot_be_copied_do_not_end_the_others(broker: Broker, client: Client, tmp_path: Path) -> None:
    """A name that no broker of Kafka accepts, and a partition that a response leaves out."""
    for name in ("orders", "other", "partial"):
        create(broker, name, 2)
        write(client, name, 1)

    def rename(response: Any) -> None:
        for topic in response.topics:
            if topic.name == "other":
                topic.name = "../other"

    def leave_out(response: Any) -> None:
        for topic in response.topics:
            if topic.name == "partial":
                del topic.partitions[1:]

    with RewritingProxy(("127.0.0.1", broker.port)) as proxy, Client(proxy.address) as puller:
        proxy.rewrite = {"MetadataResponse": rename, "ListOffsetsResponse": leave_out}
        result = pull(puller, str(tmp_path / "copy"))
    assert not result.is_complete
    assert sorted(result.failures) == [("../other", 0), ("../other", 1), ("partial", 1)]
    assert "topic name '../other' is invalid" in str(result.failures["../other", 0])
    assert "missing in the ListOffsets response" in str(result.failures["partial", 1])
    assert batches(tmp_path / "copy").keys() == {("orders", 0), ("orders", 1), ("partial", 0)}
    assert pull(client, str(tmp_path / "copy")).is_complete
    assert batches(tmp_path / "copy") == batches(tmp_path / "source")
