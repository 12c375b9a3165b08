"""Unmodified clients of real Kafka through the tap, with faults, and the same clients on a recording of that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka import Consumer, Producer
from cryptography.hazmat.primitives import serialization
from tests.interop.real_cluster import RealCluster
from tests.interop.test_broker_go import program
from tests.interop.test_broker_tools import TOOLS, tool
from tests.interop.test_share_groups import KAFKA, OURS, RELEASE, java_sees
from tests.waiting import HANG_S
from tools import kafka

from kwire.broker import Broker
from kwire.capture import read_capture
from kwire.cli.main import run
from kwire.tap import Replay, Tap

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

__all__ = ["program"]

QUIET = {"log_level": 0}
SENT = 2000


class Tapped:
    """A real broker with a tap before it."""

    def __init__(self, broker: kafka.KafkaBroker, tap: Tap, file: Path) -> None:
        self.broker, self.tap, self.file = broker, tap, file
        self.to = ("--bootstrap-server", tap.bootstrap_servers)


@pytest.fixture(scope="module", params=["4.4.0", "3.9.1"])
def tapped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tapped]:
    folder = tmp_path_factory.mktemp("tap")
    file = folder / "session.pcapng"
    with (
        kafka.KafkaBroker(folder / "kafka", version=request.param, heap="400m") as broker,
        # not the advertised address: the node has another port than the first listener
        Tap(f"localhost:{broker.port}", record=file) as tap,
    ):
        yield Tapped(broker, tap, file)


def test_kafkas_own_tools(tapped: Tapped) -> None:
    tap, to = tapped.tap, tapped.to
    tool(TOOLS + "TopicCommand", *to, "--create", "--topic", "perf", "--partitions", "2")
    # not the first ones: Kafka takes any sequence number from a producer of which it has no batch
    fault = tap.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic="perf", partition=0, skip=10, times=2)
    broken = tap.faults.drop("Produce", after=True, topic="perf", on_call=30)
    written = tool(
        TOOLS + "ProducerPerformance", "--topic", "perf", "--num-records", str(SENT), "--record-size", "1000",
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={tap.bootstrap_servers}", "acks=all",
    )  # fmt: skip
    assert f"{SENT} records sent" in written
    assert fault.hits == 2
    assert broken.hits == 1
    seen = tap.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="perf", partition=1)
    read = tool(
        TOOLS + "consumer.ConsoleConsumer", *to, "--topic", "perf", "--from-beginning", "--max-messages", str(SENT),
        "--group", "console", "--timeout-ms", "60000", "--isolation-level", "read_committed",
    )  # fmt: skip
    assert f"Processed a total of {SENT} messages" in read, "once each, although a response was lost"
    assert seen.hits == 1
    described = tool(TOOLS + "consumer.group.ConsumerGroupCommand", *to, "--describe", "--group", "console")
    assert described.count("console") >= 2
    (node,) = tap.nodes
    assert node.target == tapped.broker.bootstrap_servers
    assert node.address != tap.bootstrap_servers


def test_librdkafka(tapped: Tapped) -> None:
    producer = Producer({"bootstrap.servers": tapped.tap.bootstrap_servers, "transactional.id": "t", **QUIET})
    producer.init_transactions(HANG_S)
    producer.begin_transaction()
    producer.produce("transactions", b"v", partition=0)
    producer.commit_transaction(HANG_S)
    del producer
    group = {"group.id": "g", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": tapped.tap.bootstrap_servers, **group, **QUIET})
    consumer.subscribe(["transactions"])
    assert consumer.poll(HANG_S).value() == b"v"
    consumer.close()


def test_aiokafka(tapped: Tapped) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def both() -> Any:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=tapped.tap.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("aio", b"v")
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            "aio", bootstrap_servers=tapped.tap.bootstrap_servers, group_id="aio", auto_offset_reset="earliest"
        )
        await consumer.start()
        record = await asyncio.wait_for(consumer.getone(), HANG_S)
        await consumer.stop()
        return record.value

    assert asyncio.run(both()) == b"v"


def test_kafka_python(tapped: Tapped) -> None:
    client = pytest.importorskip("kafka")
    producer = client.KafkaProducer(bootstrap_servers=tapped.tap.bootstrap_servers)
    producer.send("python", b"v").get(HANG_S)
    producer.close()
    consumer = client.KafkaConsumer(
        "python", bootstrap_servers=tapped.tap.bootstrap_servers, group_id="p", auto_offset_reset="earliest"
    )
    assert next(consumer).value == b"v"
    consumer.close()


def test_franz_go(tapped: Tapped, program: Path) -> None:
    """Producer, group, transactions and administrator; two of its requests are lost, and sent again."""
    lost = tapped.tap.faults.drop(["Produce", "OffsetCommit"], after=True, client_id="kgo*", on_call=2)
    done = franz_go(program, tapped.tap.bootstrap_servers)
    assert (done["count"], done["committed"], done["offsets"]) == (1000, ["0", "2"], 1000)
    assert lost.hits == 1


def franz_go(program: Path, servers: str) -> Any:
    """Run the program; return what it has seen."""
    done = subprocess.run([str(program), servers], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_javas_consumer_fetches_more_at_once_than_the_tap_holds(tmp_path: Path) -> None:
    """108 MB in one response: limits of Kafka's brokers and clients that are raised for that."""
    with (
        kafka.KafkaBroker(tmp_path / "kafka", heap="700m", **{"fetch.max.bytes": 1 << 30}) as broker,
        Tap(broker.bootstrap_servers) as tap,
    ):
        to = ("--bootstrap-server", tap.bootstrap_servers)
        tool(TOOLS + "TopicCommand", *to, "--create", "--topic", "large", "--partitions", "1")
        tool(
            TOOLS + "ProducerPerformance", "--topic", "large", "--num-records", "108", "--record-size", "1000000",
            "--throughput", "-1", "--producer-props", f"bootstrap.servers={tap.bootstrap_servers}", "linger.ms=0",
        )  # fmt: skip
        config = tmp_path / "consumer.properties"
        config.write_text(
            "fetch.max.bytes=1000000000\nmax.partition.fetch.bytes=1000000000\nfetch.min.bytes=107000000\n"
        )
        seen = tool(
            TOOLS + "ConsumerPerformance", *to, "--topic", "large", "--messages", "108", "--timeout", "120000",
            "--consumer.config", str(config), "--hide-header", "--fetch-size", "1000000000",
        )  # fmt: skip
        assert seen.splitlines()[-1].split(", ")[4] == "108", seen
        assert any(each.response is None for each in tap.requests.of("Fetch"))


