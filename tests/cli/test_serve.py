"""`kwire serve` as a process: its output, shutdown and data."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path

import pytest
import trustme
from confluent_kafka.admin import AdminClient
from tests.waiting import HANG_S, until

from kwire.cli.main import run
from kwire.cli.serve import parse_control
from kwire.client import Client
from kwire.errors import KwireError, OptionError
from kwire.log import LogDirectory
from kwire.messages import registry

SECURITY = "org.apache.kafka.common.security"


def serve(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
    """Start the process and return it with its bootstrap servers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", "serve", "--port", "0", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),  # ignored below nohup
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("BROKERS="), process.communicate()[1]
    return process, line.strip().removeprefix("BROKERS=")


def test_a_directory_that_cannot_be_created_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(["serve", "--port", "0", "--data-dir", str(tmp_path / "file" / "data")]) == 2
    told = f"kwire: {tmp_path}/file/data: cannot be created: {tmp_path}/file is not a directory\n"
    assert capsys.readouterr().err == told


def test_a_url_is_not_a_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The data went to a folder "s3:" of the current directory.
    monkeypatch.chdir(tmp_path)
    assert run(["serve", "--port", "0", "--data-dir", "s3://bucket/data"]) == 2
    told = "kwire: data_dir 's3://bucket/data': a broker writes to a local file system, not to a URL\n"
    assert capsys.readouterr().err == told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_runs_until_stopped_and_keeps_the_directory(tmp_path: Path, number: signal.Signals) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("# as Kafka has it\nprocess.roles=broker\nlog.dirs=/var/lib/kafka\nnum.partitions=2\n")
    process, servers = serve(
        "--data-dir", str(tmp_path / "data"), "--config-file", str(properties), "-c", "delete.topic.enable=false"
    )
    cls = registry.get("CreateTopicsRequest")
    with Client(servers) as client:
        topic = cls.CreatableTopic(name="kept", num_partitions=-1, replication_factor=-1)  # type: ignore[attr-defined]
        assert client.request(cls(topics=[topic])).topics[0].error_code == 0  # type: ignore[call-arg]
    process.send_signal(number)
    assert process.wait(timeout=HANG_S) == 0
    directory = LogDirectory(tmp_path / "data")
    assert directory.is_clean_shutdown
    assert [key for key in directory if key[0] == "kept"] == [("kept", 0), ("kept", 1)]
    assert "configs without an effect on this broker: process.roles, log.dirs" in process.communicate()[1]


def test_topics_are_created_before_the_address_is_printed(tmp_path: Path) -> None:
    place = ["--data-dir", str(tmp_path / "data")]
    for arguments in (["--topic", "orders:3", "--topic", "other"], ["--topic", "orders", "--topic", "other:1"]):
        process, servers = serve(*place, *arguments)
        with Client(servers) as client:
            counts = {name: len(topic.partitions) for name, topic in client.metadata().topics.items()}
        assert counts == {"orders": 3, "other": 1}
        process.terminate()
        assert process.wait(timeout=HANG_S) == 0
        process.communicate()
    assert run(["serve", "--port", "0", *place, "--topic", "orders:2"]) == 2
    assert LogDirectory(tmp_path / "data").is_clean_shutdown


