"""A blocking connection to a broker: TLS, API versions, SASL, then requests.

A connection that failed is closed and cannot be used again. Times are of `time.monotonic`.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from typing import NoReturn, TypeVar, overload

from kwire.client.sasl import oauthbearer, start
from kwire.client.settings import ClientSettings
from kwire.client.tls import wrap
from kwire.errors import BrokerError, ConnectionFailed
from kwire.messages import (
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kwire.messages.base import Message
from kwire.protocol import Connection, NeedData, Role, State
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.frames import FrameMemory
from kwire.protocol.splicing import cut_frame

__all__ = ["BrokerConnection"]

MAX_PIECES = 512  # of one sendmsg call; operating systems accept 1024

MOST_THROTTLED_S = 300.0  # of the throttle time in a response, so that no broker can ask for a day

R = TypeVar("R", bound=Message)


class BrokerConnection:
    """An open, authenticated connection.

    Raises ConnectionFailed if it cannot be opened or breaks, BrokerError if the broker refuses the credentials.
    """

    def __init__(self, host: str, port: int, settings: ClientSettings, memory: FrameMemory | None = None) -> None:
        """Connect. memory: for large responses, of one thread."""
        self.address = f"{host}:{port}"
        self._host = host
        self._settings = settings
        self._throttled_until = 0.0
        self._connection = Connection(Role.CLIENT, client_id=settings.client_id, views=True, lenient=True)
        if memory is not None:
            self._connection.share_memory(memory)
        timeout = settings.socket_connection_setup_timeout_ms / 1000
        self._socket: socket.socket | None = None
        try:
            opened = socket.create_connection((host, port), timeout=timeout)
            self._socket = opened
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.receive_buffer_bytes > 0:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
            if settings.uses_tls:
                self._socket = wrap(opened, settings, host)
            self._negotiate(time.monotonic() + timeout)
            if settings.uses_sasl:
                self._authenticate(time.monotonic() + timeout)
        except OSError as error:
            self.close()
            raise ConnectionFailed(f"cannot connect: {reason(error)}", self.address) from error
        except UnicodeError as error:
            raise ConnectionFailed("cannot connect: not a valid host name", self.address) from error
        except BaseException:  # a token callback may raise anything
            self.close()
            raise

    def close(self) -> None:
        """Close the socket. Closing twice does no harm."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def detach(self) -> socket.socket:
        """Return the socket, for bytes of one's own; this connection is closed then. Raises ConnectionFailed."""
        opened = self._opened()
        self._socket = None
        return opened

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._socket is not None

    def fileno(self) -> int:
        """Return the socket's descriptor, for selectors. Raises ConnectionFailed if the connection is closed."""
        return self._opened().fileno()

    def version_for(self, api_key: int) -> int:
        """Return the highest version of an API that both sides support. Raises UnsupportedVersion."""
        return self._connection.version_for(api_key)

    @overload
    def request(
        self, message: Message, response: type[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R: ...
    @overload
    def request(self, message: Message, *, version: int | None = None, timeout_ms: int | None = None) -> Message: ...
    def request(
        self,
        message: Message,
        response: type[Message] = Message,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Message:
        """Send a request and return its response. response: the class of it; options as in `send` and `receive`."""
        self.send(message, version=version)
        return self.receive(response, timeout_ms=timeout_ms)

    def send(
        self, message: Message, *, version: int | None = None, payloads: Sequence[bytes | memoryview] = ()
    ) -> None:
        """Send a request; responses arrive in the order of requests.

        version: maximum version; by default the highest that both sides support. payloads: the records for each
        RECORDS_ELSEWHERE in the message, in order.
        """
        assert message.API_KEY is not None  # every request has one
        highest = self.version_for(message.API_KEY)
        if version is not None:
            highest = min(version, highest)
        data = self._connection.send(message, version=highest)
        if not payloads:
            self._write(data)
            return
        sizes = [len(each) for each in payloads]
        around = cut_frame(data, sizes, is_flexible=highest in type(message).FLEXIBLE_VERSIONS)
        self._write_pieces([*(piece for pair in zip(around, payloads, strict=False) for piece in pair), around[-1]])

    def receive(self, response: type[R], *, timeout_ms: int | None = None) -> R:
        """Return the response to the oldest open request. response: the class of it.

        timeout_ms: request.timeout.ms by default. Raises ConnectionFailed.
        """
        timeout = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        return self._next_response(response, self.deadline_after(timeout))

    def deadline_after(self, timeout_ms: int) -> float:
        """Return the time until which to wait for the response to a request that is sent now.

        A broker that throttled this client does not read its requests before the throttle time has passed (KIP-219).
        """
        return max(time.monotonic(), self._throttled_until) + timeout_ms / 1000

    def _limit_sending(self, opened: socket.socket) -> None:
        opened.settimeout(self.deadline_after(self._settings.request_timeout_ms) - time.monotonic())

    def _write(self, data: bytes) -> None:
        opened = self._opened()
        try:
            self._limit_sending(opened)
            opened.sendall(data)
        except OSError as error:
            self._failed(error)

    def _write_pieces(self, pieces: list[bytes | memoryview]) -> None:
        opened = self._opened()
        if isinstance(opened, ssl.SSLSocket):  # it encrypts a copy of each piece anyway
            self._write(b"".join(pieces))
            return
        unsent = deque(memoryview(piece) for piece in pieces if len(piece))
        try:
            self._limit_sending(opened)
            while unsent:
                n = opened.sendmsg(itertools.islice(unsent, MAX_PIECES))
                while unsent and n >= len(unsent[0]):
                    n -= len(unsent.popleft())
                if n:
                    unsent[0] = unsent[0][n:]
        except OSError as error:
            self._failed(error)

    def _next_response(self, cls: type[R], deadline: float) -> R:
        opened = self._opened()
        try:
            while True:
                response = self._connection.next_response()
                if not isinstance(response, NeedData):
                    assert isinstance(response.body, cls)
                    throttled_s = getattr(response.body, "throttle_time_ms", 0) / 1000
                    if throttled_s > 0:
                        self._throttled_until = time.monotonic() + min(throttled_s, MOST_THROTTLED_S)
                    return response.body
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise TimeoutError
                opened.settimeout(remaining)
                if not self._connection.receive(opened.recv_into):
                    raise ConnectionResetError("the broker closed the connection")
        except OSError as error:
            self._failed(error)
        except BaseException:  # after an interruption, the rest of the response would be taken for the next one
            self.close()
            raise

    def _opened(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionFailed("the connection is closed", self.address)
        return self._socket

    def _failed(self, error: OSError) -> NoReturn:
        self.close()
        raise ConnectionFailed(reason(error), self.address) from error

    def _negotiate(self, deadline: float) -> None:
        """Negotiate API versions, in two requests if the broker does not support the first one's version."""
        while self._connection.state is not State.READY:
            try:
                self._write(self._connection.negotiate())
                code = self._next_response(ApiVersionsResponse, deadline).error_code
            except ConnectionFailed as error:
                hint = "in response to ApiVersions, which brokers before Kafka 0.10 do not support"
                raise ConnectionFailed(f"{error.what} {hint}", self.address) from error
            if code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
                raise BrokerError(f"{self.address}: ApiVersions", code)

    def _authenticate(self, deadline: float) -> None:
        settings = self._settings
        assert settings.sasl_mechanism is not None  # settings.check
        self._write(self._connection.send(SaslHandshakeRequest(mechanism=settings.sasl_mechanism), version=1))
        handshake = self._next_response(SaslHandshakeResponse, deadline)
        if handshake.error_code:
            supported = ", ".join(handshake.mechanisms) or "none"
            raise BrokerError(
                f"{self.address}: SASL mechanism {settings.sasl_mechanism} refused; supported mechanisms: {supported}",
                handshake.error_code,
            )
        if settings.kerberos is not None:
            exchange = settings.kerberos.exchange(self._host, max(0.001, deadline - time.monotonic()))
        elif settings.token_source is not None:
            exchange = oauthbearer(settings.token_source.token(), settings.token_source.extensions)
        else:
            exchange = start(
                settings.sasl_mechanism,
                settings.sasl_username or "",
                settings.sasl_password or "",
                is_token=settings.sasl_tokenauth,
            )
        token = next(exchange)
        while True:
            self._write(self._connection.send(SaslAuthenticateRequest(auth_bytes=token)))
            response = self._next_response(SaslAuthenticateResponse, deadline)
            if response.error_code:
                message = response.error_message or "SASL authentication failed"
                exchange.throw(BrokerError(f"{self.address}: {message}", response.error_code))
            try:
                token = exchange.send(bytes(response.auth_bytes))
            except StopIteration:
                return


def reason(error: OSError) -> str:
    """Return the reason of a socket's error, for messages."""
    return "timed out" if isinstance(error, TimeoutError) else str(error.strerror or error)
