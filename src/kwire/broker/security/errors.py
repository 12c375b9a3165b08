"""What ends an authentication."""

from __future__ import annotations

from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode

__all__ = ["AuthenticationFailed"]


class AuthenticationFailed(BrokerError):
    """A client that is not let in. what: for the client; None says no more than that its credentials are invalid."""

    def __init__(self, what: str | None = None) -> None:
        super().__init__(what or "", int(ErrorCode.SASL_AUTHENTICATION_FAILED))
        self.args = (what,)  # Exception pickles by its args
