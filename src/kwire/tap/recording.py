"""Recording of what clients send and receive, as a capture file: without the encryption, and without secrets.

Connections are written as the clients see them: after faults, with the tap's addresses. Passwords, proofs of them, ids
of delegation tokens and secret values of configs are replaced by [hidden], as in the request log.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import IO, TYPE_CHECKING

from kwire.capture.writing import CaptureWriter, TcpRecord
from kwire.errors import KwireError, OptionError, UnsupportedVersion
from kwire.messages import registry
from kwire.protocol.requests import request_codec, request_key, response_codec, response_version
from kwire.protocol.secrets import has_secrets, hide_secrets

if TYPE_CHECKING:
    from kwire.tap.requests import Head

__all__ = ["Recorder", "Track"]

log = logging.getLogger("kwire.tap")

FILLER = b"\xff"
"""Replaces SASL tokens: no request begins with it."""
LENGTH_BYTES = 4
BUFFER_BYTES = 1 << 20


class Recorder:
    """A capture file that is being written. problem: why the recording has ended early, "" if it has not.

    Raises OptionError for a file that exists or cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path, self.problem = path, ""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise OptionError(f"{path}: exists already; remove it or choose another file") from None
        except OSError as error:
            raise OptionError(f"{path}: cannot be written: {error.strerror}") from None
        self._file: IO[bytes] = os.fdopen(descriptor, "wb", BUFFER_BYTES)
        self._writer = CaptureWriter(self._file)

    def begin(self, client: tuple[str, int], server: tuple[str, int]) -> Track | None:
        """Begin the record of a connection; None once the recording has failed."""
        if self.problem:
            return None
        try:
            return Track(self, self._writer.connection(client, server))
        except OSError as error:
            self.fail(error)
            return None

    def fail(self, error: OSError) -> None:
        """End the recording, as the file cannot be written."""
        if not self.problem:
            self.problem = f"{self.path}: the recording ends early: {error.strerror or error}"
            log.error("%s", self.problem)

    def flush(self) -> None:
        """Write what is buffered."""
        if not self.problem:
            try:
                self._file.flush()
            except OSError as error:
                self.fail(error)

    def close(self) -> None:
        """Close the file."""
        self.flush()
        try:
            self._file.close()
        except OSError as error:
            self.fail(error)


class Track:
    """The record of a connection."""

    def __init__(self, recorder: Recorder, record: TcpRecord) -> None:
        self._recorder, self._record = recorder, record

    def hides(self, api_key: int) -> bool:
        """Return whether requests of an API may hold secrets."""
        return may_hold_secrets("request", api_key)

    def hides_response(self, api_key: int) -> bool:
        """Return whether responses of an API may hold secrets."""
        return may_hold_secrets("response", api_key)

    def sent(self, data: bytes | memoryview) -> None:
        """Record what the client sends."""
        if not self._recorder.problem:
            try:
                self._record.sent(data)
            except OSError as error:
                self._recorder.fail(error)

    def received(self, data: bytes | memoryview) -> None:
        """Record what the client receives."""
        if not self._recorder.problem:
            try:
                self._record.received(data)
            except OSError as error:
                self._recorder.fail(error)

    def request(self, frame: bytes) -> None:
        """Record a request that was read."""
        api_key, version = request_key(frame)
        self.sent(without_secrets(frame, "request", api_key, version) if self.hides(api_key) else frame)

    def response(self, frame: bytes, head: Head) -> None:
        """Record a response that was read."""
        if self.hides_response(head.api_key):
            frame = without_secrets(
                frame, "response", head.api_key, response_version(frame, head.api_key, head.version)
            )
        self.received(frame)

    def token_sent(self, frame: bytes) -> None:
        """Record a SASL token without its content."""
        self.sent(frame[:LENGTH_BYTES] + FILLER * (len(frame) - LENGTH_BYTES))

    def token_received(self, frame: bytes) -> None:
        """Record the response to a SASL token without its content."""
        self.received(frame[:LENGTH_BYTES] + FILLER * (len(frame) - LENGTH_BYTES))

    def close(self) -> None:
        """Record the end of the connection."""
        if not self._recorder.problem:
            try:
                self._record.close()
            except OSError as error:
                self._recorder.fail(error)
        self._recorder.flush()


@functools.cache
def may_hold_secrets(kind: str, api_key: int) -> bool:
    """Return whether messages of an API may hold secrets, as any of an unknown API. kind: "request" or "response"."""
    try:
        return has_secrets(registry.find(kind, api_key)())
    except UnsupportedVersion:  # such as a token without a handshake before it
        return True


def without_secrets(frame: bytes, kind: str, api_key: int, version: int) -> bytes:
    """Return a frame with its secrets hidden; only its length and its first fields if it cannot be read."""
    codec_of = request_codec if kind == "request" else response_codec
    try:
        codec = codec_of(api_key, version)
        header, body = codec.decode(frame, False, True, True)
        return bytes(codec.encode((header, hide_secrets(body))))
    except KwireError:
        kept = 12 if kind == "request" else 8
        return frame[:kept] + FILLER * (len(frame) - kept)
