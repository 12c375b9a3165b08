"""SASL authentication of one connection, and its renewal.

    state       event                                   next state
    NEW         ApiVersions                             NEW
                SaslHandshake                           TOKENS; an unsupported mechanism closes the connection
    TOKENS      SaslAuthenticate (after handshake 1)    TOKENS, or DONE
                bare tokens (after handshake 0)         TOKENS, or DONE
    DONE        any request                             DONE, until the session expires
                SaslHandshake, if sessions expire       TOKENS, with the same mechanism and user (KIP-368)

Anything else closes the connection: in TOKENS after an error response, otherwise without one. A client that has begun
to renew its session gets no other response until it has finished, and may renew once per second. Bare tokens are sent
in frames without Kafka's headers, so a failure has no response.
Source: org.apache.kafka.common.security.authenticator.SaslServerAuthenticator; KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from kwire.broker.clock import Clock
from kwire.broker.security.errors import AuthenticationFailed, UnexpectedRequest
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["SaslSession", "State", "Step"]

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
BEFORE_LOGIN = frozenset({API_VERSIONS, SASL_HANDSHAKE})
MIN_RENEWAL_INTERVAL_MS = 1000
"""Source: KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS."""


class SaslServer(Protocol):
    """One authentication by one mechanism.

    expires_at_ms: of the credentials, None without expiry. is_token_authenticated: by a delegation token. is_refusal:
    the last response says that the login has failed.
    """

    user: str | None
    expires_at_ms: int | None
    is_token_authenticated: bool

    @property
    def is_refusal(self) -> bool: ...

    def step(self, message: bytes) -> bytes:
        """Process a message and return the response; sets user after the last. Raises AuthenticationFailed."""


class State(Enum):
    """States of the table above."""

    NEW = "new"
    TOKENS = "tokens"
    DONE = "done"


class Step(NamedTuple):
    """The response to a token. lifetime_ms: of the session; 0 before its begin and for one without expiry.

    is_refusal: the response says that the login has failed, which ends with the client's next message.
    """

    token: bytes
    lifetime_ms: int
    is_refusal: bool


class Client(Protocol):
    """The client of a connection, of which a login sets the principal. See kwire.broker.context.Peer."""

    principal: str
    is_token_authenticated: bool


class SaslSession:
    """The authentication of a connection.

    mechanisms: the supported ones, with a factory each. max_lifetime_ms: connections.max.reauth.ms, 0 without expiry.
    """

    def __init__(
        self, client: Client, clock: Clock, mechanisms: Mapping[str, Callable[[], SaslServer]], max_lifetime_ms: int
    ) -> None:
        self.state = State.NEW
        self.takes_bare_tokens = False
        self._client, self._clock = client, clock
        self._mechanisms, self._max_lifetime_ms = mechanisms, max_lifetime_ms
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._ends_at_ms: int | None = None
        self._renewal_began_ms: int | None = None
        self._problem: AuthenticationFailed | None = None

    @property
    def is_open(self) -> bool:
        """Whether a token is expected."""
        return self.state == State.TOKENS

    @property
    def is_over(self) -> bool:
        """Whether the session has expired."""
        return self._ends_at_ms is not None and self._clock.elapsed_ms() > self._ends_at_ms

    def check_request(self, api_key: int) -> None:
        """Check that a request is allowed in this state.

        Raises UnexpectedRequest for a rejected one, another BrokerError for one that must not be read. The connection
        must be closed in both cases.
        """
        if self.state == State.DONE:
            if self.is_over and api_key != SASL_HANDSHAKE:
                raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "session has expired and was not renewed")
        elif self.state == State.TOKENS:
            if api_key != SASL_AUTHENTICATE:
                raise UnexpectedRequest(api_key)
        elif api_key not in BEFORE_LOGIN:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, f"request with API key {api_key} before authentication")

    def handshake(self, mechanism: str, version: int) -> None:
        """Select a mechanism.

        Raises BrokerError: ILLEGAL_SASL_STATE, which keeps the session; UNSUPPORTED_SASL_MECHANISM, and
        AuthenticationFailed if the session cannot be renewed with this mechanism, after which the connection must be
        closed.
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
        if renews and mechanism != self._mechanism:  # reported with the first token, as in Kafka
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
        """Begin to renew the session. Raises BrokerError: ILLEGAL_SASL_STATE."""
        if self._ends_at_ms is None:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "session without expiry cannot be renewed")
        now_ms, began_ms = self._clock.elapsed_ms(), self._renewal_began_ms
        if began_ms is not None and now_ms - began_ms < MIN_RENEWAL_INTERVAL_MS:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "session was renewed less than a second ago")
        self._renewal_began_ms = now_ms

    def take(self, token: bytes) -> Step:
        """Process the next token. Raises AuthenticationFailed with the message for the client."""
        server = self._server
        if not self.is_open or server is None:
            raise refusal(ErrorCode.ILLEGAL_SASL_STATE, "token without a handshake")
        try:
            if self._problem is not None:
                raise self._problem
            response = server.step(token)
            lifetime_ms = 0 if server.user is None else self._log_in(f"User:{server.user}", server)
        except AuthenticationFailed as error:
            self._server = None
            if error.what:
                raise
            again = "re-authentication" if self._is_renewal else "authentication"
            raise AuthenticationFailed(
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism {self._mechanism}"
            ) from None
        return Step(response, lifetime_ms, server.is_refusal)

    @property
    def _is_renewal(self) -> bool:
        return self._ends_at_ms is not None

    def _log_in(self, principal: str, server: SaslServer) -> int:
        """Set the principal; return the lifetime of the session in ms, limited by the credentials."""
        client = self._client
        if self._is_renewal and principal != client.principal:
            before, after = (name.replace(":", ".", 1) for name in (client.principal, principal))
            raise AuthenticationFailed(f"Cannot change principals during re-authentication from {before}: {after}")
        client.principal = principal
        client.is_token_authenticated = server.is_token_authenticated
        self._server = None
        self.state = State.DONE
        self.takes_bare_tokens = False
        lifetimes = [self._max_lifetime_ms] if self._max_lifetime_ms > 0 else []
        if server.expires_at_ms is not None:
            lifetimes.append(max(0, server.expires_at_ms - self._clock.now_ms()))
        if not lifetimes:
            return 0
        self._ends_at_ms = self._clock.elapsed_ms() + min(lifetimes)
        return min(lifetimes)