def test_a_cluster_prints_the_addresses_of_its_nodes() -> None:
    process, servers = serve("--nodes", "2", "--rack", "a", "--rack", "b", "--topic", "t:2", "--until", "stdin")
    try:
        assert len(set(servers.split(","))) == 2
        with Client(servers.split(",")[1]) as client:
            found = client.metadata(["t"])
            assert {f"{host}:{port}" for host, port in found.brokers.values()} == set(servers.split(","))
    finally:
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--nodes", "2", "--rack", "a"], "invalid racks: expected one for each of 2 nodes, got 1"),
        (["--nodes", "2", "-c", "broker.id=4"], "broker.id cannot be a config of all nodes"),
        (["--nodes", "2", "-c", "listeners=PLAINTEXT://127.0.0.1:9092"], "which nodes cannot share"),
    ],
)
def test_invalid_options_of_a_cluster_are_one_line(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", *arguments]) == 2
    assert error in capsys.readouterr().err


def test_the_address_of_control_is_the_second_line() -> None:
    process, servers = serve("--control", "0")
    assert process.stdout is not None
    url = process.stdout.readline().strip().removeprefix("CONTROL=")
    body = json.dumps({"effect": "fail", "api": "Metadata", "error": "TOPIC_AUTHORIZATION_FAILED", "times": None})
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/faults", body.encode(), headers)) as added:
        assert json.load(added)["id"] == 1
    with Client(servers) as client, pytest.raises(KwireError, match=r"TOPIC_AUTHORIZATION_FAILED|authorization"):
        client.list_offsets({("orders", 0): -1})
    with urllib.request.urlopen(f"{url}/requests?api=Metadata") as listed:
        assert json.load(listed)["requests"]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HANG_S)
    assert process.returncode == 0


@pytest.mark.parametrize("text", ["", "x", "70000", "1:", "localhost:x", "-1", "9" * 5000])
def test_an_invalid_address_of_control_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="expected PORT or ADDRESS:PORT"):
        parse_control(text)


def test_addresses_of_control() -> None:
    assert parse_control("9099") == ("127.0.0.1", 9099)
    assert parse_control("0.0.0.0:0") == ("0.0.0.0", 0)
    assert parse_control("[::1]:5") == ("::1", 5)


