"""Which names of security configs real Kafka reads: those that it ignores are refused by kwire's broker."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tests.broker.security.raw_client import Closed, RawClient
from tests.waiting import HANG_S, until
from tools import kafka

from kwire.broker import Broker
from kwire.broker.configs.given import parse_settings
from kwire.errors import OptionError
from kwire.messages import ApiVersionsRequest, SaslAuthenticateRequest, SaslHandshakeRequest

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PROTOCOLS = {
    "users": "SASL_PLAINTEXT",
    "scram": "SASL_PLAINTEXT",
    "upper": "SASL_PLAINTEXT",
    "handler": "SASL_PLAINTEXT",
    "of_mechanism": "SASL_PLAINTEXT",
    "of_listener": "SASL_PLAINTEXT",
    "common": "SSL",
    "none": "SSL",
    "upper_none": "SSL",
    "sasl_common": "SASL_SSL",
    "sasl_required": "SASL_SSL",
}
"""Security protocols by the names of listeners."""
TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
TOKEN_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
USERS = {
    "sasl.jaas.config": "of_all",
    "plain.sasl.jaas.config": "of_no_listener",
    "listener.name.users.sasl.jaas.config": "of_no_mechanism",
    "listener.name.users.plain.sasl.jaas.config": "right",
    "listener.name.USERS.plain.sasl.jaas.config": "of_upper_listener",
    "listener.name.users.PLAIN.sasl.jaas.config": "of_upper_mechanism",
}
"""The user that each config defines."""


def login(user: str) -> str:
    return (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{user}" password="x" '
        f'user_{user}="x";'
    )


class Keys:
    """Three keys that sign tokens, and files with the public ones."""

    def __init__(self, folder: Path) -> None:
        self._keys = {name: rsa.generate_private_key(65537, 2048) for name in ("all", *PROTOCOLS)}
        self.urls = {name: (folder / f"{name}.json").as_uri() for name in self._keys}
        for name, key in self._keys.items():
            modulus = encoded(key.public_key().public_numbers().n.to_bytes(256, "big"))
            public = {"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": modulus, "e": "AQAB"}
            (folder / f"{name}.json").write_text(json.dumps({"keys": [public]}))

    def token(self, name: str) -> bytes:
        """Return a token that a key has signed."""
        now = int(time.time())
        claims = {"sub": "alice", "iat": now - 60, "exp": now + 3600, "scope": "s", "aud": "kafka", "iss": "https://i"}
        parts = ({"alg": "RS256", "kid": "k", "typ": "JWT"}, claims)
        body = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        return f"{body}.{encoded(self._keys[name].sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}".encode()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True)
class Server:
    """A running Kafka. ports: by listener."""

    ports: dict[str, int]
    folder: Path
    keys: Keys

    def client(self, listener: str, wrap: Any = None) -> RawClient:
        broker: Any = SimpleNamespace(port=self.ports[listener])
        return RawClient(broker, wrap)

    def takes_user(self, listener: str, user: str) -> bool:
        with self.client(listener) as client:
            try:
                return bool(client.log_in(user, "x").error_code == 0)
            except Closed:
                return False

    def mechanisms(self, listener: str) -> Sequence[str]:
        with self.client(listener) as client:
            found: Sequence[str] = client.ask(SaslHandshakeRequest(mechanism="NONE"), 1).mechanisms
            return found

    def needs_certificate(self, listener: str) -> bool:
        found = []
        for with_certificate in (True, False):
            context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
            if with_certificate:
                context.load_cert_chain(self.folder / "client.pem")
            try:
                with self.client(
                    listener, lambda sock, tls=context: tls.wrap_socket(sock, server_hostname="127.0.0.1")
                ) as client:
                    client.ask(ApiVersionsRequest(), 0)
                found.append(True)
            except (ssl.SSLError, Closed):
                found.append(False)
        assert found[0]
        return not found[1]

    def takes_token(self, listener: str, key: str) -> bool:
        with self.client(listener) as client:
            assert client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
            message = b"n,,\1auth=Bearer " + self.keys.token(key) + b"\1\1"
            try:
                response = client.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
            except Closed:
                return False
            return response.error_code == 0 and not response.auth_bytes


@pytest.fixture(scope="module", params=["3.9.1", "4.4.0"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("protection")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    issued = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "broker.pem").write_bytes(key + b"".join(each.bytes() for each in issued.cert_chain_pems))
    keys = Keys(folder)
    broker = kafka.KafkaBroker(folder / "kafka", version=request.param, heap="512m")
    ports = {name: kafka.free_port() for name in PROTOCOLS}
    addresses = "".join(f",{name.upper()}://127.0.0.1:{port}" for name, port in ports.items())
    for name in ("listeners", "advertised.listeners"):
        broker.settings[name] = f"{broker.settings[name]}{addresses}"
    protocols = "".join(f",{name.upper()}:{protocol}" for name, protocol in PROTOCOLS.items())
    broker.settings["listener.security.protocol.map"] = (
        f"{broker.settings['listener.security.protocol.map']}{protocols}"
    )
    broker.settings |= {
        "sasl.enabled.mechanisms": "PLAIN",
        **{name: login(user) for name, user in USERS.items()},
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.UPPER.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.upper.plain.sasl.jaas.config": login("right"),
        "sasl.server.callback.handler.class": TOKENS,
        "listener.name.handler.sasl.server.callback.handler.class": TOKENS,
        "listener.name.handler.plain.sasl.jaas.config": login("right"),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://i",
        "sasl.oauthbearer.jwks.endpoint.url": keys.urls["all"],
        "listener.name.of_mechanism.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.urls["of_mechanism"],
        "listener.name.of_listener.sasl.oauthbearer.jwks.endpoint.url": keys.urls["of_listener"],
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required",
        "listener.name.none.ssl.client.auth": "none",
        "listener.name.UPPER_NONE.ssl.client.auth": "none",
        "listener.name.sasl_required.ssl.client.auth": "required",
    }
    for name in ("sasl_common", "sasl_required"):
        broker.settings[f"listener.name.{name}.plain.sasl.jaas.config"] = login("right")
    for name in ("of_mechanism", "of_listener"):
        broker.settings[f"listener.name.{name}.sasl.enabled.mechanisms"] = "OAUTHBEARER"
        broker.settings[f"listener.name.{name}.oauthbearer.sasl.jaas.config"] = TOKEN_LOGIN
        broker.settings[f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class"] = TOKENS
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(keys.urls.values())}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka, "JVM_OPTIONS", (*kafka.JVM_OPTIONS, *kafka.SHORT_LIVED, allowed))
        with broker:
            found = Server(ports, folder, keys)
            until(lambda: all(is_open(found, name) for name in PROTOCOLS), HANG_S)
            yield found


def is_open(server: Server, listener: str) -> bool:
    try:
        server.client(listener).sock.close()
    except OSError:
        return False
    return True


def is_ignored_by_us(name: str, value: str, protocol: str) -> bool:
    """Return whether kwire refuses a config, alone on a listener of this name, because Kafka ignores it."""
    listener = name.removeprefix("listener.name.").partition(".")[0].upper() if name.startswith("listener.") else "A"
    given = {"listeners": f"{listener}://127.0.0.1:0", "listener.security.protocol.map": f"{listener}:{protocol}"}
    try:
        parse_settings({**given, name: value})
    except OptionError as error:
        return "Kafka ignores it" in str(error) or f"unknown broker config '{name}'" in str(error)
    return False


@pytest.mark.parametrize("name", USERS)
def test_users_need_the_names_of_a_listener_and_a_mechanism(name: str, server: Server) -> None:
    is_read = server.takes_user("users", USERS[name])
    assert is_read == (name == "listener.name.users.plain.sasl.jaas.config")
    assert is_ignored_by_us(name, login(USERS[name]), "SASL_PLAINTEXT") != is_read
    if is_read:
        given = {"listeners": "USERS://127.0.0.1:0", "listener.security.protocol.map": "USERS:SASL_PLAINTEXT"}
        with Broker(**given, **{name: login("right")}) as broker, RawClient(broker) as client:
            assert client.log_in("right", "x").error_code == 0


@pytest.mark.parametrize(("listener", "prefix"), [("scram", "scram"), ("upper", "UPPER")])
def test_mechanisms_are_those_of_a_listener_in_lower_case(listener: str, prefix: str, server: Server) -> None:
    is_read = server.mechanisms(listener) == ["SCRAM-SHA-256"]
    assert is_read == (listener == prefix)
    assert is_read or server.mechanisms(listener) == ["PLAIN"]
    name = f"listener.name.{prefix}.sasl.enabled.mechanisms"
    assert is_ignored_by_us(name, "SCRAM-SHA-256", "SASL_PLAINTEXT") != is_read


def test_callback_handlers_need_the_name_of_a_mechanism(server: Server) -> None:
    """A handler of tokens would take no password."""
    for prefix in ("", "listener.name.handler."):
        assert server.takes_user("handler", "right")
        assert is_ignored_by_us(f"{prefix}sasl.server.callback.handler.class", TOKENS, "SASL_PLAINTEXT")


@pytest.mark.parametrize("listener", ["of_mechanism", "of_listener"])
def test_configs_of_tokens_are_read_with_and_without_the_name_of_a_mechanism(listener: str, server: Server) -> None:
    """kwire has none of them, and says so instead of calling them ignored."""
    assert [key for key in ("all", "of_mechanism", "of_listener") if server.takes_token(listener, key)] == [listener]
    mechanism = "oauthbearer." if listener == "of_mechanism" else ""
    name = f"listener.name.{listener}.{mechanism}sasl.oauthbearer.jwks.endpoint.url"
    assert not is_ignored_by_us(name, "file:/x", "SASL_PLAINTEXT")
    with pytest.raises(OptionError, match="tokens are validated by"):
        parse_settings({name: "file:/x"})


@pytest.mark.parametrize(
    ("listener", "name", "value", "is_needed"),
    [
        ("common", "ssl.client.auth", "required", True),
        ("none", "listener.name.none.ssl.client.auth", "none", False),
        ("upper_none", "listener.name.UPPER_NONE.ssl.client.auth", "none", True),
        ("sasl_common", "ssl.client.auth", "required", False),
        ("sasl_required", "listener.name.sasl_required.ssl.client.auth", "required", True),
    ],
)
def test_certificates_are_asked_for(listener: str, name: str, value: str, is_needed: bool, server: Server) -> None:
    assert server.needs_certificate(listener) == is_needed
    is_read = is_needed == (value == "required")
    assert is_ignored_by_us(name, value, PROTOCOLS[listener]) != is_read
