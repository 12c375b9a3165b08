"""Running Kafka brokers as paths: what kwire reads over the network equals their directories and Kafka's own tools."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trustme
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography.hazmat.primitives import serialization
from tests.waiting import HANG_S, until
from tools import kafka

from kwire.client import Client, ClusterAddress
from kwire.client.admin.groups import describe_groups
from kwire.client.admin.transactions import describe_transactions
from kwire.client.cluster_logs import ClusterLogs
from kwire.internal_topics.enums import Operation, PatternType, Permission, ResourceType
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups, replay_transactions
from kwire.maintenance.verify import verify_logs
from kwire.messages import CreateAclsRequest, CreateAclsResponse, ProduceRequest, ProduceResponse
from kwire.records import ColumnWriter

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

VERSIONS = ["2.8.2", "3.9.1", "4.4.0"]
SMALL = {"max.partition.fetch.bytes": 2_000}
SETTINGS: dict[str, str | int] = {"transaction.partition.verification.enable": "false"}


def kwire(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "kwire.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)


def rows(output: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output)
    return found


def fill(servers: str) -> None:
    """Create topics, and write plain, committed, aborted and open records; commit offsets of a group."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    topics = [NewTopic("orders", 2, 1, config={"segment.bytes": "1048576"}), NewTopic("orders-0", 1, 1)]
    for created in admin.create_topics([*topics, NewTopic("txn", 2, 1)]).values():
        created.result(HANG_S)
    for codec in ("none", "gzip", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "batch.size": 1_000})
        for n in range(500):
            producer.produce("orders", key=b"%d" % (n % 50), value=b"value %d" % n, partition=n % 2)
        producer.flush(HANG_S)
    for outcome in ("commit", "abort", "open"):
        producer = Producer({"bootstrap.servers": servers, "transactional.id": f"tx-{outcome}"})
        producer.init_transactions(HANG_S)
        producer.begin_transaction()
        for n in range(20):
            producer.produce("txn", value=f"{outcome} {n}".encode(), partition=n % 2)
        producer.flush(HANG_S)
        if outcome == "commit":
            producer.commit_transaction(HANG_S)
        elif outcome == "abort":
            producer.abort_transaction(HANG_S)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("orders", 0, 11), TopicPartition("orders", 1, 22)], asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module", params=VERSIONS)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.KafkaBroker]:
    folder = tmp_path_factory.mktemp("kafka")
    settings = {} if request.param == "2.8.2" else SETTINGS
    with kafka.KafkaBroker(folder, version=request.param, heap="512m", **settings) as broker:
        fill(broker.bootstrap_servers)
        yield broker


def test_everything_that_is_read_equals_the_directory(running: kafka.KafkaBroker) -> None:
    directory = LogDirectory(running.log_dir)
    with ClusterLogs(f"kafka://{running.bootstrap_servers}", **SMALL) as cluster:
        assert set(cluster) == {key for key in directory if key[0] != "__cluster_metadata"}
        for key, log in cluster.items():
            stored = directory[key]
            assert (log.log_start_offset, log.log_end_offset) == (stored.log_start_offset, stored.log_end_offset)
            assert log.size_bytes == stored.size_bytes
            assert log.topic_id == stored.topic_id or running.version == "2.8.2"  # its directories have none
            assert log.last_stable_offset == stored.last_stable_offset
            mine, theirs = ([bytes(b.buffer) for _, b in each.batches()] for each in (log, stored))
            assert mine == theirs, key
            assert log.leader_epochs == stored.leader_epochs or not log.log_end_offset, key
            for isolation in ("read_uncommitted", "read_committed"):
                columns = ["offset", "key", "value", "timestamp", "headers"]
                read = [each.read_arrow(3, None, isolation, columns).read_all() for each in (log, stored)]
                assert read[0].equals(read[1]), (key, isolation)
        assert verify_logs(cluster).damages == []


