"""`.txnindex`: the aborted transactions whose marker is in a segment.

    pos  bytes  field                note, an entry of 34 bytes
      0      2  version              0; readers look at the first byte only
      2      8  producer_id
     10      8  first_offset         of the transaction
     18      8  last_offset          of its abort marker
     26      8  last_stable_offset   when the marker was written

Source: rules F-30 to F-33; Kafka's AbortedTxn, TransactionIndex.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

ENTRY = struct.Struct(">hqqqq")
assert ENTRY.size == 34


class AbortedTransaction(NamedTuple):
    """Transactional batches of producer_id in [first_offset, last_offset] were aborted; last_offset is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


class TransactionIndexEntry(NamedTuple):
    """One entry of a `.txnindex` file."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def parse_transaction_index(data: bytes, base_offset: int, next_base: int | None) -> list[TransactionIndexEntry] | None:
    """Parse the entries; None if the file is invalid, so that the log has to be scanned instead.

    Checked: whole entries, version 0, producer ids not negative, offsets in order, markers increasing and inside the
    segment [base_offset, next_base) (F-31, F-33).
    """
    if len(data) % ENTRY.size:
        return None
    entries: list[TransactionIndexEntry] = []
    before = base_offset - 1
    for version, producer_id, first, last, stable in ENTRY.iter_unpack(data):
        if version >> 8 or producer_id < 0 or not 0 <= first <= last or not 0 <= stable <= last + 1:
            return None
        if last <= before or (next_base is not None and last >= next_base):
            return None
        entries.append(TransactionIndexEntry(producer_id, first, last, stable))
        before = last
    return entries
