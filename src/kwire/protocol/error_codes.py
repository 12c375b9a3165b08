"""Kafka's error codes by name and number, and requests refused with one of them.

ErrorCode itself is generated beside the messages; whoever speaks the protocol takes it from here.
"""

from __future__ import annotations

from kwire.errors import BrokerError
from kwire.messages.error_codes import ErrorCode

__all__ = ["ErrorCode", "refusal"]


def refusal(code: ErrorCode, what: str) -> BrokerError:
    """The exception with which a handler refuses a request. what: for the response's error message, if it has one."""
    return BrokerError(what, int(code))