def test_serve_ends_with_standard_input_if_asked(tmp_path: Path) -> None:
    process, servers = serve("--until", "stdin", TMPDIR=str(tmp_path))
    assert process.stdin is not None
    process.stdin.write("is not read\n")
    process.stdin.flush()
    with Client(servers) as client:
        assert client.metadata().topics == {}
    process.stdin.close()
    assert process.wait(timeout=HANG_S) == 0
    assert list(tmp_path.iterdir()) == []
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_serve_ends_with_a_killed_parent_if_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kwire.cli", "serve", "--port", "0", "--until", "parent"]
    code = f"""if True:
        import subprocess
        broker = subprocess.Popen({command}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        print(broker.stdout.readline().decode(), end="", flush=True)
        input()
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        servers = parent.stdout.readline().strip().removeprefix("BROKERS=")
        with Client(servers) as client:
            assert client.metadata().topics == {}
        assert len(list(tmp_path.iterdir())) == 1
        parent.kill()
    until(lambda: not list(tmp_path.iterdir()), "the broker did not end")
    host, _, port = servers.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port))).close()


def test_serve_without_a_directory_warns_that_data_is_temporary() -> None:
    process, _ = serve()
    process.terminate()
    _, reported = process.communicate(timeout=HANG_S)
    assert "temporary directory" in reported


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-c", "num.partition=3"], 2, "did you mean 'num.partitions'"),
        (["-c", "listeners=PLAINTEXT://127.0.0.1:0"], 2, "--config listeners and --host or --port are mutually"),
        (["-c", "listeners=PLAINTEXT://127.0.0.1:0", "--host", "::1"], 2, "mutually exclusive"),
        (["-c", "ssl.cipher.suites=TLS_AES_128_GCM_SHA256"], 2, "ssl.cipher.suites is not supported"),
        (["-c", "nonsense"], 2, "kwire: --config: expected NAME=VALUE, such as num.partitions=3\n"),
        (["--topic", ":3"], 2, "--topic ':3': expected NAME or NAME:PARTITIONS, such as orders:3"),
        (["--topic", "orders:"], 2, "--topic 'orders:': expected NAME or NAME:PARTITIONS"),
        (["--topic", "orders:0"], 2, "--topic 'orders:0': expected NAME or NAME:PARTITIONS"),
        (["--topic", "a b"], 1, "Topic name is invalid"),
        (["--config-file", "/nowhere/server.properties"], 2, "cannot be read"),
        (["--host", "300.1.2.3"], 2, "cannot listen on"),
        (["--user", "alice"], 2, "--user alice: no password; set KWIRE_USER_ALICE_PASSWORD or --password-file"),
        (["--user", "a.b", "--user", "a_b"], 2, "several users share KWIRE_USER_A_B_PASSWORD"),
        (["--user", "a", "--user", "b", "--password-file", "x"], 2, "expected one per --user, found 1 for 2"),
        (["--user", "a", "--password-file", "/nowhere/password"], 2, "/nowhere/password: cannot be read"),
        (["-c", "ssl.key.password=hidden"], 2, "secrets on a command line are visible to others"),
        (["-c", "users=hidden"], 2, "secrets on a command line are visible to others"),
        (["-c", "sasl_jaas_config=hidden"], 2, "secrets on a command line are visible to others"),
    ],
)
def test_startup_errors_are_one_line(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--port", "0", *arguments]) == code
    reported = capsys.readouterr().err
    assert message in reported
    assert "hidden" not in reported


def has_response(servers: str) -> bool:
    """Return whether a client without TLS and login gets a response to a Metadata request."""
    host, _, port = servers.rpartition(":")
    request = struct.pack(">hhih4si", 3, 1, 7, 4, b"test", 0)
    with socket.create_connection((host, int(port)), timeout=HANG_S) as sock:
        sock.sendall(struct.pack(">i", len(request)) + request)
        try:
            return sock.recv(8)[4:] == struct.pack(">i", 7)
        except ConnectionResetError:
            return False


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(root / "broker.pem")
    authority.cert_pem.write_to_path(root / "ca.pem")
    return str(root)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("listeners=SSL://:9093\nssl.certfile=PEM/broker.pem\nssl.cafile=PEM/ca.pem\nssl.client.auth=required", []),
        ("listeners=SASL_SSL://:9093\nssl.certfile=PEM/broker.pem\nsasl.enabled.mechanisms=OAUTHBEARER", []),
        ("ssl.certfile=PEM/broker.pem", []),
        ("sasl.enabled.mechanisms=SCRAM-SHA-256", []),
        ("", ["-c", "sasl.enabled.mechanisms=SCRAM-SHA-256"]),
        (
            "listener.name.sasl_plaintext.plain.sasl.jaas.config="
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b;",
            [],
        ),
        (
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config="
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            [],
        ),
        ("listeners=INTERNAL://:9092\nlistener.security.protocol.map=INTERNAL:SASL_PLAINTEXT", []),
    ],
)
def test_a_broker_that_should_be_protected_gives_strangers_no_response(
    tmp_path: Path, pem: str, text: str, arguments: list[str]
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(text.replace("PEM", pem))
    process, servers = serve("--host", "127.0.0.1", "--config-file", str(properties), *arguments)
    try:
        assert not has_response(servers)
    finally:
        process.terminate()
        process.communicate(timeout=HANG_S)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "listeners=PLAINTEXT://:9092\nssl.client.auth=required",
            "ssl.client.auth requires a listener of protocol",
        ),
        ("listeners=SSL://:9092", "ssl_certfile is missing"),
        ("listeners=PLAINTEXT://:9092\nsasl.enabled.mechanisms=PLAIN", "sasl.enabled.mechanisms requires a listener"),
        ("ssl.keystore.location=/etc/kafka.jks", "set ssl.certfile and ssl.keyfile to PEM files"),
        ("users=alice:hidden", "set listener.name.LISTENER.MECHANISM.sasl.jaas.config, or use --user"),
        ("listener=SASL_SSL://:9092", "unknown broker config 'listener' (did you mean 'listeners'?)"),
        ("listeners.security.protocol.map=PLAINTEXT:SSL", "did you mean 'listener.security.protocol.map'?"),
        ("authoriser.class.name=hidden", "did you mean 'authorizer.class.name'?"),
        ("SSL.client.auth=required", "did you mean 'ssl.client.auth'?"),
        ("ssl_client_auth=required", "did you mean 'ssl.client.auth'?"),
        ("listeners.name.ssl.ssl.client.auth=required", "unknown broker config 'listeners.name.ssl.ssl.client.auth'"),
        ("super.user=User:a\nnonsense=1", "server.properties: unknown broker config 'super.user'"),
        ("listeners=A://:1,B://:2\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT", "cannot be that of 2"),
    ],
)
def test_a_file_that_would_leave_the_broker_open_is_refused(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(text)
    assert run(["serve", "--port", "9092", "--config-file", str(properties)]) == 2
    reported = capsys.readouterr().err
    assert message in reported
    assert "hidden" not in reported


def test_the_file_of_kafka_starts(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(KAFKA_FILE)
    options = ["-c", "super.users=User:ANONYMOUS", "-c", "acls=true"]
    process, servers = serve("--host", "127.0.0.1", "--config-file", str(properties), *options)
    assert has_response(servers)
    with Client(servers) as client:
        cls = registry.get("DescribeConfigsRequest")
        resource = cls.DescribeConfigsResource(  # type: ignore[attr-defined]
            resource_type=4,
            resource_name="1",
            configuration_keys=["log.retention.ms", "num.io.threads", "num.partitions"],
        )
        entries = client.request(cls(resources=[resource])).results[0].configs  # type: ignore[call-arg]
    assert {each.name: each.value for each in entries} == {
        "log.retention.ms": "3600000",
        "num.io.threads": "8",
        "num.partitions": "1",
    }
    process.terminate()
    reported = process.communicate(timeout=HANG_S)[1]
    assert "offsets.topic.replication.factor" in reported
    assert "retention" not in reported


KAFKA_FILE = """# config/server.properties of Kafka 4.4.0, with a retention of one hour
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=1
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def topics_of(servers: str, user: str, password: str, mechanism: str) -> set[str]:
    """Log in with librdkafka and list the topics."""
    admin = AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    )
    return set(admin.list_topics(timeout=HANG_S).topics)


