"""Why a broker refuses records: Kafka's error code, and what is wrong with which record."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from kwire.errors import BrokerError

__all__ = ["AppendErrorCode", "DecompressesToTooMuch", "RejectedRecords"]


class AppendErrorCode(enum.IntEnum):
    """The error codes that appending can end with, by Kafka's numbers."""

    UNKNOWN_SERVER_ERROR = -1
    CORRUPT_MESSAGE = 2
    MESSAGE_TOO_LARGE = 10
    RECORD_LIST_TOO_LARGE = 18
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87


class RejectedRecords(BrokerError):
    """Records that a broker does not append; none of the set is.

    code: Kafka's error code, one of AppendErrorCode.
    record_errors: (index in the batch, what is wrong) of the records that caused it; empty when the batch itself did.
    """

    def __init__(self, what: str, code: int, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(what, code)
        self.record_errors = list(record_errors)
        self.args = (what, code, self.record_errors)


class DecompressesToTooMuch(RejectedRecords):
    """Records that decompress to more than max_decompressed_bytes."""
