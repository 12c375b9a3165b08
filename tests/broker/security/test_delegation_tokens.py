"""Delegation tokens (KIP-48): the same requests to Kafka 4.4.0 gave the same error codes, times and tokens."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kwire.protocol.error_codes import ErrorCode
from tests.broker.security.raw_client import Closed, RawClient
from tests.broker.security.scram_client import ScramClient

USERS = {name: f"{name}-secret" for name in ("alice", "bob", "carl")}
SETTINGS: dict[str, Any] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "users": USERS,
    "acls": True,
    "delegation_token_secret_key": "a secret key",
}
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MECHANISMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**SETTINGS, keep_requests=1000) as running:
        yield running


def logged_in(broker: Broker, user: str) -> RawClient:
    client = RawClient(broker)
    assert client.log_in(user, USERS[user]).error_code == 0
    return client


def create(
    client: RawClient, *, owner: str | None = None, renewers: tuple[str, ...] = (), lifetime_ms: int = -1
) -> Any:
    cls = CreateDelegationTokenRequest
    request = cls(
        owner_principal_type="User",
        owner_principal_name=owner,
        renewers=[cls.CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=lifetime_ms,
    )
    return client.ask(request, 3)


def renew(client: RawClient, hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    response = client.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), 2)
    return response.error_code, response.expiry_timestamp_ms


def expire(client: RawClient, hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    response = client.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), 2)
    return response.error_code, response.expiry_timestamp_ms


def describe(client: RawClient, *owners: str, version: int = 3) -> list[Any]:
    cls = DescribeDelegationTokenRequest
    named = [cls.DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    response = client.ask(cls(owners=named or None), version)
    assert response.error_code == 0
    return list(response.tokens)


def token_login(
    broker: Broker, token_id: str, hmac: bytes, mechanism: str = "SCRAM-SHA-256", extension: str = ",tokenauth=true"
) -> tuple[RawClient, Any]:
    """Return a connection and its last SaslAuthenticate response."""
    client = RawClient(broker)
    client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    scram = ScramClient(MECHANISMS[mechanism], token_id, base64.b64encode(hmac).decode(), "nonce")
    scram.bare += extension
    response = client.ask(SaslAuthenticateRequest(auth_bytes=scram.first()), 2)
    return client, client.ask(SaslAuthenticateRequest(auth_bytes=scram.final(response.auth_bytes)), 2)


def test_a_token_has_an_owner_renewers_and_times(broker: Broker) -> None:
    with logged_in(broker, "alice") as alice:
        token = create(alice, renewers=("bob",))
        assert (token.error_code, token.principal_type, token.principal_name) == (0, "User", "alice")
        assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "alice")
        assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
        assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * DAY_MS
        assert len(token.hmac) == 64
        short = create(alice, lifetime_ms=5000)
        assert short.expiry_timestamp_ms == short.max_timestamp_ms == short.issue_timestamp_ms + 5000
        (found,) = (each for each in describe(alice) if each.token_id == token.token_id)
        assert (found.hmac, found.expiry_timestamp) == (token.hmac, token.expiry_timestamp_ms)
        assert [(each.principal_type, each.principal_name) for each in found.renewers] == [("User", "bob")]


def test_invalid_tokens_cannot_be_created(broker: Broker) -> None:
    with logged_in(broker, "alice") as alice:
        other = create(alice, owner="bob")
        assert other.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (other.principal_name, other.token_requester_principal_name) == ("bob", "alice")
        assert (other.issue_timestamp_ms, other.expiry_timestamp_ms, other.max_timestamp_ms) == (-1, -1, -1)
        cls = CreateDelegationTokenRequest
        group = cls.CreatableRenewers(principal_type="Group", principal_name="g")
        assert alice.ask(cls(renewers=[group]), 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_super_user_creates_tokens_for_others() -> None:
    with Broker(**SETTINGS, super_users="User:carl") as broker, logged_in(broker, "carl") as carl:
        token = create(carl, owner="bob")
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "bob", "carl")
        client, response = token_login(broker, token.token_id, token.hmac)
        assert response.error_code == 0
        with client, logged_in(broker, "bob") as bob:
            assert [each.token_requester_principal_name for each in describe(bob)] == ["carl"]
            assert [each.token_requester_principal_name for each in describe(bob, version=2)] == [""]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_owner_authenticates_with_a_token(broker: Broker, mechanism: str) -> None:
    with logged_in(broker, "alice") as alice:
        token = create(alice, renewers=("alice",))
    client, response = token_login(broker, token.token_id, token.hmac, mechanism)
    assert response.error_code == 0
    assert DAY_MS - HOUR_MS < response.session_lifetime_ms <= DAY_MS
    with client:
        assert len(client.ask(MetadataRequest(topics=[]), 9).brokers) == 1
        assert broker.requests.of("Metadata")[-1].principal == "User:alice"
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert create(client).error_code == not_allowed
        assert renew(client, token.hmac) == expire(client, token.hmac) == (not_allowed, -1)
        assert client.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == not_allowed


def test_invalid_tokens_cannot_authenticate(broker: Broker) -> None:
    with logged_in(broker, "alice") as alice:
        token = create(alice)
    for token_id, hmac, extension in (
        (token.token_id, b"wrong", ",tokenauth=true"),
        ("unknown", token.hmac, ",tokenauth=true"),
        ("alice", token.hmac, ",tokenauth=true"),
        (token.token_id, token.hmac, ""),
    ):
        client, response = token_login(broker, token_id, hmac, extension=extension)
        client.sock.close()
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in response.error_message


def test_owner_and_renewers_can_renew_and_expire_a_token(broker: Broker) -> None:
    with logged_in(broker, "alice") as alice, logged_in(broker, "bob") as bob, logged_in(broker, "carl") as carl:
        token = create(alice, renewers=("bob",))
        assert describe(carl) == describe(alice, "carl") == []
        assert [each.token_id for each in describe(bob)] == [token.token_id]
        assert [each.token_id for each in describe(alice, "bob")] == [token.token_id]  # as its renewer
        assert renew(carl, token.hmac) == expire(carl, token.hmac) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
        assert renew(alice, b"x") == expire(alice, b"x") == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
        broker.advance(12 * HOUR_MS)
        code, expires_at_ms = renew(bob, token.hmac)
        assert code == 0
        assert 12 * HOUR_MS <= expires_at_ms - token.expiry_timestamp_ms < 13 * HOUR_MS
        code, expires_at_ms = expire(bob, token.hmac, HOUR_MS)
        assert (code, [each.expiry_timestamp for each in describe(alice)]) == (0, [expires_at_ms])
        assert expire(alice, token.hmac)[0] == 0
        assert expire(alice, token.hmac) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
        assert describe(alice) == []


def test_a_renewal_does_not_exceed_the_maximum_lifetime(broker: Broker) -> None:
    with logged_in(broker, "alice") as alice:
        token = create(alice, lifetime_ms=DAY_MS + HOUR_MS)
        assert token.expiry_timestamp_ms == token.issue_timestamp_ms + DAY_MS
        broker.advance(2 * HOUR_MS)
        assert renew(alice, token.hmac) == (0, token.max_timestamp_ms)


def test_an_expired_token_is_removed_and_ends_its_sessions() -> None:
    settings = {**SETTINGS, "delegation_token_expiry_check_interval_ms": 10 * HOUR_MS}
    with Broker(**settings) as broker, logged_in(broker, "alice") as alice:
        token = create(alice, lifetime_ms=HOUR_MS)
        client, response = token_login(broker, token.token_id, token.hmac)
        assert 0 < response.session_lifetime_ms <= HOUR_MS
        broker.advance(2 * HOUR_MS)
        with client, pytest.raises(Closed):
            client.ask(MetadataRequest(topics=[]), 9)
        assert renew(alice, token.hmac) == expire(alice, token.hmac, 1) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
        late, response = token_login(broker, token.token_id, token.hmac)
        late.sock.close()
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert len(describe(alice)) == 1
        broker.advance(9 * HOUR_MS)
        assert describe(alice) == []


def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path, **SETTINGS) as broker, logged_in(broker, "alice") as alice:
        token = create(alice)
    with Broker(tmp_path, **SETTINGS) as broker:
        client, response = token_login(broker, token.token_id, token.hmac)
        client.sock.close()
        assert response.error_code == 0
        broker.reset()
        with logged_in(broker, "alice") as alice:
            assert describe(alice) == []


def test_tokens_require_a_secret_key_and_authentication() -> None:
    without = {name: value for name, value in SETTINGS.items() if not name.startswith("delegation")}
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    with Broker(**without) as broker, logged_in(broker, "alice") as alice:
        assert create(alice).error_code == disabled
        assert renew(alice, b"x") == expire(alice, b"x") == (disabled, 0)
        assert alice.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == disabled
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with Broker(delegation_token_secret_key="a secret key") as broker, RawClient(broker) as anonymous:
        response = create(anonymous)
        assert (response.error_code, response.principal_name) == (not_allowed, "ANONYMOUS")
        assert renew(anonymous, b"x") == expire(anonymous, b"x") == (not_allowed, -1)
        assert anonymous.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == not_allowed


def test_token_secrets_are_not_stored(broker: Broker, tmp_path: Path) -> None:
    with logged_in(broker, "alice") as alice:
        token = create(alice)
        renew(alice, token.hmac)
        describe(alice)
    reported = "".join(f"{each.request}{each.response}" for each in broker.requests)
    assert repr(token.hmac)[2:-1] not in reported
    assert "a secret key" not in repr(broker.settings) + reported
