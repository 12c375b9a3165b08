"""Kafka's error codes by name and number, and the exception for a request refused with one.

ErrorCode is generated with the messages; users of the protocol import it from here.
"""

from __future__ import annotations

from kwire.errors import BrokerError
from kwire.messages.error_codes import ErrorCode

__all__ = ["MALFORMED", "ErrorCode", "refusal"]

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
"""Kafka's message for INVALID_REQUEST where it has no other."""


def refusal(code: ErrorCode, what: str) -> BrokerError:
    """Make the exception with which a handler refuses a request. what: the response's error message."""
    return BrokerError(what, int(code))
