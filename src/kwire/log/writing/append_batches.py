"""Batches ready to be written to a log: bytes with their offsets, and parsed headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.log.writing.append_preparation import Data
from kwire.log.writing.recovery import control_record_of
from kwire.records import ControlRecord, ValidatedRecords, read_batches
from kwire.records.append.checks import AppendInfo
from kwire.records.append.whole_batch import WholeBatch
from kwire.records.format.batch_header import DEFAULT_HEADER, BatchHeader, parse_header

__all__ = ["AppendBatches", "from_validated", "from_whole_batch", "unchanged", "with_control_records"]


class AppendBatches(NamedTuple):
    """Batches ready to be written: bytes and parsed headers.

    parts: a validated batch is a new header and the old payload, which are written without joining them. first_offset:
    None for compressed magic 0 or 1, where it is not in the header.
    """

    parts: Sequence[Data]
    size_bytes: int
    headers: list[BatchHeader]
    first_offset: int | None
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int


def from_validated(checked: ValidatedRecords, first_offset: int) -> AppendBatches:
    """Return validated batches with offsets from first_offset on."""
    return AppendBatches(
        checked.parts,
        checked.size_bytes,
        headers_of(checked.parts),
        first_offset,
        checked.next_offset - 1,
        checked.max_timestamp_ms,
        checked.offset_of_max_timestamp,
    )


def from_whole_batch(data: Data, whole: WholeBatch, first_offset: int, leader_epoch: int) -> AppendBatches:
    """Return the single batch of the fast path."""
    header = BatchHeader(
        0, len(data), first_offset, whole.last_offset, 2, whole.attributes, whole.max_timestamp, whole.producer_id,
        leader_epoch, whole.producer_epoch, whole.base_sequence,
    )  # fmt: skip
    return AppendBatches(
        (whole.head, memoryview(data)[DEFAULT_HEADER.size :]),
        len(data),
        [header],
        first_offset,
        whole.last_offset,
        whole.max_timestamp,
        whole.offset_of_max_timestamp,
    )


def headers_of(parts: Sequence[Data]) -> list[BatchHeader]:
    """Parse the headers of batches in parts: each begins with a part or after another batch in the same part."""
    headers, i, at, position = list[BatchHeader](), 0, 0, 0
    while i < len(parts):
        header = parse_header(memoryview(parts[i]), at, position, "")
        assert header is not None
        headers.append(header)
        position += header.size_bytes
        at += header.size_bytes
        while i < len(parts) and at >= len(parts[i]):
            at -= len(parts[i])
            i += 1
    return headers


def unchanged(data: Data, info: AppendInfo) -> AppendBatches:
    """Return batches that are written unchanged."""
    whole = memoryview(data)[: info.valid_bytes]
    headers = headers_of([whole])
    return AppendBatches(
        [whole],
        info.valid_bytes,
        headers,
        headers[0].base_offset if headers[0].magic == 2 else None,
        info.last_offset,
        info.max_timestamp,
        info.offset_of_max_timestamp,
    )


def with_control_records(new: AppendBatches) -> Iterator[tuple[BatchHeader, ControlRecord | None]]:
    """Yield the headers of batches that have a producer id, each with its control record if any."""
    for header in new.headers:
        if header.producer_id < 0:
            continue
        marker = None
        if header.is_control:
            data = b"".join(new.parts)[header.position : header.position + header.size_bytes]
            marker = next((control_record_of(batch) for batch in read_batches(data)), None)
        yield header, marker