def test_commands_print_what_they_print_for_the_directory(running: kafka.KafkaBroker, tmp_path: Path) -> None:
    url, data = f"kafka://{running.bootstrap_servers}", running.log_dir
    for path, name in ((url, "mine"), (data, "theirs")):
        done = kwire(
            "log", "export", path, "--topic", "txn", "--isolation", "read_committed", "-o", tmp_path / f"{name}.jsonl"
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine.jsonl").read_text() == (tmp_path / "theirs.jsonl").read_text()
    verified = kwire("log", "verify", url)
    assert (verified.returncode, verified.stdout.endswith("no damage\n")) == (0, True)
    listed = {(row["topic"], row["partition"]): row for row in rows(kwire("log", "ls", url, "--format", "json").stdout)}
    assert listed["orders", 0]["log_end_offset"] == 1000
    newest = None if running.version == "2.8.2" else LogDirectory(data)["orders", 0].last_timestamp  # KIP-734
    assert listed["orders", 0]["last_timestamp"] == newest
    ambiguous = kwire("log", "ls", f"{url}/orders-0")
    assert (ambiguous.returncode, "both exist" in ambiguous.stderr) == (2, True)
    dumped = kwire("log", "dump", f"{url}/txn-1", "--format", "json")
    assert sum(row["count"] for row in rows(dumped.stdout)) == LogDirectory(data)["txn", 1].log_end_offset


def test_groups_and_transactions_of_the_admin_apis_equal_the_topics(running: kafka.KafkaBroker) -> None:
    cluster = ClusterLogs(f"kafka://{running.bootstrap_servers}")
    replayed, (described, asked) = replay_groups(cluster), describe_groups(cluster.client)
    assert described.groups.keys() == replayed.groups.keys() == {"billing"}
    mine, theirs = described.groups["billing"], replayed.groups["billing"]
    assert {key: each.offset for key, each in mine.offsets.items()} == {("orders", 0): 11, ("orders", 1): 22}
    assert {key: each.offset for key, each in theirs.offsets.items()} == {("orders", 0): 11, ("orders", 1): 22}
    assert (mine.state, mine.kind, asked.unseen) == (theirs.state, theirs.kind, {})
    stored = replay_transactions(cluster).transactions
    assert stored["tx-open"].is_open
    if running.version == "2.8.2":
        return  # ListTransactions came with 3.0
    found, _ = describe_transactions(cluster.client)
    for name in ("tx-commit", "tx-abort", "tx-open"):
        assert (found.transactions[name].producer_id, found.transactions[name].state) == (
            stored[name].producer_id,
            stored[name].state,
        )


def test_the_cluster_equals_its_metadata_log(running: kafka.KafkaBroker) -> None:
    url = f"kafka://{running.bootstrap_servers}"
    overview = {row["fact"]: row["value"] for row in rows(kwire("cluster", url, "--format", "json").stdout)}
    assert (overview["brokers"], overview["topics"]) == (1, 5)
    if running.version == "2.8.2":
        return  # with ZooKeeper
    for part, names in (
        ("topics", ("topic", "topic_id", "partitions", "configs")),
        ("partitions", ("topic", "partition", "leader", "leader_epoch", "replicas", "isr")),
        ("configs", ("resource_type", "resource_name", "name", "value")),
        ("features", ("feature", "level")),
    ):
        mine, theirs = (
            rows(kwire("cluster", path, part, "--format", "json").stdout) for path in (url, running.log_dir)
        )
        shown = [[[row[name] for name in names] for row in each] for each in (mine, theirs)]
        assert shown[0] == shown[1], part


def hang(client: Client, topic: str) -> None:
    """Write a transactional batch of which no coordinator knows, as a producer of a lost coordinator leaves it."""
    times = pa.array([1_600_000_000_000_000], pa.timestamp("us", "UTC"))
    columns = {"value": pa.array([b"hung"], pa.binary()), "timestamp": times}
    writer = ColumnWriter(producer_id=4711, producer_epoch=3, base_sequence=0, is_transactional=True)
    (batch,) = writer.write(pa.record_batch(columns))
    data = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(
        transactional_id="lost",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
    )
    response = client.request(request, ProduceResponse, node_id=client.leader((topic, 0)), version=9)
    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == 0


def test_hanging_transactions_are_those_of_kafkas_tool_and_can_be_ended(running: kafka.KafkaBroker) -> None:
    servers = running.bootstrap_servers
    url = f"kafka://{servers}"
    if running.version == "2.8.2":
        return  # ListTransactions came with 3.0
    with ClusterAddress.parse(url).connect() as client:
        hang(client, "orders-0")
    result = kwire("txn", url, "--hanging", "--format", "json")
    assert result.returncode == 1, result.stderr
    (found,) = rows(result.stdout)
    assert (found["topic"], found["partition"], found["producer_id"], found["producer_epoch"]) == (
        "orders-0",
        0,
        4711,
        3,
    )
    if running.version == "3.9.1":
        tool = "org.apache.kafka.tools.TransactionsCommand"
        out = kafka.java(
            tool, "--bootstrap-server", servers, "find-hanging", "--broker-id", "1", version=running.version
        )
        (line,) = [line.split() for line in out.splitlines() if line.startswith("orders-0")]
        assert line[:3] == ["orders-0", "0", "4711"]
    assert ClusterLogs(url)["orders-0", 0].last_stable_offset == 0
    ended = kwire(*found["command"].split()[1:2], f"{url}/orders-0-0", "--hanging", "--abort", "--yes")
    assert ended.returncode == 0, ended.stderr
    assert "aborted" in ended.stderr
    log = ClusterLogs(url)["orders-0", 0]
    until(lambda: log.reopened().last_stable_offset == 2)
    assert list(log.read(0, None, "read_committed")) == []
    assert [record.value for record in log.read()] == [b"hung"]
    assert kwire("txn", url, "--hanging").returncode == 0


def test_follow_prints_records_as_they_are_written(running: kafka.KafkaBroker) -> None:
    url = f"kafka://{running.bootstrap_servers}/orders"
    command = [sys.executable, "-m", "kwire.cli", "log", "dump", url, "--follow", "--deep", "--format", "jsonl"]
    since = str(int(time.time() * 1000))
    with subprocess.Popen([*command, "--since", since], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for n in range(50):
            producer.produce("orders", value=b"new %d" % n, partition=n % 2)
            producer.flush(HANG_S)
        found = [json.loads(process.stdout.readline()) for _ in range(50)]
        process.kill()
    assert sorted(int(row["value"].split()[1]) for row in found) == list(range(50))


# ---- TLS, SASL, and an account that may read one topic


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, Path, kafka.KafkaBroker]]:
    """A broker with SASL_SSL and an authorizer; the URL, alice's config file, and the broker."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    keystore, truststore = tmp_path / "broker.pem", tmp_path / "ca.pem"
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    keystore.write_bytes(key + b"".join(each.bytes() for each in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(truststore)
    ports = kafka.free_port(), kafka.free_port(), kafka.free_port()
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    broker = kafka.KafkaBroker(tmp_path / "kafka", version="3.9.1", heap="512m")
    broker.port = ports[0]
    broker.settings |= {
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]},SASL_SSL://127.0.0.1:{ports[2]}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},SASL_SSL://127.0.0.1:{ports[2]}",
        "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{login} user_alice="wonder\\\\=land";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\nssl.truststore.location={truststore}\n"
        f'sasl.jaas.config={login} \\\n    username="alice" password="wonder\\\\=land";\n'
    )
    with broker:
        fill(broker.bootstrap_servers)
        with ClusterAddress.parse(f"kafka://{broker.bootstrap_servers}").connect() as client:
            grants = [
                (ResourceType.TOPIC, "orders", Operation.READ),
                (ResourceType.GROUP, "billing", Operation.DESCRIBE),
                (ResourceType.TRANSACTIONAL_ID, "tx-open", Operation.DESCRIBE),
            ]
            creations = [
                CreateAclsRequest.AclCreation(
                    resource_type=kind,
                    resource_name=name,
                    resource_pattern_type=PatternType.LITERAL,
                    principal="User:alice",
                    host="*",
                    operation=operation,
                    permission_type=Permission.ALLOW,
                )
                for kind, name, operation in grants
            ]
            results = client.request(CreateAclsRequest(creations=creations), CreateAclsResponse).results
            assert [each.error_code for each in results] == [0, 0, 0]
        yield f"kafka://127.0.0.1:{ports[2]}", config, broker


def test_an_account_with_few_permissions_sees_what_it_may(
    secured: tuple[str, Path, kafka.KafkaBroker], tmp_path: Path
) -> None:
    url, config, broker = secured
    login = ("--config-file", config)
    listed = kwire("log", "ls", url, *login, "--format", "json")
    assert [(row["topic"], row["log_end_offset"], row["size_bytes"]) for row in rows(listed.stdout)] == [
        ("orders", 1000, None),
        ("orders", 1000, None),
    ]
    exported = kwire("log", "export", f"{url}/orders", *login, "-o", tmp_path / "mine.jsonl")
    assert exported.returncode == 0, exported.stderr
    kwire("log", "export", broker.log_dir, "--topic", "orders", "-o", tmp_path / "theirs.jsonl")
    assert (tmp_path / "mine.jsonl").read_text() == (tmp_path / "theirs.jsonl").read_text()
    refused = kwire("log", "ls", f"{url}/txn", *login)
    assert (refused.returncode, "TOPIC_AUTHORIZATION_FAILED" in refused.stderr) == (1, True)

    groups = kwire("group", url, "billing", *login, "--format", "json")
    assert [(row["offset"], row["lag"]) for row in rows(groups.stdout)] == [(11, 989), (22, 978)]
    assert groups.stderr.startswith("kwire: from ListGroups, DescribeGroups, ")
    (transaction,) = rows(kwire("txn", url, *login, "--format", "json").stdout)
    assert (transaction["transactional_id"], transaction["state"]) == ("tx-open", "Ongoing")
    overview = kwire("cluster", url, *login, "--format", "json")
    assert overview.returncode == 0, overview.stderr
    facts = {row["fact"]: row["value"] for row in rows(overview.stdout)}
    assert (facts["topics"], facts["users"], facts["acls"]) == (1, None, None)
    assert "not visible: acls: CLUSTER_AUTHORIZATION_FAILED" in overview.stderr

    copy = tmp_path / "copy"
    pulled = kwire("log", "pull", url, "-o", copy, *login)
    assert pulled.returncode == 0, pulled.stderr
    assert "not visible: topic __consumer_offsets: TOPIC_AUTHORIZATION_FAILED" in pulled.stderr
    assert "__consumer_offsets: made from ListGroups, DescribeGroups" in pulled.stdout
    offsets = rows(kwire("group", copy, "billing", "--format", "json").stdout)
    assert [(row["offset"], row["lag"]) for row in offsets] == [(11, 989), (22, 978)]
    (transaction,) = rows(kwire("txn", copy, "--format", "json").stdout)
    assert (transaction["transactional_id"], transaction["state"]) == ("tx-open", "Ongoing")
    (log,) = (each for each in copy.glob("__consumer_offsets-*/*.log") if each.stat().st_size)
    dumped = kafka.java("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(log))
    assert dumped.count('"group":"billing"') == 2

    config.write_text(config.read_text().replace("wonder", "other"))
    wrong = kwire("log", "ls", url, *login)
    assert wrong.returncode == 1
    assert "Authentication failed" in wrong.stderr
    assert "land" not in wrong.stderr
