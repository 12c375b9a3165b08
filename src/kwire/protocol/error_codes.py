"""Kafka's error codes by name and number, and the exception for a request refused with one.

ErrorCode is generated with the messages; users of the protocol import it from here.
"""

from __future__ import annotations

from kwire.errors import BrokerError
from kwire.messages.error_codes import ErrorCode

__all__ = ["ErrorCode", "refusal"]


def refusal(code: ErrorCode, what: str) -> BrokerError:
    """Make the exception with which a handler refuses a request. what: the response's error message."""
    return BrokerError(what, int(code))
