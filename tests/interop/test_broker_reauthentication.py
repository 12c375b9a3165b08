"""Re-authentication (KIP-368): every request has the result of real Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.security.raw_client import Closed, RawClient
from tools.kafka import KafkaBroker

from kwire.broker import Broker
from kwire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

LIFETIME_MS = 20_000
"""Of a session: long enough that what happens before its end does, on a slow machine too."""

TOPIC = CreateTopicsRequest.CreatableTopic(name="made", num_partitions=1, replication_factor=1)
REQUESTS: dict[str, tuple[Message, int]] = {
    "versions": (ApiVersionsRequest(), 0),
    "metadata": (MetadataRequest(topics=[]), 9),
    "create": (CreateTopicsRequest(topics=[TOPIC], timeout_ms=1000, validate_only=True), 5),
    "handshake": (SaslHandshakeRequest(mechanism="PLAIN"), 1),
    "handshake 0": (SaslHandshakeRequest(mechanism="PLAIN"), 0),
    "handshake scram": (SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1),
    "handshake unknown": (SaslHandshakeRequest(mechanism="GSSAPI"), 1),
    "alice": (SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
    "alice 0": (SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 0),
    "bob": (SaslAuthenticateRequest(auth_bytes=b"\0bob\0secret"), 2),
    "wrong": (SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2),
}
IN_TIME = [
    "metadata",
    "handshake",
    "handshake alice",
    "handshake alice handshake",
    "handshake alice alice",
    "handshake metadata",
    "handshake create",
    "handshake versions",
    "handshake handshake",
    "handshake alice metadata",
    "handshake alice handshake alice",
    "handshake bob",
    "handshake wrong",
    "handshake scram alice",
    "handshake unknown metadata",
    "handshake 0 metadata",
    "alice metadata",
]
TOO_LATE = [
    "metadata",
    "handshake",
    "versions",
    "create",
    "alice",
    "handshake metadata",
    "handshake create",
    "handshake versions",
    "handshake alice metadata",
    "handshake alice 0 metadata",
    "handshake bob",
    "handshake unknown",
    "handshake 0 metadata",
]
JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret" '
    'user_alice="secret" user_bob="secret";'
)


def steps(scene: str) -> list[str]:
    """Return the names of a scene's requests."""
    found: list[str] = []
    for word in scene.split():
        if found and f"{found[-1]} {word}" in REQUESTS:
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def play(client: RawClient, scene: str) -> list[str]:
    """Return the results of each request and a final one: error codes, or that the connection was closed."""
    seen = []
    for name in (*steps(scene), "metadata"):
        try:
            response = client.ask(*REQUESTS[name])
        except Closed:
            return [*seen, "closed"]
        code = getattr(response, "error_code", 0) or next(
            (topic.error_code for topic in getattr(response, "topics", ())), 0
        )
        seen.append("ok" if not code else ErrorCode(code).name)
    return seen


def outcomes(broker: Broker | KafkaBroker, let_pass: Callable[[], None]) -> dict[str, list[str]]:
    """Return the outcome of every scene, before and after the sessions expire."""
    found = {}
    for scene in IN_TIME:
        with RawClient(broker) as client:
            assert client.log_in("alice", "secret").session_lifetime_ms == LIFETIME_MS
            found[f"in time: {scene}"] = play(client, scene)
    clients = {scene: RawClient(broker) for scene in TOO_LATE}
    for client in clients.values():
        assert client.log_in("alice", "secret").error_code == 0
    let_pass()
    for scene, client in clients.items():
        with client:
            found[f"too late: {scene}"] = play(client, scene)
    return found


def ours() -> dict[str, list[str]]:
    with Broker(
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        users={"alice": "secret", "bob": "secret"},
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256",
        connections_max_reauth_ms=LIFETIME_MS,
    ) as broker:
        return outcomes(broker, lambda: broker.advance(LIFETIME_MS + 1000))


def kafkas(directory: Path, version: str) -> dict[str, list[str]]:
    kafka = KafkaBroker(directory, version=version)
    controller = str(kafka.settings["listeners"]).partition("CONTROLLER://")[2]
    kafka.settings |= {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{kafka.port},CONTROLLER://{controller}",
        "advertised.listeners": f"SASL_PLAINTEXT://127.0.0.1:{kafka.port}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "connections.max.reauth.ms": LIFETIME_MS,
    }
    with kafka:
        return outcomes(kafka, lambda: time.sleep(LIFETIME_MS / 1000 + 1))


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_sessions_are_reauthenticated_and_expire_as_in_kafka(tmp_path: Path, version: str) -> None:
    assert ours() == kafkas(tmp_path / "kafka", version)
