"""One blocking connection to a broker: TLS, SASL, versions agreed, then requests.

A connection that failed is closed and not used again; the caller opens another. Times are of `time.monotonic`.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NoReturn

from kwire.client.sasl import oauthbearer, start
from kwire.client.settings import ClientSettings
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.messages import registry
from kwire.protocol import Connection, NeedData, Response, Role, State
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.splicing import cut_frame

__all__ = ["BrokerConnection"]

CHUNK_BYTES = 1 << 20
MOST_PIECES = 512  # in one call; systems take 1024


class BrokerConnection:
    """Open and authenticated from the moment it is made.

    Raises ConnectionFailed where it cannot be opened or breaks, BrokerError where the broker refuses the credentials.
    """

    def __init__(self, host: str, port: int, settings: ClientSettings) -> None:
        self.address = f"{host}:{port}"
        self._settings = settings
        self._connection = Connection(Role.CLIENT, client_id=settings.client_id, views=True, lenient=True)
        self._buffer = memoryview(bytearray(CHUNK_BYTES))
        timeout = settings.socket_connection_setup_timeout_ms / 1000
        self._socket: socket.socket | None = None
        try:
            opened = socket.create_connection((host, port), timeout=timeout)
            self._socket = opened
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.receive_buffer_bytes > 0:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
            if settings.uses_tls:
                self._socket = tls_context(settings).wrap_socket(opened, server_hostname=host)
            self._agree(time.monotonic() + timeout)
            if settings.uses_sasl:
                self._authenticate(time.monotonic() + timeout)
        except OSError as error:
            self.close()
            raise ConnectionFailed(f"cannot connect: {reason(error)}", self.address) from error
        except BaseException:  # a token callback may raise anything
            self.close()
            raise

    def close(self) -> None:
        """Close the socket; once is enough."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    @property
    def is_open(self) -> bool:
        """Whether requests may be sent."""
        return self._socket is not None

    def version_for(self, api_key: int) -> int:
        """The highest version of an API that both sides speak. Raises UnsupportedVersion."""
        return self._connection.version_for(api_key)

    def request(self, message: Any, *, version: int | None = None, timeout_ms: int | None = None) -> Any:
        """Send a request and wait for its response's body; None for a Produce with acks=0."""
        self.send(message, version=version)
        return self.receive(timeout_ms=timeout_ms) if self._connection.open_requests else None

    def send(self, message: Any, *, version: int | None = None, payloads: Sequence[bytes | memoryview] = ()) -> None:
        """Send a request; its response is the next but those of requests sent before.

        payloads: what belongs in each place of the message that has RECORDS_ELSEWHERE, in order.
        """
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

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        """The body of the oldest request's response. Raises ConnectionFailed when it does not come in time."""
        wait = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        return self._next(time.monotonic() + wait / 1000).body

    def _write(self, data: bytes) -> None:
        opened = self._opened()
        try:
            opened.settimeout(self._settings.request_timeout_ms / 1000)
            opened.sendall(data)
        except OSError as error:
            self._failed(error)

    def _write_pieces(self, pieces: list[bytes | memoryview]) -> None:
        opened = self._opened()
        if isinstance(opened, ssl.SSLSocket):  # it copies, whatever it is given
            self._write(b"".join(pieces))
            return
        left = deque(memoryview(piece) for piece in pieces if len(piece))
        try:
            opened.settimeout(self._settings.request_timeout_ms / 1000)
            while left:
                n = opened.sendmsg(itertools.islice(left, MOST_PIECES))
                while left and n >= len(left[0]):
                    n -= len(left.popleft())
                if n:
                    left[0] = left[0][n:]
        except OSError as error:
            self._failed(error)

    def _next(self, deadline: float) -> Response:
        opened = self._opened()
        try:
            while True:
                response = self._connection.next_response()
                if not isinstance(response, NeedData):
                    return response
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                opened.settimeout(left)
                n = opened.recv_into(self._buffer)
                if n == 0:
                    raise ConnectionResetError("the broker closed the connection")
                self._connection.receive_data(self._buffer[:n])
        except OSError as error:
            self._failed(error)
        except BaseException:  # interrupted, the rest of the response would be taken for the next one
            self.close()
            raise

    def _opened(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionFailed("the connection is closed", self.address)
        return self._socket

    def _failed(self, error: OSError) -> NoReturn:
        self.close()
        raise ConnectionFailed(reason(error), self.address) from error

    def _agree(self, deadline: float) -> None:
        """Ask for versions, again where the broker does not know the first question."""
        while self._connection.state is not State.READY:
            try:
                self._write(self._connection.negotiate())
                response = self._next(deadline)
            except ConnectionFailed as error:
                hint = "when asked for its API versions, which brokers before Kafka 0.10 do not support"
                raise ConnectionFailed(f"{error.what} {hint}", self.address) from error
            code = response.body.error_code
            if code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
                raise BrokerError(f"{self.address}: ApiVersions", code)

    def _authenticate(self, deadline: float) -> None:
        settings = self._settings
        assert settings.sasl_mechanism is not None  # settings.check
        handshake: Any = registry.get("SaslHandshakeRequest")
        authenticate: Any = registry.get("SaslAuthenticateRequest")
        self._write(self._connection.send(handshake(mechanism=settings.sasl_mechanism), version=1))
        answer = self._next(deadline).body
        if answer.error_code:
            offered = ", ".join(answer.mechanisms) or "none"
            raise BrokerError(f"{self.address}: SASL mechanisms offered: {offered}", answer.error_code)
        if settings.token_source is not None:
            exchange = oauthbearer(settings.token_source.token(), settings.token_source.extensions)
        else:
            exchange = start(settings.sasl_mechanism, settings.sasl_username or "", settings.sasl_password or "")
        token = next(exchange)
        while True:
            self._write(self._connection.send(authenticate(auth_bytes=token)))
            answer = self._next(deadline).body
            if answer.error_code:
                exchange.throw(BrokerError(f"{self.address}: {answer.error_message or 'SASL'}", answer.error_code))
            try:
                token = exchange.send(bytes(answer.auth_bytes))
            except StopIteration:
                return


def reason(error: OSError) -> str:
    """What to say of a socket's error."""
    return "no answer in time" if isinstance(error, TimeoutError) else str(error.strerror or error)


def tls_context(settings: ClientSettings) -> ssl.SSLContext:
    """What certificates to believe and to show. Raises OptionError for files that cannot be read."""
    try:
        context = ssl.create_default_context(
            cafile=settings.ssl_ca_location, cadata=settings.ssl_truststore_certificates
        )
        if not settings.ssl_endpoint_identification_algorithm:
            context.check_hostname = False
        if settings.ssl_certificate_location:
            context.load_cert_chain(
                settings.ssl_certificate_location, settings.ssl_key_location, settings.ssl_key_password
            )
        elif settings.ssl_keystore_certificate_chain and settings.ssl_keystore_key:
            # ssl takes certificates from files only; this one only its owner can read, and it is gone at once
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write(f"{settings.ssl_keystore_key}\n{settings.ssl_keystore_certificate_chain}\n")
                pem.flush()
                context.load_cert_chain(pem.name, password=settings.ssl_key_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise OptionError(f"TLS certificates cannot be used: {error}") from None
    return context
