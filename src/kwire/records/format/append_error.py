"""Errors of appending records: Kafka's error code, and the records at fault."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from kwire.errors import BrokerError

__all__ = ["AppendErrorCode", "RejectedRecords", "TooMuchWork"]


class AppendErrorCode(enum.IntEnum):
    """Kafka's error codes that an append can fail with."""

    UNKNOWN_SERVER_ERROR = -1
    CORRUPT_MESSAGE = 2
    MESSAGE_TOO_LARGE = 10
    RECORD_LIST_TOO_LARGE = 18
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87


class RejectedRecords(BrokerError):
    """A broker rejects the records; none of them is appended.

    code: Kafka's error code, one of AppendErrorCode.
    record_errors: (index in the batch, error) of the records at fault; empty if the batch itself is.
    """

    def __init__(self, what: str, code: int, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(what, code)
        self.record_errors = list(record_errors)
        self.args = (what, code, self.record_errors)


class TooMuchWork(RejectedRecords):
    """Records that decompress to more than the limit, or take too long to validate on the calling thread."""
