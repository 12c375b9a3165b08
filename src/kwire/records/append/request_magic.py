"""Record formats by version of the Produce and Fetch requests, and the errors of a mismatch.

    request   versions   magic
    Produce   0, 1       0        not checked: old clients mix formats
    Produce   2          1        not checked either
    Produce   3 on       2        exactly one batch a partition; zstd from version 7 on
    Fetch     0, 1       0
    Fetch     2, 3       1
    Fetch     4 on       2        zstd from version 10 on

Source: KIP-31, KIP-98, KIP-110; ProduceRequest.validateRecords, FetchRequest; kafka.server.KafkaApis.
"""

from __future__ import annotations

from kwire.errors import CorruptBatch
from kwire.records.attributes import Compression
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords
from kwire.records.format.record_set import read_batches

__all__ = ["PRODUCE_ZSTD_VERSION", "check_produced", "fetch_magic", "produce_magic"]

PRODUCE_ZSTD_VERSION = 7


def produce_magic(version: int) -> int:
    """Return the magic that clients send with this version of Produce."""
    return 0 if version < 2 else 1 if version == 2 else 2


def fetch_magic(version: int) -> int:
    """Return the highest magic in responses to this version of Fetch; newer batches must be down-converted."""
    return 0 if version < 2 else 1 if version < 4 else 2


def check_produced(buf: bytes | bytearray | memoryview, version: int) -> None:
    """Reject records that this version of Produce must not contain for a partition (U-01); reads only headers.

    Raises RejectedRecords: INVALID_RECORD or UNSUPPORTED_COMPRESSION_TYPE, CORRUPT_MESSAGE on an impossible header.
    """
    if version < 3:
        return
    try:
        batches = list(read_batches(buf))
        codec = batches[0].compression if batches else Compression.NONE
    except CorruptBatch as error:
        raise RejectedRecords(error.what, AppendErrorCode.CORRUPT_MESSAGE) from None
    if not batches:
        what = f"Produce requests with version {version} must have at least one record batch per partition"
        raise RejectedRecords(what, AppendErrorCode.INVALID_RECORD)
    if batches[0].magic != 2:
        what = (
            f"Produce requests with version {version} are only allowed to contain record batches with magic version 2"
        )
        raise RejectedRecords(what, AppendErrorCode.INVALID_RECORD)
    if codec == Compression.ZSTD and version < PRODUCE_ZSTD_VERSION:
        what = f"Produce requests with version {version} are not allowed to use ZStandard compression"
        raise RejectedRecords(what, AppendErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if len(batches) > 1:
        what = f"Produce requests with version {version} may only contain exactly one record batch per partition"
        raise RejectedRecords(what, AppendErrorCode.INVALID_RECORD)
