"""OAUTHBEARER: the client sends a token, and a validator returns its user.

    n,[a=authorization id],^A auth=Bearer TOKEN ^A [name=value ^A ...] ^A

The response to an invalid token is JSON. The client then sends ^A, and the authentication fails.
Source: RFC 7628; KIP-255; OAuthBearerSaslServer, OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import json
import logging
import re
import traceback

from kwire.broker.clock import Clock
from kwire.broker.security.errors import AuthenticationFailed
from kwire.broker.tokens import InvalidToken, TokenValidator, ValidToken

__all__ = ["OauthBearerServer"]

log = logging.getLogger("kwire.broker")

CONTROL_A = "\x01"
SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
INITIAL = re.compile(
    rf"n,(?:a=(?P<authzid>{SASL_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01", re.ASCII
)
BEARER = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)


class OauthBearerServer:
    """One authentication."""

    def __init__(self, validator: TokenValidator, clock: Clock) -> None:
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.is_token_authenticated = False
        self._validator, self._clock = validator, clock
        self._refusal: str | None = None

    @property
    def is_refusal(self) -> bool:
        """Whether the token was refused."""
        return self._refusal is not None

    def step(self, message: bytes) -> bytes:
        """Process a message: return no bytes and set `user`, or return the error. Raises AuthenticationFailed."""
        if self._refusal is not None and message == CONTROL_A.encode():
            raise AuthenticationFailed(self._refusal)
        matched = INITIAL.fullmatch(message.decode("utf-8", "replace"))
        if matched is None:
            raise AuthenticationFailed("Invalid OAUTHBEARER client first message")
        pairs = dict(pair.split("=", 1) for pair in matched["pairs"].split(CONTROL_A) if pair)
        bearer = BEARER.fullmatch(pairs.get("auth", ""))
        if bearer is None:
            raise AuthenticationFailed("Invalid OAUTHBEARER client first message: 'auth' not specified")
        if bearer["scheme"].lower() != "bearer":
            raise AuthenticationFailed("Invalid scheme in OAUTHBEARER client first message: " + bearer["scheme"])
        try:
            valid = self._validator.validate(bearer["token"], self._clock.now_ms())
        except InvalidToken as error:
            refused = {"status": error.status} | ({"scope": error.scope} if error.scope else {})
            self._refusal = json.dumps(refused, separators=(",", ":"))
            return self._refusal.encode()
        except Exception as error:
            where = failure_of(error)  # log.exception would print its text
            log.error("the validator of OAUTHBEARER tokens failed: %s", where)  # noqa: TRY400
            raise AuthenticationFailed from None
        if not (isinstance(valid, ValidToken) and isinstance(valid.user, str) and valid.user):
            log.error("the validator of OAUTHBEARER tokens returned no ValidToken with a user")
            raise AuthenticationFailed
        authorization_id = (matched["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
        if authorization_id and authorization_id != valid.user:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({valid.user})"
            )
        self.user, self.expires_at_ms = valid.user, valid.expires_at_ms
        return b""


def failure_of(error: Exception) -> str:
    """Return the type of an exception and the line that raised it. Its message may contain the token."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
