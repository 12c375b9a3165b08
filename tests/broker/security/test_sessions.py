"""Authentication, session expiry and re-authentication on one connection."""

from __future__ import annotations

import contextlib

import pytest

from kwire.broker.clock import ManualClock
from kwire.broker.context import ANONYMOUS, Peer
from kwire.broker.security import AuthenticationFailed, SaslSession
from kwire.broker.security.errors import UnexpectedRequest
from kwire.broker.security.plain import PlainServer
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode

API_VERSIONS, HANDSHAKE, AUTHENTICATE, METADATA = 18, 17, 36, 3
USERS = {"alice": "secret", "bob": "secret"}


def plain(user: str = "alice", password: str = "secret", authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


class Connection:
    """A connection on a SASL listener with PLAIN and, with the same implementation, OTHER."""

    def __init__(self, max_lifetime_ms: int = 0) -> None:
        self.clock = ManualClock()
        self.peer = Peer(connection_id="c", host="127.0.0.1", port=1, listener="S", security_protocol="SASL_PLAINTEXT")
        mechanisms = dict.fromkeys(("PLAIN", "OTHER"), lambda: PlainServer(USERS.get))
        self.session = SaslSession(self.peer, self.clock, mechanisms, max_lifetime_ms)

    def log_in(self, user: str = "alice", mechanism: str = "PLAIN") -> int:
        self.session.handshake(mechanism, 1)
        return self.session.take(plain(user)).lifetime_ms

    def allowed(self) -> set[int]:
        found = set()
        for api_key in (API_VERSIONS, HANDSHAKE, AUTHENTICATE, METADATA):
            with contextlib.suppress(BrokerError):
                self.session.check_request(api_key)
                found.add(api_key)
        return found


def test_only_authentication_requests_are_read_before_authentication() -> None:
    connection = Connection()
    assert connection.allowed() == {API_VERSIONS, HANDSHAKE}
    connection.session.handshake("PLAIN", 1)
    assert connection.allowed() == {AUTHENTICATE}
    assert connection.peer.principal == ANONYMOUS
    connection.session.take(plain())
    assert connection.allowed() == {API_VERSIONS, HANDSHAKE, AUTHENTICATE, METADATA}
    assert connection.peer.principal == "User:alice"


@pytest.mark.parametrize("version", [0, 1])
def test_raw_tokens_follow_only_handshake_0_and_end_with_authentication(version: int) -> None:
    session = Connection().session
    session.handshake("PLAIN", version)
    assert session.takes_bare_tokens is (version == 0)
    session.take(plain())
    assert not session.takes_bare_tokens


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (plain(password="wrong"), "Authentication failed: Invalid username or password"),
        (plain("nobody"), "Authentication failed: Invalid username or password"),
        (plain(""), "Authentication failed: username not specified"),
        (plain(password=""), "Authentication failed: password not specified"),
        (plain(authorization_id="bob"), "different from username"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (plain() + b"\0", "expected 3 tokens, got 4"),
        (b"\0\xff\0\xff", "Invalid username or password"),
    ],
)
def test_a_rejected_client_gets_a_reason_without_details(token: bytes, text: str) -> None:
    connection = Connection()
    connection.session.handshake("PLAIN", 1)
    with pytest.raises(AuthenticationFailed) as caught:
        connection.session.take(token)
    assert text in caught.value.what
    assert "secret" not in caught.value.what
    assert connection.peer.principal == ANONYMOUS
    assert connection.allowed() <= {AUTHENTICATE}


def test_an_authorization_id_may_equal_the_user() -> None:
    connection = Connection()
    connection.session.handshake("PLAIN", 1)
    connection.session.take(plain(authorization_id="alice"))
    assert connection.peer.principal == "User:alice"


def test_disabled_mechanisms_are_rejected() -> None:
    with pytest.raises(BrokerError) as caught:
        Connection().session.handshake("GSSAPI", 1)
    assert caught.value.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_a_session_without_an_expiry_cannot_be_renewed() -> None:
    connection = Connection()
    assert connection.log_in() == 0
    with pytest.raises(BrokerError) as caught:
        connection.session.handshake("PLAIN", 1)
    assert caught.value.code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_session_that_is_not_renewed_in_time_expires() -> None:
    connection = Connection(max_lifetime_ms=1000)
    assert connection.log_in() == 1000
    connection.clock.advance(1000)
    assert METADATA in connection.allowed()
    connection.clock.advance(1)
    assert connection.allowed() == {HANDSHAKE}
    assert connection.log_in() == 1000
    assert METADATA in connection.allowed()


@pytest.mark.parametrize("later_ms", [0, 1001])
def test_a_handshake_without_authentication_renews_nothing(later_ms: int) -> None:
    connection = Connection(max_lifetime_ms=1000)
    connection.log_in()
    connection.clock.advance(later_ms)
    connection.session.handshake("PLAIN", 1)
    assert connection.allowed() == {AUTHENTICATE}
    with pytest.raises(UnexpectedRequest):  # which has a response
        connection.session.check_request(METADATA)
    assert connection.session.take(plain()).lifetime_ms == 1000
    assert METADATA in connection.allowed()
    assert connection.peer.principal == "User:alice"


def test_a_session_is_renewed_at_most_once_a_second() -> None:
    connection = Connection(max_lifetime_ms=10_000)
    connection.log_in()
    connection.log_in()
    connection.clock.advance(999)
    with pytest.raises(BrokerError) as caught:
        connection.session.handshake("PLAIN", 1)
    assert caught.value.code == ErrorCode.ILLEGAL_SASL_STATE
    assert METADATA in connection.allowed()
    connection.clock.advance(1)
    assert connection.log_in() == 10_000


def test_a_session_is_not_renewed_with_a_disabled_mechanism() -> None:
    connection = Connection(max_lifetime_ms=1000)
    connection.log_in()
    with pytest.raises(AuthenticationFailed) as caught:
        connection.session.handshake("GSSAPI", 1)
    assert caught.value.is_silent


def test_a_session_is_renewed_by_the_same_user_with_the_same_mechanism() -> None:
    for user, mechanism, text in (
        ("bob", "PLAIN", "Cannot change principals during re-authentication from User.alice: User.bob"),
        ("alice", "OTHER", "'OTHER' requested by client is not supported for re-authentication of mechanism 'PLAIN'"),
    ):
        connection = Connection(max_lifetime_ms=1000)
        connection.log_in()
        with pytest.raises(AuthenticationFailed) as caught:
            connection.log_in(user, mechanism)
        assert text in caught.value.what
        assert connection.peer.principal == "User:alice"
