"""Logging in on one connection: from the first request to the end of the session, and once more after it.

    state       comes                                   goes to
    NEW         ApiVersions                             NEW
                SaslHandshake                           TOKENS; a mechanism that is not offered ends the connection
    TOKENS      SaslAuthenticate (after handshake 1)    itself, or DONE
                bare tokens (after handshake 0)         itself, or DONE
    DONE        anything                                itself, until the session is over
                SaslHandshake, if sessions end          TOKENS, by the same mechanism, for the same user only (KIP-368)

Anything else ends the connection: in TOKENS after an error response, otherwise without one. So a client that has begun
to log in again gets nothing until it has finished. It may begin once a second. Bare tokens stand in frames of their
own, without Kafka's headers, and a refusal has no response there.
Source: org.apache.kafka.common.security.authenticator.SaslServerAuthenticator; KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from kwire.broker.clock import Clock
from kwire.broker.context import Peer
from kwire.broker.security.errors import AuthenticationFailed, UnexpectedRequest
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["SaslSession", "State", "Step"]

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
BEFORE_LOGIN = frozenset({API_VERSIONS, SASL_HANDSHAKE})
MIN_RENEWAL_INTERVAL_MS = 1000
"""Source: KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS."""


class SaslServer(Protocol):
    """One authentication by one mechanism. expires_at_ms: when the credentials do, None for those that do not.
    is_token_authenticated: whether they are a delegation token.
    """

    user: str | None
    expires_at_ms: int | None
    is_token_authenticated: bool

    def step(self, message: bytes) -> bytes:
        """The answer to a message; sets user when that was the last. Raises AuthenticationFailed."""


class State(Enum):
    """See the table above."""

    NEW = "new"
    TOKENS = "tokens"
    DONE = "done"


class Step(NamedTuple):
    """An answer to a token. lifetime_ms: of the session that begins with it; 0 before that, or if it never ends."""

    token: bytes
    lifetime_ms: int


class SaslSession:
    """mechanisms: what is offered, and how each begins. max_lifetime_ms: connections.max.reauth.ms, 0 for no end."""

    def __init__(
        self, peer: Peer, clock: Clock, mechanisms: Mapping[str, Callable[[], SaslServer]], max_lifetime_ms: int
    ) -> None:
        self.state = State.NEW
        self.takes_bare_tokens = False
        self._peer, self._clock = peer, clock
        self._mechanisms, self._max_lifetime_ms = mechanisms, max_lifetime_ms
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._ends_at_ms: int | None = None
        self._renewal_began_ms: int | None = None
        self._problem: AuthenticationFailed | None = None

    @property
    def is_open(self) -> bool:
        """Whether a token may come."""
        return self.state == State.TOKENS

    @property
    def is_over(self) -> bool:
        """Whether the session has to be renewed before anything else is asked."""
        return self._ends_at_ms is not None and self._clock.now_ms() > self._ends_at_ms

    def check_request(self, api_key: int) -> None:
        """Check that a request may come now.

        Raises UnexpectedRequest for one that is refused, another BrokerError for one that must not be read; the
        connection has to end in both cases.
        """
        if self.state == State.DONE:
            if self.is_over and api_key != SASL_HANDSHAKE:
                raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "the session is over and was not renewed")
        elif self.state == State.TOKENS:
            if api_key != SASL_AUTHENTICATE:
                raise UnexpectedRequest(api_key)
        elif api_key not in BEFORE_LOGIN:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, f"request with api key {api_key} before authentication")

    def handshake(self, mechanism: str, version: int) -> None:
        """Choose a mechanism.

        Raises BrokerError: ILLEGAL_SASL_STATE, after which the session goes on; UNSUPPORTED_SASL_MECHANISM, and
        AuthenticationFailed when it cannot be renewed by that mechanism, after which the connection has to end.
        """
        begin = self._mechanisms.get(mechanism)
        renews = self.state == State.DONE
        if renews:
            self._begin_renewal()
        if begin is None:
            what = f"Unsupported SASL mechanism {mechanism}"
            if renews:
                raise AuthenticationFailed(what, is_silent=True)
            raise refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, what)
        if renews and mechanism != self._mechanism:  # noticed when the first token comes, as Kafka does
            self._problem = AuthenticationFailed(
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
                f"'{self._mechanism}'",
                is_silent=True,
            )
        self._server = begin()
        self._mechanism = mechanism
        self.state = State.TOKENS
        self.takes_bare_tokens = version == 0

    def _begin_renewal(self) -> None:
        """Raises BrokerError: ILLEGAL_SASL_STATE when the session cannot be renewed now."""
        if self._ends_at_ms is None:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "this session does not end, so it cannot be renewed")
        now_ms, began_ms = self._clock.now_ms(), self._renewal_began_ms
        if began_ms is not None and now_ms - began_ms < MIN_RENEWAL_INTERVAL_MS:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "a session can be renewed once a second")
        self._renewal_began_ms = now_ms

    def take(self, token: bytes) -> Step:
        """The next token. Raises AuthenticationFailed with the text for the client; the connection has to end."""
        server = self._server
        if not self.is_open or server is None:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "a token comes after a handshake")
        try:
            if self._problem is not None:
                raise self._problem
            answer = server.step(token)
            lifetime_ms = 0 if server.user is None else self._log_in(f"User:{server.user}", server)
        except AuthenticationFailed as error:
            self._server = None
            if error.what:
                raise
            again = "re-authentication" if self._is_renewal else "authentication"
            raise AuthenticationFailed(
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism {self._mechanism}"
            ) from None
        return Step(answer, lifetime_ms)

    @property
    def _is_renewal(self) -> bool:
        return self._ends_at_ms is not None

    def _log_in(self, principal: str, server: SaslServer) -> int:
        """The principal is known; returns the length of its session in ms, at most that of its credentials."""
        peer = self._peer
        if self._is_renewal and principal != peer.principal:
            before, after = (name.replace(":", ".", 1) for name in (peer.principal, principal))
            raise AuthenticationFailed(f"Cannot change principals during re-authentication from {before}: {after}")
        peer.principal = principal
        peer.is_token_authenticated = server.is_token_authenticated
        self._server = None
        self.state = State.DONE
        self.takes_bare_tokens = False
        now_ms = self._clock.now_ms()
        lifetimes = [self._max_lifetime_ms] if self._max_lifetime_ms > 0 else []
        if server.expires_at_ms is not None:
            lifetimes.append(max(0, server.expires_at_ms - now_ms))
        if not lifetimes:
            return 0
        self._ends_at_ms = now_ms + min(lifetimes)
        return min(lifetimes)
