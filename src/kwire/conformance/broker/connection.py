"""A raw connection to a broker: any bytes out, frames in, each kept as evidence, each with a deadline.

Responses are decoded strictly: what Kafka's clients tolerate, such as bytes after a message, is an error here.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kwire.conformance.report import Evidence
from kwire.errors import ConnectionFailed, KwireError, Truncated
from kwire.messages import RequestHeader, registry
from kwire.messages.base import Message
from kwire.protocol import FrameBuffer, NeedData, Request, read_response, request_codec, write_request
from kwire.protocol.requests import response_version

__all__ = ["Closed", "Deadlines", "RawConnection", "Silent"]

MAX_FRAME_BYTES = 16 << 20
MAX_EVIDENCE = 24
CLIENT_ID = "kwire-conformance"
FIRST_CORRELATION_ID = 1000
LENGTH_BYTES = 4
WITH_SECRETS = (None, "SaslAuthenticateRequest")
"""Messages that may have the password of the given credentials; None for the tokens of SaslHandshake 0."""


class Closed(ConnectionFailed):
    """The broker closed the connection instead of a response."""


class Silent(ConnectionFailed):
    """The broker did not respond before the deadline."""


class Deadlines:
    """How long to wait for a response: less after several that never came, so that a run ends.

    Those of one API count by themselves: a broker that never responds to it serves other requests in between.
    """

    def __init__(self, exchange_s: float) -> None:
        self.exchange_s = exchange_s
        self._missed = 0
        self._missed_of: dict[int, int] = {}

    def wait_s(self, api_key: int | None = None) -> float:
        """Return the seconds to wait for the next response, of an API if it is known."""
        missed = self._missed if api_key is None else max(self._missed, self._missed_of.get(api_key, 0))
        if missed < 3:
            return self.exchange_s
        return min(self.exchange_s, 1.0 if missed < 10 else 0.1)

    def count(self, *, arrived: bool, api_key: int | None = None) -> None:
        """Count a response that arrived, or one that did not."""
        self._missed = 0 if arrived else self._missed + 1
        if api_key is not None:
            self._missed_of[api_key] = 0 if arrived else self._missed_of.get(api_key, 0) + 1


class RawConnection:
    """One connection. evidence: receives what is sent and received, with * for secret. Raises ConnectionFailed."""

    def __init__(
        self,
        opened: socket.socket,
        address: str,
        deadlines: Deadlines,
        evidence: list[Evidence],
        secret: bytes = b"",
    ) -> None:
        self.address = address
        self._socket, self._secret = opened, secret
        self._deadlines, self._evidence = deadlines, evidence
        self._frames = FrameBuffer(MAX_FRAME_BYTES)
        self._correlation_id = FIRST_CORRELATION_ID
        self._open: list[Request] = []
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    # Sending

    def send_bytes(self, data: bytes, label: str = "bytes sent") -> None:
        """Send any bytes. A broker that has closed the connection already is noticed when a response is awaited."""
        self._keep(Evidence(label=label, data=data))
        self._write(data)

    def encode(
        self,
        body: Message,
        version: int,
        *,
        header_tags: Sequence[tuple[int, bytes]] = (),
        client_id: str | None = CLIENT_ID,
    ) -> tuple[bytes, Request]:
        """Encode a request with the next correlation id. header_tags: tagged fields of its header."""
        self._correlation_id += 1
        frame, sent = write_request(body, version, correlation_id=self._correlation_id, client_id=client_id)
        if header_tags:
            header = RequestHeader(
                request_api_key=sent.api_key,
                request_api_version=version,
                correlation_id=self._correlation_id,
                client_id=client_id,
                unknown_tagged_fields=list(header_tags),
            )
            frame = request_codec(sent.api_key, version).encode((header, body))
        return frame, sent

    def send(
        self,
        body: Message,
        version: int,
        *,
        header_tags: Sequence[tuple[int, bytes]] = (),
        client_id: str | None = CLIENT_ID,
    ) -> Request:
        """Send a request without waiting for its response."""
        frame, sent = self.encode(body, version, header_tags=header_tags, client_id=client_id)
        name = type(body).__name__
        self._keep(Evidence(label="request", data=frame, message=name, version=version))
        self._write(frame)
        if sent.expects_reply:
            self._open.append(sent)
        return sent

    def _write(self, data: bytes) -> None:
        self._socket.settimeout(self._deadlines.wait_s())
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise Silent("the broker does not read what is sent", self.address) from None
        except OSError:
            pass  # closed: what the broker sent before is still to be read

    # Receiving

    def receive(self, wait_s: float | None = None) -> Any:
        """Return the body of the response to the oldest open request. wait_s: instead of the usual deadline.

        Raises Closed, Silent, DecodeError.
        """
        sent = self._open.pop(0)
        frame = self._next_frame(wait_s, sent.api_key)
        try:
            version = response_version(frame, sent.api_key, sent.version)
        except KwireError:
            version = sent.version
        name = registry.response(sent.api_key).__name__
        self._keep(Evidence(label="response", data=bytes(frame), message=name, version=version))
        return read_response(frame, sent).body

    def ask(self, body: Message, version: int, wait_s: float | None = None) -> Any:
        """Send a request and return the body of its response. Raises as receive."""
        self.send(body, version)
        return self.receive(wait_s)

    def receive_frame(self, wait_s: float | None = None, *, at_least: int = 0) -> bytes:
        """Return the next frame with its length, which is not one of the bytes that it has at least.

        Raises Closed, Silent, Truncated for a shorter frame, Malformed for an impossible length.
        """
        frame = self._next_frame(wait_s)
        self._keep(Evidence(label="bytes received", data=frame))
        if len(frame) < LENGTH_BYTES + at_least:
            raise Truncated(f"frame of {len(frame) - LENGTH_BYTES} bytes, at least {at_least} are needed", len(frame))
        return frame

    def _next_frame(self, wait_s: float | None = None, api_key: int | None = None) -> bytes:
        """wait_s: instead of the usual deadline, of which misses are counted, by API."""
        deadline = time.monotonic() + (self._deadlines.wait_s(api_key) if wait_s is None else wait_s)
        try:
            while isinstance(frame := self._frames.next_frame(), NeedData):
                data = self._receive(deadline)
                if not data:
                    inside = f" inside a frame, after {len(self._frames)} bytes of it" if len(self._frames) else ""
                    raise Closed(f"the broker closed the connection{inside}", self.address)
                self._frames.append(data)
        except Silent:
            if wait_s is None:
                self._deadlines.count(arrived=False, api_key=api_key)
            raise
        if wait_s is None:
            self._deadlines.count(arrived=True, api_key=api_key)
        return bytes(frame)

    def _receive(self, deadline: float) -> bytes:
        remaining = deadline - time.monotonic()
        try:
            if remaining <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining)
            return self._socket.recv(1 << 16)
        except TimeoutError:
            raise Silent("the broker did not respond in time", self.address) from None
        except OSError:
            return b""

    def is_closed(self, wait_s: float | None = None) -> bool:
        """Return whether the broker closes the connection, without another response, before the deadline."""
        try:
            self.receive_frame(wait_s)
        except Closed:
            return True
        except Silent:
            return False
        return False

    def is_silent(self, wait_s: float) -> bool:
        """Return whether nothing arrives for a time, and the connection stays open."""
        try:
            self.receive_frame(wait_s)
        except Silent:
            return True
        except Closed:
            return False
        return False

    def _keep(self, evidence: Evidence) -> None:
        if len(self._evidence) >= MAX_EVIDENCE:
            return
        if self._secret and evidence.message in WITH_SECRETS:
            evidence = replace(evidence, data=evidence.data.replace(self._secret, b"*" * len(self._secret)))
        self._evidence.append(evidence)
