"""OAUTHBEARER: messages, unsigned tokens, custom validators, and clients that authenticate with tokens."""

from __future__ import annotations

import select
import time
import traceback
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from kwire.broker import Broker
from kwire.broker.clock import ManualClock
from kwire.broker.context import Peer
from kwire.broker.security import AuthenticationFailed, SaslSession
from kwire.broker.security.oauthbearer import OauthBearerServer
from kwire.broker.tokens import UNSECURED, InvalidToken, TokenValidator, ValidToken, validate_unsecured
from kwire.client import Client
from kwire.client.broker_connection import BrokerConnection
from kwire.client.oauthbearer import initial_response, unsecured_token
from kwire.errors import BrokerError, OptionError
from kwire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.broker.security.raw_client import RawClient
from tests.broker.security.test_clients import SMALL
from tests.waiting import HANG_S, until

NOW_MS = 1_760_000_000_000
NOW_S = NOW_MS // 1000
GOOD = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
TAKES_TOKENS: dict[str, Any] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl_enabled_mechanisms": "PLAIN,OAUTHBEARER",
    **SMALL,
}
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


def server(validator: TokenValidator = UNSECURED) -> OauthBearerServer:
    return OauthBearerServer(validator, ManualClock(NOW_MS))


def test_an_unsigned_token_has_a_principal_and_an_expiry() -> None:
    assert validate_unsecured(unsecured_token(GOOD), NOW_MS) == ValidToken("alice", NOW_MS + 60_000)
    found = server()
    assert found.step(initial_response(unsecured_token(GOOD), {"pool": "p 1"})) == b""
    assert (found.user, found.expires_at_ms) == ("alice", NOW_MS + 60_000)


@pytest.mark.parametrize(
    "token",
    [
        unsecured_token(GOOD | {"exp": NOW_S}),
        unsecured_token(GOOD | {"iat": NOW_S + 1}),
        unsecured_token({"sub": "alice"}),
        unsecured_token({"exp": NOW_S + 60}),
        unsecured_token(GOOD | {"sub": ""}),
        unsecured_token(GOOD | {"sub": 5}),
        unsecured_token(GOOD | {"exp": "soon"}),
        unsecured_token(GOOD | {"exp": True}),
        unsecured_token(GOOD | {"exp": float("inf")}),
        unsecured_token(GOOD | {"exp": 10**400}),
        unsecured_token(GOOD) + "c2lnbmVk",
        unsecured_token(GOOD).replace("eyJhbGciOiAibm9uZSJ9", "eyJhbGciOiAiUlMyNTYifQ"),
        "..",
        "a.b",
        "W10.W10.",
        "x",
    ],
)
def test_a_rejected_token_gets_an_error_before_authentication_fails(token: str) -> None:
    found = server()
    assert found.step(initial_response(token, {})) == b'{"status":"invalid_token"}'
    assert found.user is None
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        found.step(b"\x01")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "Invalid OAUTHBEARER client first message"),
        (b"\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01\x01", "'auth' not specified"),
        (b"n,,\x01host=a\x01\x01", "'auth' not specified"),
        (b"n,,\x01auth=Basic abc\x01\x01", "Invalid scheme in OAUTHBEARER client first message: Basic"),
        (b"n,,\x01auth=Bearer a b\x01\x01", "'auth' not specified"),
        (b"y,,\x01auth=Bearer a\x01\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01auth=Bearer \xff\x01\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,a=bob,\x01auth=Bearer " + unsecured_token(GOOD).encode() + b"\x01\x01", r"authorization id \(bob\)"),
    ],
)
def test_a_malformed_message_fails_authentication(message: bytes, text: str) -> None:
    with pytest.raises(AuthenticationFailed, match=text):
        server().step(message)


def test_a_session_ends_with_its_token() -> None:
    for max_lifetime_ms, expected in ((0, 60_000), (90_000, 60_000), (5_000, 5_000)):
        peer = Peer(connection_id="c", host="127.0.0.1", port=1, listener="S", security_protocol="SASL_PLAINTEXT")
        clock = ManualClock(NOW_MS)
        mechanisms = {"OAUTHBEARER": lambda: OauthBearerServer(UNSECURED, clock)}  # noqa: B023
        session = SaslSession(peer, clock, mechanisms, max_lifetime_ms)
        session.handshake("OAUTHBEARER", 1)
        assert session.take(initial_response(unsecured_token(GOOD), {})).lifetime_ms == expected
        assert peer.principal == "User:alice"
        clock.advance(expected + 1)
        assert session.is_over


def test_a_validator_must_be_a_function() -> None:
    with pytest.raises(OptionError, match="expected a function"):
        TokenValidator(5)  # type: ignore[arg-type]


