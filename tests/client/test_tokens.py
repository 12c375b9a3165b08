"""Delegation tokens by the client: our broker, and Kafka's."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools import kafka

from kwire.broker import Broker
from kwire.client import Client, ClientSettings
from kwire.client.admin.tokens import TokenLogin, create_token, describe_tokens, expire_token, renew_token
from kwire.client.broker_connection import BrokerConnection
from kwire.errors import BrokerError, OptionError, UnsupportedVersion
from kwire.protocol.error_codes import ErrorCode
from tests.broker.security.test_delegation_tokens import SETTINGS, USERS
from tests.waiting import until

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**SETTINGS) as running:
        yield running


def client_of(servers: str, user: str) -> Client:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": USERS[user]}
    return Client(servers, **{"security.protocol": "SASL_PLAINTEXT", **login})


def logs_in(servers: str, configs: dict[str, str]) -> bool:
    try:
        with Client(servers, **{"security.protocol": "SASL_PLAINTEXT", **configs}) as client:
            return bool(client.metadata([]).brokers)
    except BrokerError as error:
        if error.code != ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise
        return False


def check_tokens(servers: str) -> TokenLogin:
    """Create, use, describe and renew a token of alice that bob may renew; return it."""
    with client_of(servers, "alice") as alice, client_of(servers, "bob") as bob:
        created = create_token(alice, renewers=["User:bob"], max_lifetime_ms=2 * DAY_MS)
        token = created.token
        assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ("User:bob",))
        assert token.max_timestamp - token.issue_timestamp == 2 * DAY_MS
        assert token.expiration_timestamp - token.issue_timestamp == DAY_MS
        until(lambda: logs_in(servers, created.configs()), "a token does not log in")
        assert logs_in(servers, created.configs("SCRAM-SHA-512"))
        with Client(servers, **{"security.protocol": "SASL_PLAINTEXT", **created.configs()}) as by_token:
            with pytest.raises(BrokerError) as refused:
                create_token(by_token)
            assert refused.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert describe_tokens(alice) == [created]
        assert describe_tokens(alice, ["User:alice"]) == [created]
        assert describe_tokens(alice, ["User:carl"]) == []
        renewed = renew_token(bob, created.hmac, 2 * HOUR_MS)
        assert token.issue_timestamp + 2 * HOUR_MS <= renewed < token.issue_timestamp + 3 * HOUR_MS
        with pytest.raises(BrokerError) as unknown:
            renew_token(bob, b"another")
        assert unknown.value.code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    return created


def test_a_token_logs_in_is_renewed_and_expires(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    created = check_tokens(servers)
    with client_of(servers, "alice") as alice:
        assert expire_token(alice, created.hmac, 60_000) <= time.time() * 1000 + 60_000
        assert logs_in(servers, created.configs())
        broker.advance(60_001)
        assert not logs_in(servers, created.configs())
        again = create_token(alice)
        assert logs_in(servers, again.configs())
        expire_token(alice, again.hmac)
        assert not logs_in(servers, again.configs())
        assert again not in describe_tokens(alice)


def test_a_token_without_tokenauth_is_a_user_that_does_not_exist(broker: Broker) -> None:
    with client_of(broker.bootstrap_servers, "alice") as alice:
        created = create_token(alice)
    configs = created.configs()
    plain = configs["sasl.jaas.config"].replace(' tokenauth="true"', "")
    assert not logs_in(broker.bootstrap_servers, {**configs, "sasl.jaas.config": plain})
    wrong = {**configs, "sasl.jaas.config": configs["sasl.jaas.config"].replace('password="', 'password="A')}
    assert not logs_in(broker.bootstrap_servers, wrong)


def test_no_repr_has_the_hmac(broker: Broker) -> None:
    with client_of(broker.bootstrap_servers, "alice") as alice:
        created = create_token(alice)
    settings = ClientSettings.parse({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", **created.configs()})
    assert settings.sasl_tokenauth
    for text in (repr(created), repr(settings)):
        assert base64.b64encode(created.hmac).decode() not in text
        assert repr(created.hmac) not in text


@pytest.mark.parametrize("version", [2, 3])
def test_a_token_may_have_another_owner_from_version_3_on(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BrokerConnection, "version_for", lambda self, api_key: version)
    with Broker(**SETTINGS, super_users="User:carl") as broker, client_of(broker.bootstrap_servers, "carl") as carl:
        if version < 3:
            with pytest.raises(UnsupportedVersion, match=r"2 of the broker has no owner: Kafka 3\.3 is needed"):
                create_token(carl, owner="User:bob")
            return
        token = create_token(carl, owner="User:bob").token
        assert (token.owner, token.requester) == ("User:bob", "User:carl")


@pytest.mark.parametrize("principal", ["alice", "User:", ":alice", ""])
def test_a_principal_has_a_type_and_a_name(broker: Broker, principal: str) -> None:
    with client_of(broker.bootstrap_servers, "alice") as alice, pytest.raises(OptionError, match="expected Type:Name"):
        create_token(alice, renewers=[principal])


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_kafka_accepts_our_logins_with_tokens(version: str, tmp_path: Path) -> None:
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    configs: dict[str, Any] = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required username="alice" password="{USERS["alice"]}" {users};'
        ),
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "delegation.token.secret.key": "a secret key",
    }
    with kafka.KafkaBroker(tmp_path, version=version, **configs) as real:
        servers = real.bootstrap_servers
        created = check_tokens(servers)
        with client_of(servers, "alice") as alice:
            expire_token(alice, created.hmac)
            until(lambda: not logs_in(servers, created.configs()), "an expired token logs in")
            until(lambda: describe_tokens(alice) == [], "an expired token is described")
