"""The command line tools of Kafka 3.9 on the broker."""

from __future__ import annotations

import json
import logging
import random
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.waiting import HANG_S
from tools import kafka

from kwire import messages
from kwire.broker import Broker

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

TOOLS = "org.apache.kafka.tools."
PERFORMANCE = 2000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    kafka.jars()
    kafka.need("java", "openjdk-17-jdk-headless")
    settings = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    with Broker(
        tmp_path_factory.mktemp("broker") / "data", acls=True, super_users="User:ANONYMOUS", **settings
    ) as broker:
        yield broker


def tool(name: str, *arguments: str, text: str = "", fails: bool = False) -> str:
    """Run a tool and return its output, errors and log included."""
    command = [kafka.need("java", "openjdk-17-jdk-headless"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-cp", f"{kafka.jars()}/*", name, *arguments]
    done = subprocess.run(
        command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, check=False
    )
    assert (done.returncode != 0) is fails, done.stdout[-3000:]
    return done.stdout


def test_topics_are_created_described_altered_and_deleted(broker: Broker) -> None:
    to = ("--bootstrap-server", broker.bootstrap_servers)
    name = TOOLS + "TopicCommand"
    config = ("--config", "retention.ms=1000000", "--config", "cleanup.policy=compact,delete")
    assert "Created topic made." in tool(name, *to, "--create", "--topic", "made", "--partitions", "2", *config)
    printed = tool(name, *to, "--create", "--topic", "made", "--partitions", "2", fails=True)
    assert "Topic 'made' already exists." in printed
    described = tool(name, *to, "--describe", "--topic", "made")
    assert (
        "PartitionCount: 2\tReplicationFactor: 1\tConfigs: cleanup.policy=compact,delete,retention.ms=1000000"
        in described
    )
    assert "Partition: 1\tLeader: 1\tReplicas: 1\tIsr: 1" in described
    tool(name, *to, "--alter", "--topic", "made", "--partitions", "4")
    assert "PartitionCount: 4" in tool(name, *to, "--describe", "--topic", "made")
    assert "made" in tool(name, *to, "--list").split()
    tool(name, *to, "--delete", "--topic", "made")
    assert "made" not in tool(name, *to, "--list").split()


def test_configs_of_topics_brokers_and_users_are_altered(broker: Broker) -> None:
    broker.call(lambda node: node.controller.create_topic("settings", 1))
    to = ("--bootstrap-server", broker.bootstrap_servers)
    name = "kafka.admin.ConfigCommand"
    topic = (*to, "--entity-type", "topics", "--entity-name", "settings")
    assert "Completed updating config" in tool(name, *topic, "--alter", "--add-config", "max.message.bytes=2000000")
    assert "max.message.bytes=2000000 sensitive=false" in tool(name, *topic, "--describe")
    tool(name, *topic, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tool(name, *topic, "--describe")
    refused = tool(name, *topic, "--alter", "--add-config", "max.message.bytes=many", fails=True)
    assert "InvalidConfigurationException" in refused
    brokers = (*to, "--entity-type", "brokers", "--entity-default")
    tool(name, *brokers, "--alter", "--add-config", "log.retention.ms=123456789")
    assert "log.retention.ms=123456789" in tool(name, *brokers, "--describe")
    user = (*to, "--entity-type", "users", "--entity-name", "alice")
    for setting in ("SCRAM-SHA-256=[iterations=4096,password=secret]", "producer_byte_rate=1024"):
        tool(name, *user, "--alter", "--add-config", setting)
    described = tool(name, *user, "--describe")
    assert "producer_byte_rate=1024" in described
    assert "SCRAM-SHA-256=iterations=4096" in described


def test_the_console_producer_and_consumer_work(broker: Broker) -> None:
    to = ("--bootstrap-server", broker.bootstrap_servers)
    broker.call(lambda node: node.controller.create_topic("console", 1))
    tool(
        "kafka.tools.ConsoleProducer", *to, "--topic", "console", "--property", "parse.key=true",
        "--property", "parse.headers=true", "--compression-codec", "zstd", text="h:1\tk\tone\nh:2\tk\ttwo\n",
    )  # fmt: skip
    printed = tool(
        TOOLS + "consumer.ConsoleConsumer", *to, "--topic", "console", "--from-beginning", "--max-messages", "2",
        "--group", "console", "--timeout-ms", "60000", "--property", "print.headers=true", "--property",
        "print.key=true", "--property", "print.offset=true", "--isolation-level", "read_committed",
    )  # fmt: skip
    assert "Offset:0\th:1\tk\tone\nOffset:1\th:2\tk\ttwo\n" in printed
    assert "Processed a total of 2 messages" in printed


def test_a_consumer_of_several_topics_gets_each_record_once_while_others_write(broker: Broker) -> None:
    """The partitions of its fetch session change places."""
    topics, stopped, count = [f"several-{number}" for number in range(4)], threading.Event(), Counter[tuple[str, int]]()
    for topic in topics:
        broker.create_topic(topic, partitions=2)
    draw, producer = random.Random(1), Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 2})

    def write() -> None:
        while not stopped.wait(0.003):
            for _ in range(5):
                place = draw.choice(topics), draw.randrange(2)
                producer.produce(place[0], f"{place[0]} {place[1]} {count[place]}", partition=place[1])
                count[place] += 1
            producer.poll(0)
        assert not producer.flush(HANG_S)

    writer = threading.Thread(target=write)
    writer.start()
    end = threading.Timer(15, stopped.set)
    end.start()
    try:
        printed = tool(
            TOOLS + "consumer.ConsoleConsumer", "--bootstrap-server", broker.bootstrap_servers, "--include",
            "several-.*", "--from-beginning", "--timeout-ms", "10000", "--property", "print.partition=true",
            "--property", "print.offset=true",
        )  # fmt: skip
    finally:
        stopped.set()
        writer.join()
        end.cancel()
    found = re.findall(r"^Partition:(\d)\tOffset:(\d+)\t(several-\d) (\d) (\d+)$", printed, re.MULTILINE)
    assert all(each[:2] == each[3:] for each in found)
    assert Counter((topic, int(partition)) for _, _, topic, partition, _ in found) == count


def test_groups_are_described_reset_and_deleted(broker: Broker) -> None:
    """Uses the group of the console consumer."""
    to = ("--bootstrap-server", broker.bootstrap_servers)
    name = TOOLS + "consumer.group.ConsumerGroupCommand"
    assert "console" in tool(name, *to, "--list").split()
    assert "console" in tool(name, *to, "--list", "--state", "Empty")
    assert rows(tool(name, *to, "--describe", "--group", "console"))[-1][:6] == [
        "console",
        "console",
        "0",
        "2",
        "2",
        "0",
    ]
    assert "Empty" in tool(name, *to, "--describe", "--group", "console", "--state")
    reset = tool(name, *to, "--group", "console", "--topic", "console", "--reset-offsets", "--to-earliest", "--execute")
    assert rows(reset)[-1][-4:] == ["console", "console", "0", "0"]
    assert rows(tool(name, *to, "--describe", "--group", "console"))[-1][3:6] == ["0", "2", "2"]
    tool(name, *to, "--delete-offsets", "--group", "console", "--topic", "console")
    assert "Deletion of requested consumer groups ('console') was successful." in tool(
        name, *to, "--delete", "--group", "console"
    )
    assert "console" not in tool(name, *to, "--list").split()


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.strip()]


def test_the_performance_tools_work(broker: Broker) -> None:
    broker.call(lambda node: node.controller.create_topic("perf", 2))
    written = tool(
        TOOLS + "ProducerPerformance", "--topic", "perf", "--num-records", str(PERFORMANCE), "--record-size", "100",
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", "acks=all",
    )  # fmt: skip
    assert f"{PERFORMANCE} records sent" in written
    read = tool(
        TOOLS + "ConsumerPerformance", "--bootstrap-server", broker.bootstrap_servers, "--topic", "perf",
        "--messages", str(PERFORMANCE), "--timeout", "60000",
    )  # fmt: skip
    assert rows(read)[-1][6].rstrip(",") == str(PERFORMANCE), read
    transactional = tool(
        TOOLS + "ProducerPerformance", "--topic", "perf", "--num-records", str(PERFORMANCE), "--record-size", "100",
        "--throughput", "-1", "--transactional-id", "perf", "--transaction-duration-ms", "50",
        "--producer-props", f"bootstrap.servers={broker.bootstrap_servers}",
    )  # fmt: skip
    assert f"{PERFORMANCE} records sent" in transactional


def test_the_verifiable_clients_work(broker: Broker) -> None:
    broker.call(lambda node: node.controller.create_topic("verified", 2))
    to = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "verified")
    sent = events(tool(TOOLS + "VerifiableProducer", *to, "--max-messages", "100"))
    (summary,) = sent["tool_data"]
    assert (summary["sent"], summary["acked"]) == (100, 100)
    read = tool(
        TOOLS + "VerifiableConsumer", *to, "--group-id", "verified", "--max-messages", "100", "--verbose",
        "--reset-policy", "earliest",
    )  # fmt: skip
    seen = events(read)
    assert sorted(int(each["value"]) for each in seen["record_data"]) == list(range(100))
    assert all(each["success"] for each in seen["offsets_committed"])


def events(printed: str) -> dict[str, list[dict[str, object]]]:
    """Return the JSON events of the verifiable clients, by name."""
    found: dict[str, list[dict[str, object]]] = {}
    for line in printed.splitlines():
        if line.startswith("{"):
            event = json.loads(line)
            found.setdefault(event["name"], []).append(event)
    return found


def test_transactions_are_listed_described_and_found(broker: Broker) -> None:
    """Uses the transactional id of the performance test."""
    to = ("--bootstrap-server", broker.bootstrap_servers)
    name = TOOLS + "TransactionsCommand"
    (listed,) = [row for row in rows(tool(name, *to, "list")) if row[0] == "perf"]
    assert listed[-1] == "CompleteCommit"
    described = rows(tool(name, *to, "describe", "--transactional-id", "perf"))[-1]
    assert described[4] == "CompleteCommit"
    producers = rows(tool(name, *to, "describe-producers", "--topic", "perf", "--partition", "0"))
    assert listed[2] in [row[0] for row in producers]
    assert "perf" not in tool(name, *to, "find-hanging", "--broker-id", "1")


def test_acls_are_added_listed_and_removed(broker: Broker) -> None:
    to = ("--bootstrap-server", broker.bootstrap_servers)
    name = "kafka.admin.AclCommand"
    entry = ("--allow-principal", "User:bob", "--producer", "--topic", "rights", "--resource-pattern-type", "prefixed")
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW)" in tool(name, *to, "--add", *entry)
    listed = tool(name, *to, "--list", "--principal", "User:bob")
    assert "ResourcePattern(resourceType=TOPIC, name=rights, patternType=PREFIXED)" in listed
    tool(name, *to, "--remove", "--force", *entry)
    assert "User:bob" not in tool(name, *to, "--list")


def test_offsets_versions_log_dirs_and_delete_records_tools_work(broker: Broker, tmp_path: Path) -> None:
    broker.call(lambda node: node.controller.create_topic("places", 1))
    to = ("--bootstrap-server", broker.bootstrap_servers)
    tool("kafka.tools.ConsoleProducer", *to, "--topic", "places", text="1\n2\n3\n")
    offsets = TOOLS + "GetOffsetShell"
    for time, offset in (("earliest", "0"), ("latest", "3"), ("max-timestamp", "")):
        assert f"places:0:{offset}" in tool(offsets, *to, "--topic", "places", "--time", time)
    gone = tmp_path / "gone.json"
    gone.write_text('{"partitions": [{"topic": "places", "partition": 0, "offset": 2}], "version": 1}')
    printed = tool(TOOLS + "DeleteRecordsCommand", *to, "--offset-json-file", str(gone))
    assert "partition: places-0\tlow_watermark: 2" in printed
    assert "places:0:2" in tool(offsets, *to, "--topic", "places", "--time", "earliest")
    assert f"{broker.bootstrap_servers} (id: 1 rack: null) -> (" in tool("kafka.admin.BrokerApiVersionsCommand", *to)
    described = tool(TOOLS + "LogDirsCommand", *to, "--describe", "--topic-list", "places")
    (partition,) = json.loads(described.splitlines()[-1])["brokers"][0]["logDirs"][0]["partitions"]
    assert partition["partition"] == "places-0"
    assert partition["size"] > 0


@pytest.mark.parametrize(
    ("partition", "options", "expected"),
    [
        ("perf-0", ("--deep-iteration",), "isvalid: true"),
        ("__transaction_state-*", ("--transaction-log-decoder",), "transaction_metadata::transactionalId=perf"),
        ("__consumer_offsets-*", ("--offsets-decoder",), "verified"),
        ("__cluster_metadata-0", ("--cluster-metadata-decoder",), '"type":"TOPIC_RECORD"'),
    ],
)
@pytest.mark.requirement("F-50")
def test_the_dump_tool_reads_every_file(
    broker: Broker, partition: str, options: tuple[str, ...], expected: str
) -> None:
    """Last test of this module: it stops the broker, since open indexes are preallocated."""
    assert broker.data_dir is not None
    broker.stop()
    folders = sorted(broker.data_dir.glob(partition))
    files = [str(file) for folder in folders for file in sorted(folder.glob("*.log")) if file.stat().st_size]
    printed = tool("kafka.tools.DumpLogSegments", "--files", ",".join(files), "--print-data-log", *options)
    assert expected in printed
    assert "isvalid: false" not in printed
    indexes = [str(file) for folder in folders for file in sorted(folder.glob("*.*index"))]
    checked = tool(
        "kafka.tools.DumpLogSegments", "--files", ",".join(indexes), "--index-sanity-check", "--verify-index-only"
    )
    assert "mismatch" not in checked.lower()
    assert "Found timestamp" not in checked


def test_features_are_described_and_changed(broker: Broker) -> None:
    to = ("--bootstrap-server", broker.bootstrap_servers)
    name = TOOLS + "FeatureCommand"

    assert "FinalizedVersionLevel: 3.9-IV0" in tool(name, *to, "describe")
    refused = tool(name, *to, "downgrade", "--feature", "transaction.version=9", fails=True)
    assert "Local controller 1 only supports versions 0-2" in refused
    refused = tool(name, *to, "downgrade", "--feature", "metadata.version=16", fails=True)
    assert "might delete metadata information" in refused
    assert "can be downgraded to 20" in tool(name, *to, "downgrade", "--feature", "metadata.version=20", "--dry-run")
    assert "FinalizedVersionLevel: 3.9-IV0" in tool(name, *to, "describe")
    assert "was downgraded to 20" in tool(name, *to, "downgrade", "--feature", "metadata.version=20")
    assert "FinalizedVersionLevel: 3.8-IV0" in tool(name, *to, "describe")
    assert "was upgraded to 21" in tool(name, *to, "upgrade", "--feature", "metadata.version=21")


def test_brokers_are_unregistered(broker: Broker) -> None:
    former = messages.RegisterBrokerRecord(broker_id=7, broker_epoch=5, fenced=True)
    broker.call(lambda node: node.controller.commit([(former, 3)]))
    command = (TOOLS + "ClusterTool", "unregister", "--bootstrap-server", broker.bootstrap_servers, "--id")
    assert "Broker 7 is no longer registered." in tool(*command, "7")
    assert 7 not in broker.call(lambda node: node.cluster.brokers)
    assert "client library" in tool(*command, "1", fails=True)  # it prints its own text for INVALID_REQUEST


def test_levels_of_loggers_are_changed(broker: Broker) -> None:
    command = ("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap_servers)
    command += ("--entity-type", "broker-loggers", "--entity-name", "1")
    assert "Completed updating config" in tool(*command, "--alter", "--add-config", "kwire.broker=DEBUG")
    assert logging.getLogger("kwire.broker").level == logging.DEBUG
    assert "kwire.broker=DEBUG sensitive=false" in tool(*command, "--describe")
    assert "Completed updating config" in tool(*command, "--alter", "--delete-config", "kwire.broker")
    assert logging.getLogger("kwire.broker").level == logging.NOTSET
    refused = tool(*command, "--alter", "--add-config", "kwire.broker=LOUD", fails=True)
    assert "not a supported log level" in refused
