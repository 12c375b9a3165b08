"""Failed connections while a client retries: which of them are final, and warnings about the others.

A program that waits for a broker says so within two seconds, to the logger `kwire.client`.
"""

from __future__ import annotations

import logging
import socket
import ssl
import time

from kwire.errors import ConnectionFailed

__all__ = ["ConnectionFailures", "is_final", "is_unknown_host"]

LOGGER = logging.getLogger("kwire.client")
PATIENCE_S = 1.0
REPEAT_S = 10.0
BROKEN_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""Errors of a TLS connection that broke, as while a broker stops."""


def is_final(error: ConnectionFailed) -> bool:
    """Return whether another attempt fails as well: TLS refuses the certificate, or the port has no TLS."""
    cause = error.__cause__
    return isinstance(cause, ssl.SSLError) and not isinstance(cause, BROKEN_TLS)


def is_unknown_host(error: ConnectionFailed) -> bool:
    """Return whether the host's name does not exist."""
    cause = error.__cause__
    return isinstance(cause, UnicodeError) or (isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME)


class ConnectionFailures:
    """The failed connections of a client."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._warned: dict[str, float] = {}

    def note(self, error: ConnectionFailed) -> None:
        """Warn of a failure that lasts for PATIENCE_S or was a timeout, every REPEAT_S for each broker."""
        now, address = time.monotonic(), error.address
        since = self._since.setdefault(address, now)
        lasts = isinstance(error.__cause__, TimeoutError) or now - since >= PATIENCE_S
        if lasts and now - self._warned.get(address, -REPEAT_S) >= REPEAT_S:
            self._warned[address] = now
            LOGGER.warning("%s; trying again", error)

    def clear(self, address: str) -> None:
        """Note that a broker responds."""
        self._since.pop(address, None)
