"""PLAIN: the client sends its password, which only TLS protects.

    [authorization id] NUL user NUL password

Source: RFC 4616; org.apache.kafka.common.security.plain.internals.PlainSaslServer.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from kwire.broker.security.errors import AuthenticationFailed

__all__ = ["PlainServer"]

TOKENS = 3


class PlainServer:
    """One authentication. find: returns the password of a user, None for an unknown one."""

    is_refusal = False

    def __init__(self, find: Callable[[str], str | None]) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.is_token_authenticated = False
        self._find = find

    def step(self, message: bytes) -> bytes:
        """Process the message: return no bytes and set `user`. Raises AuthenticationFailed."""
        tokens = message.decode(errors="replace").split("\0")
        if len(tokens) != TOKENS:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, user, password = tokens
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        expected = self._find(user)
        right = hmac.compare_digest(password.encode(), (expected or secrets.token_hex()).encode())
        if expected is None or not right:
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.user = user
        return b""
