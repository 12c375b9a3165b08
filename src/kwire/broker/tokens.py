"""Validation of SASL OAUTHBEARER tokens: the default validator, and the config for another one.

The default validator accepts unsigned tokens, as Kafka's does. It is for tests: unsigned tokens prove nothing.
Source: RFC 7519; KIP-255; OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from kwire.errors import OptionError
from kwire.identifiers import decode_base64url

__all__ = ["UNSECURED", "InvalidToken", "TokenValidator", "ValidToken", "validate_unsecured"]

LATEST_S = 1 << 50


class ValidToken(NamedTuple):
    """A validator's result. user: the token's owner. expires_at_ms: None for a token that does not expire."""

    user: str
    expires_at_ms: int | None = None


class InvalidToken(Exception):
    """Raised by a validator. status: sent to the client (RFC 7628, 3.2.2). scope: required scope, or None."""

    def __init__(self, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(status, scope)
        self.status, self.scope = status, scope


class TokenValidator:
    """The config sasl_oauthbearer_validator: a function of (token, time in ms), or None for unsigned tokens."""

    __slots__ = ("validate",)

    def __init__(self, validate: Callable[[str, int], ValidToken] | TokenValidator | None = None) -> None:
        if isinstance(validate, TokenValidator):
            validate = validate.validate
        if validate is not None and not callable(validate):
            raise OptionError("config 'sasl_oauthbearer_validator': expected a function of a token and a time in ms")
        self.validate: Callable[[str, int], ValidToken] = validate or validate_unsecured

    def __repr__(self) -> str:
        return getattr(self.validate, "__qualname__", type(self.validate).__qualname__)


def validate_unsecured(token: str, now_ms: int) -> ValidToken:
    """Validate an unsigned JWS, whose owner is the claim sub. Raises InvalidToken, also for a signed one."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise InvalidToken
    header, claims = (parse_part(part) for part in parts[:2])
    user, expires_at_ms, issued_at_ms = claims.get("sub"), time_ms(claims.get("exp")), time_ms(claims.get("iat", 0))
    if header.get("alg") != "none" or not isinstance(user, str) or not user:
        raise InvalidToken
    if not issued_at_ms <= now_ms < expires_at_ms:
        raise InvalidToken
    return ValidToken(user, expires_at_ms)


def time_ms(claim: object) -> int:
    """Convert a claim in seconds to milliseconds. Raises InvalidToken."""
    if not isinstance(claim, int | float) or isinstance(claim, bool) or not 0 <= claim < LATEST_S:
        raise InvalidToken
    return int(claim * 1000)


def parse_part(text: str) -> dict[str, object]:
    """Decode a part of a JWS. Raises InvalidToken."""
    try:
        part = json.loads(decode_base64url(text))
    except (ValueError, RecursionError):
        raise InvalidToken from None
    if not isinstance(part, dict):
        raise InvalidToken
    return part


UNSECURED = TokenValidator()