@pytest.mark.sampled
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_authenticate_with_a_password_from_a_file(tmp_path: Path, mechanism: str) -> None:
    for name in ("alice", "bob"):
        (tmp_path / name).write_text(f"secret of {name}\nnot read\n")
    files = [argument for name in ("alice", "bob") for argument in ("--password-file", str(tmp_path / name))]
    process, servers = serve("--user", "alice", "--user", "bob", *files, "-v")
    for name in ("alice", "bob"):
        assert topics_of(servers, name, f"secret of {name}", mechanism) == set()
    process.terminate()
    assert "secret of" not in "".join(process.communicate(timeout=HANG_S))


def test_a_user_authenticates_with_a_password_from_the_environment() -> None:
    process, servers = serve("--user", "app.one", KWIRE_USER_APP_ONE_PASSWORD="hidden")
    assert topics_of(servers, "app.one", "hidden", "SCRAM-SHA-256") == set()
    process.terminate()
    assert "hidden" not in "".join(process.communicate(timeout=HANG_S))


def test_users_of_a_jaas_configuration_authenticate(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\n"
        "listener.name.sasl_plaintext.plain.sasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        '  username="admin" password="hidden" user_admin="hidden" user_alice="a=b;\\\\"c";\n'
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config="
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="bob" password="hidden";\n'
    )
    process, servers = serve("--config-file", str(properties))
    assert topics_of(servers, "alice", 'a=b;"c', "PLAIN") == set()
    assert topics_of(servers, "bob", "hidden", "SCRAM-SHA-256") == set()
    process.terminate()
    assert process.communicate(timeout=HANG_S) == ("", process_warning())


def process_warning() -> str:
    """Return the warning that `kwire serve` prints without --data-dir."""
    return "kwire: the data is in a temporary directory and is deleted at exit; keep it with --data-dir\n"
