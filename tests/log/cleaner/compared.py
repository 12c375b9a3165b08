"""Comparison of two directories of a partition after two cleaners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kwire.log.files.file_names import SEGMENT_FILE
from kwire.records import Batch, read_batches
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.checksum import crc32, crc32c
from kwire.records.format.legacy_batch import LegacyBatch

CRC_AND_SIZE = {4, 1}  # fields of DEFAULT_HEADER that depend on the compressor


def segment_files(directory: Path, kind: str = "log") -> list[Path]:
    """Return the non-empty files of a partition with a suffix, by name."""
    return [path for path in sorted(directory.glob(f"*.{kind}")) if SEGMENT_FILE.fullmatch(path.name)]


def batch_content(batch: Batch) -> Any:
    """Return the part of a batch that must be equal: its bytes, or its fields and decompressed records."""
    batch.check()
    if not batch.compression:
        return bytes(batch.buffer)
    if isinstance(batch, LegacyBatch):
        fields = (batch.magic, batch.attributes, batch.last_offset, batch.max_timestamp)
        return fields, bytes(batch.inner_payload())
    fields = tuple(field for i, field in enumerate(DEFAULT_HEADER.unpack_from(batch.buffer)) if i not in CRC_AND_SIZE)
    return fields, bytes(batch.decompress(batch.buffer[DEFAULT_HEADER.size :]))


def log_content(directory: Path) -> dict[str, list[Any]]:
    """Return the batches of each segment."""
    return {
        path.name: [batch_content(batch) for batch in read_batches(path.read_bytes(), file=str(path))]
        for path in segment_files(directory)
    }


def transaction_content(directory: Path) -> dict[str, bytes]:
    """Return the non-empty transaction indexes."""
    return {path.name: data for path in segment_files(directory, "txnindex") if (data := path.read_bytes())}


def with_true_crc(data: bytes) -> bytes:
    """Return a batch with a valid checksum."""
    changed = bytearray(data)
    if changed[16] < 2:
        changed[12:16] = crc32(bytes(changed[16:])).to_bytes(4, "big")
    else:
        changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)
