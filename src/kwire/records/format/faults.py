"""Faults inside a batch whose header is plausible: a number and an error text for each.

The object path and the compiled kernels, which cannot raise, report the same numbers and so the same texts.
Source of each refusal: DefaultRecord.readFrom, DefaultRecordBatch.RecordIterator,
AbstractLegacyRecordBatch.DeepRecordsIterator, LegacyRecord.
"""

from __future__ import annotations

import enum

__all__ = ["MAX_HEADERS", "Fault"]

MAX_HEADERS = 1 << 20
"""Maximum for one record. Kafka has none, but a header may take two bytes of a batch and fifty of memory."""


class Fault(enum.IntEnum):
    """Why a batch is corrupt."""

    RECORD_COUNT = 1
    RECORD_LENGTH = 2
    RECORD_FIELDS = 3
    KEY_LENGTH = 4
    VALUE_LENGTH = 5
    HEADER_COUNT = 6
    HEADER_KEY = 7
    HEADER_VALUE = 8
    RECORD_SIZE = 9
    BYTES_LEFT = 10
    WRAPPER_VALUE = 11
    WRAPPER_EMPTY = 12
    WRAPPER_OFFSET = 13
    INNER_SIZE = 14
    INNER_MAGIC = 15
    INNER_COMPRESSED = 16
    INNER_CRC = 17
    MESSAGE_FIELDS = 18

    @property
    def text(self) -> str:
        """The text for error messages."""
        return TEXTS[self]


TEXTS = {
    Fault.RECORD_COUNT: "the record count is negative or too large for the size of the batch",
    Fault.RECORD_LENGTH: "a record's length is negative, malformed or runs beyond the batch",
    Fault.RECORD_FIELDS: "a record's fields end early or hold a malformed number",
    Fault.KEY_LENGTH: "a key runs beyond its record",
    Fault.VALUE_LENGTH: "a value runs beyond its record",
    Fault.HEADER_COUNT: f"a record's header count is negative, larger than the record or above {MAX_HEADERS}",
    Fault.HEADER_KEY: "a header key's length is negative, malformed or runs beyond the record",
    Fault.HEADER_VALUE: "a header value's length is malformed or runs beyond the record",
    Fault.RECORD_SIZE: "a record's fields do not end where its length says",
    Fault.BYTES_LEFT: "bytes remain after the last record",
    Fault.WRAPPER_VALUE: "a compressed message has no value",
    Fault.WRAPPER_EMPTY: "a compressed message holds no messages",
    Fault.WRAPPER_OFFSET: "a compressed message's offset is below that of its last inner message",
    Fault.INNER_SIZE: "an inner message's size is below the minimum of 14",
    Fault.INNER_MAGIC: "an inner message's magic is neither 0 nor 1",
    Fault.INNER_COMPRESSED: "an inner message is compressed again",
    Fault.INNER_CRC: "an inner message's checksum does not match its bytes",
    Fault.MESSAGE_FIELDS: "a message's key or value runs beyond its end",
}
