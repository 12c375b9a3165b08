"""Errors that end an authentication."""

from __future__ import annotations

from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode

__all__ = ["AuthenticationFailed", "UnexpectedRequest"]


class AuthenticationFailed(BrokerError):
    """A failed authentication.

    what: the message for the client; None reports invalid credentials only. is_silent: the connection is closed without
    a response.
    """

    def __init__(self, what: str | None = None, is_silent: bool = False) -> None:
        super().__init__(what or "", int(ErrorCode.SASL_AUTHENTICATION_FAILED))
        self.is_silent = is_silent
        self.args = (what, is_silent)  # Exception pickles by its args


class UnexpectedRequest(BrokerError):
    """A request during an authentication: it is rejected, and the connection is closed."""

    def __init__(self, api_key: int) -> None:
        what = f"Unexpected Kafka request with api key {api_key} during SASL authentication."
        super().__init__(what, int(ErrorCode.ILLEGAL_SASL_STATE))
        self.args = (api_key,)
