"""The transaction index of a log, computed from its batches."""

from __future__ import annotations

from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.records import ControlRecordType, parse_control_record, read_batches


def aborted_entries(data: bytes) -> list[TransactionIndexEntry]:
    """Return the entries that a broker writes when data is appended."""
    open_now: dict[int, int] = {}
    found = []
    for batch in read_batches(data):
        if not batch.is_control:
            if batch.is_transactional:
                open_now.setdefault(batch.producer_id, batch.base_offset)
            continue
        first = open_now.pop(batch.producer_id, None)
        kind = parse_control_record(next(batch.records())).type
        if first is not None and kind == ControlRecordType.ABORT:
            stable = min(open_now.values(), default=batch.last_offset + 1)
            found.append(TransactionIndexEntry(batch.producer_id, first, batch.last_offset, stable))
    return found