def test_the_recording_is_readable(tapped: Tapped, tmp_path: Path) -> None:
    """Uses that of the tests above."""
    tap = tapped.tap
    tap.call(lambda shared: shared.recorder.flush() if shared.recorder is not None else None)
    problems = [each.to_json(bodies=False)["problem"] for each in read_capture(tapped.file)]
    assert len(problems) > 50
    assert {each for each in problems if each} <= {"its response was not captured"}
    assert run(["capture", str(tapped.file), "--logs", str(tmp_path / "logs")]) in (0, 1)
    assert run(["log", "verify", str(tmp_path / "logs")]) == 0


def test_tls_on_both_sides_and_logins_with_scram(tmp_path: Path) -> None:
    """The listener of the cluster asks for the tap's certificate; passwords go through it as proofs only."""
    authority = trustme.CA()
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "broker", "tap")}
    authority.cert_pem.write_to_path(files["ca"])
    for name in ("broker", "tap"):
        issued = authority.issue_cert("127.0.0.1", "localhost", common_name=name)
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        files[name].write_bytes(key + b"".join(each.bytes() for each in issued.cert_chain_pems))
    port, controller, inside = kafka.free_port(), kafka.free_port(), kafka.free_port()
    broker = kafka.KafkaBroker(tmp_path / "kafka", heap="400m")
    broker.port = inside
    addresses = f"PLAINTEXT://127.0.0.1:{inside},SASL_SSL://127.0.0.1:{port}"
    broker.settings |= {
        "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": addresses,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.sasl_ssl.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files["broker"]),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files["ca"]),
    }
    cluster_tls = {
        "security.protocol": "SASL_SSL", "ssl.ca.location": str(files["ca"]), "ssl.keystore.location": str(files["tap"])
    }  # fmt: skip
    with broker:
        to = ("--bootstrap-server", broker.bootstrap_servers, "--entity-type", "users", "--entity-name", "alice")
        tool("kafka.admin.ConfigCommand", *to, "--alter", "--add-config", "SCRAM-SHA-512=[password=wonderland]")
        listener_tls = {"ssl.certfile": str(files["tap"])}
        with Tap(f"127.0.0.1:{port}", listen_configs=listener_tls, **cluster_tls) as tap:  # type: ignore[arg-type]
            login = {
                "bootstrap.servers": tap.bootstrap_servers, "security.protocol": "SASL_SSL", "sasl.username": "alice",
                "sasl.mechanism": "SCRAM-SHA-512", "ssl.ca.location": str(files["ca"]), **QUIET,
            }  # fmt: skip
            producer = Producer({**login, "sasl.password": "wonderland"})
            producer.produce("secret", b"v")
            assert not producer.flush(HANG_S)
            del producer
            config = tmp_path / "client.properties"
            config.write_text(
                "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nssl.truststore.type=PEM\n"
                f"ssl.truststore.location={files['ca']}\nsasl.jaas.config=org.apache.kafka.common.security.scram."
                'ScramLoginModule required username="alice" password="wonderland";\n'
            )
            read = tool(
                TOOLS + "consumer.ConsoleConsumer", "--bootstrap-server", tap.bootstrap_servers, "--topic", "secret",
                "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000", "--consumer.config", str(config),
            )  # fmt: skip
            assert "v\nProcessed a total of 1 messages" in read
            refused = tap.faults.observe("SaslAuthenticate")
            other = Producer({**login, "sasl.password": "wrong", "message.timeout.ms": 2000})
            other.produce("secret", b"v")
            refused.wait(1)
            other.flush(3)
            del other
            failed = [each for each in tap.requests.of("SaslAuthenticate") if each.errors]
            assert failed
            assert failed[0].errors == ["SASL_AUTHENTICATION_FAILED"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_javas_clients_get_the_responses_of_a_recording(protocol: str, tmp_path: Path) -> None:
    def program(servers: str) -> str:
        to = ("--bootstrap-server", servers, "--topic", "console")
        tool("kafka.tools.ConsoleProducer", *to, text="one\ntwo\n")
        return tool(
            TOOLS + "consumer.ConsoleConsumer", *to, "--from-beginning", "--max-messages", "2", "--group", "g",
            "--timeout-ms", "60000", "--consumer-property", f"group.protocol={protocol}",
        )  # fmt: skip

    file = tmp_path / "session.pcapng"
    with Broker() as broker:
        broker.create_topic("console", 1)
        with Tap(broker.bootstrap_servers, record=file) as tap:
            assert "one\ntwo\nProcessed a total of 2 messages" in program(tap.bootstrap_servers)
    with Replay(file) as replay:
        assert "one\ntwo\nProcessed a total of 2 messages" in program(replay.bootstrap_servers)
    assert replay.mismatches == []
    assert replay.answered > 15


def test_share_groups_of_the_newest_java_client_are_the_same(tmp_path: Path) -> None:
    """Producer, administrator and share consumer of Kafka 4.4.0."""
    with Broker(**OURS) as broker:
        expected = java_sees(broker.bootstrap_servers)
    with (
        kafka.KafkaBroker(tmp_path / "kafka", version=RELEASE, heap="384m", **KAFKA) as real,
        Tap(f"localhost:{real.port}") as tap,
    ):
        assert java_sees(tap.bootstrap_servers) == expected
        assert {"ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat"} <= {each.api for each in tap.requests}


def test_a_real_cluster_fails_over_behind_the_tap(program: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as cleanup:
        cluster = RealCluster(tmp_path, cleanup)
        tap = cleanup.enter_context(Tap(cluster.bootstrap_servers))
        producer = Producer({"bootstrap.servers": tap.bootstrap_servers, "acks": "all", **QUIET})
        for number in range(100):
            producer.produce("failover", b"%d" % number)
        assert not producer.flush(HANG_S)
        leader = {each.node_id for each in tap.requests.of("Produce")}.pop()
        process = cluster.nodes[leader].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        for number in range(100, 200):
            producer.produce("failover", b"%d" % number)
        assert not producer.flush(HANG_S)
        del producer
        others = {each.node_id for each in tap.requests.of("Produce")} - {leader, -1}
        assert others, "another node leads now"
        group = {"group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": tap.bootstrap_servers, **group, **QUIET})
        consumer.subscribe(["failover"])
        found = [consumer.poll(HANG_S).value() for _ in range(200)]
        consumer.close()
        assert sorted(map(int, found)) == list(range(200))
        assert franz_go(program, tap.bootstrap_servers)["count"] == 1000
        read = tool(
            TOOLS + "consumer.ConsoleConsumer", "--bootstrap-server", tap.bootstrap_servers, "--topic", "failover",
            "--from-beginning", "--max-messages", "200", "--group", "java", "--timeout-ms", "60000",
        )  # fmt: skip
        assert "Processed a total of 200 messages" in read
