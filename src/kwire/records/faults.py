"""What can be wrong inside a batch whose header is believable: one number and one sentence for each.

The object path and the compiled kernels (which cannot raise) report the same numbers, so that both say the same.
Source of each refusal: DefaultRecord.readFrom, DefaultRecordBatch.RecordIterator,
AbstractLegacyRecordBatch.DeepRecordsIterator, LegacyRecord.
"""

from __future__ import annotations

import enum

__all__ = ["Fault"]


class Fault(enum.IntEnum):
    """Why a batch is refused. `text`: the sentence that error messages show."""

    text: str

    def __new__(cls, number: int, text: str) -> Fault:
        fault = int.__new__(cls, number)
        fault._value_ = number
        fault.text = text
        return fault

    RECORD_COUNT = 1, "the record count is negative or needs more bytes than the batch has"
    RECORD_LENGTH = 2, "a record's length is negative, malformed or runs beyond the batch"
    RECORD_FIELDS = 3, "a record's fields end early or hold a malformed number"
    KEY_LENGTH = 4, "a key runs beyond its record"
    VALUE_LENGTH = 5, "a value runs beyond its record"
    HEADER_COUNT = 6, "a record's header count is negative or larger than the record"
    HEADER_KEY = 7, "a header key's length is negative, malformed or runs beyond the record"
    HEADER_VALUE = 8, "a header value's length is malformed or runs beyond the record"
    RECORD_SIZE = 9, "a record's fields do not end where its length says"
    BYTES_LEFT = 10, "bytes are left behind the last record"
    WRAPPER_VALUE = 11, "a compressed message has no value"
    WRAPPER_EMPTY = 12, "a compressed message holds no messages"
    WRAPPER_OFFSET = 13, "a compressed message's offset is below that of its last inner message"
    INNER_SIZE = 14, "an inner message's size is below the smallest there is (14)"
    INNER_MAGIC = 15, "an inner message's magic is neither 0 nor 1"
    INNER_COMPRESSED = 16, "an inner message is compressed again"
    INNER_CRC = 17, "an inner message's checksum does not match its bytes"
    MESSAGE_FIELDS = 18, "a message's key or value runs beyond its end"