def validate(token: str, now_ms: int) -> ValidToken:
    if token == "weak":
        raise InvalidToken("insufficient_scope", "kafka:write")
    if token != "s3cret":
        raise InvalidToken
    return ValidToken("service")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Brokers that accept unsigned tokens, and tokens of a validator."""
    with Broker(**TAKES_TOKENS) as unsecured, Broker(**TAKES_TOKENS, sasl_oauthbearer_validator=validate) as own:
        yield {"unsecured": unsecured.bootstrap_servers, "own": own.bootstrap_servers}


def fails(token: str, now_ms: int) -> ValidToken:
    raise KeyError(f"no claim in {token}")


@pytest.mark.parametrize("result", [None, "ab", ("a", 5), ValidToken(""), ValidToken(5), fails])  # type: ignore[arg-type]
def test_a_validator_that_fails_refuses_the_token_and_keeps_it_out_of_the_log(
    result: object, caplog: pytest.LogCaptureFixture
) -> None:
    found = server(TokenValidator(result if callable(result) else lambda token, now_ms: result))  # type: ignore[arg-type]
    with caplog.at_level("DEBUG"), pytest.raises(AuthenticationFailed):
        found.step(initial_response("s3cret", {}))
    assert found.user is None
    assert "the validator of OAUTHBEARER tokens" in caplog.text
    assert "s3cret" not in caplog.text
    if callable(result):
        assert f"KeyError at {__file__}:{fails.__code__.co_firstlineno + 1}" in caplog.text


DELAY_MS = 50_000_000


def delayed(broker: Broker) -> int:
    """Return how many timers wait for the delay of failed logins."""

    def count(node: Any) -> int:
        left = [DELAY_MS / 1000 - each.due + node.timers.loop.time() for each in node.timers.pending]
        return sum(0 <= each < HANG_S for each in left)

    return broker.call(count)


@pytest.mark.parametrize("version", [0, 1])
def test_a_refused_token_gets_its_response_after_the_delay_of_failed_logins(version: int) -> None:
    settings = {**TAKES_TOKENS, "connection_failed_authentication_delay_ms": DELAY_MS}
    with Broker(**settings, sasl_oauthbearer_validator=validate) as broker, RawClient(broker) as client:
        client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), version)
        for token in (initial_response("wrong", {}), b"\x01"):
            if version:
                client.sock.sendall(client.connection.send(SaslAuthenticateRequest(auth_bytes=token), version=2))
            else:
                client.sock.sendall(len(token).to_bytes(4, "big") + token)
            until(lambda: delayed(broker) == 1)
            assert select.select([client.sock], [], [], 0)[0] == []
            broker.advance(DELAY_MS)
            expected = b'{"status":"invalid_token"}' if version or token != b"\x01" else b""
            assert expected in client.sock.recv(1000)
        assert client.sock.recv(1000) == b""


def test_a_wrong_password_without_headers_closes_the_connection_after_the_delay() -> None:
    settings = {**TAKES_TOKENS, "connection_failed_authentication_delay_ms": DELAY_MS}
    with Broker(**settings) as broker, RawClient(broker) as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        token = b"\0alice\0wrong"
        client.sock.sendall(len(token).to_bytes(4, "big") + token)
        until(lambda: delayed(broker) == 1)
        assert select.select([client.sock], [], [], 0)[0] == []
        broker.advance(DELAY_MS)
        assert client.sock.recv(1) == b""


def test_our_client_authenticates_with_a_token(servers: dict[str, str]) -> None:
    jaas = f'{MODULE} unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_pool="p";'
    with Client(servers["unsecured"], **SASL, **{"sasl.jaas.config": jaas}) as client:
        assert client.metadata([]).brokers
    with Client(servers["own"], **SASL, **{"sasl.oauthbearer.token.callback": lambda: "s3cret"}) as client:
        assert client.metadata([]).brokers


@pytest.mark.parametrize(("token", "status"), [("wrong", "invalid_token"), ("weak", "insufficient_scope.*kafka:write")])
def test_our_client_reports_why_its_token_was_rejected(servers: dict[str, str], token: str, status: str) -> None:
    with Client(servers["own"], **SASL, **{"sasl.oauthbearer.token.callback": lambda: token}) as client:
        with pytest.raises(BrokerError, match=f"the broker refused the token .*{status}") as caught:
            client.metadata([])
        assert caught.value.code == 58


def test_a_token_callback_that_raises_leaves_no_connection_open(servers: dict[str, str]) -> None:
    def sealed() -> str:
        raise RuntimeError("the vault is sealed")

    settings = {**SASL, "sasl.oauthbearer.token.callback": sealed}
    with Client(servers["own"], **settings) as client, pytest.raises(RuntimeError, match="sealed") as caught:
        client.metadata([])
    frames = [frame for frame, _ in traceback.walk_tb(caught.tb)]
    (connection,) = {each for frame in frames if isinstance(each := frame.f_locals.get("self"), BrokerConnection)}
    assert not connection.is_open


def test_a_connection_closed_with_its_token_is_reopened_with_a_new_one() -> None:
    given: list[str] = []

    def short() -> str:
        now = time.time()
        given.append(unsecured_token({"sub": "alice", "exp": now + (600 if not given else 6000)}))
        return given[-1]

    settings = {**SASL, "sasl.oauthbearer.token.callback": short}
    with Broker(**TAKES_TOKENS) as broker, Client(broker.bootstrap_servers, **settings) as client:
        assert client.metadata([]).brokers
        broker.advance(601_000)
        assert client.metadata([]).brokers
        assert len(given) == 2


@pytest.mark.slow
def test_librdkafka_authenticates_with_a_token(servers: dict[str, str]) -> None:
    def producer(token: str) -> confluent_kafka.Producer:
        settings = {**SASL, "bootstrap.servers": servers["own"]}
        return confluent_kafka.Producer({**settings, "oauth_cb": lambda _: (token, time.time() + 600)})

    admitted, refused = producer("s3cret"), producer("wrong")
    admitted.poll(0)
    assert admitted.list_topics(timeout=HANG_S).brokers
    refused.poll(0)
    with pytest.raises(confluent_kafka.KafkaException):
        refused.list_topics(timeout=2)
