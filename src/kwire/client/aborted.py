"""The aborted transactions of a Fetch response: where each of them ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.identifiers import MAX_OFFSET
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.records import ControlRecordType, parse_control_record, read_batches

if TYPE_CHECKING:
    from kwire.client.fetch_requests import Fetched

__all__ = ["aborted_transactions"]


def aborted_transactions(fetched: Fetched) -> list[AbortedTransaction]:
    """Return the aborted transactions among the batches of a response, of a read with read_committed.

    A transaction whose marker is in a later response extends to the end of this one. Brokers name the first offset of a
    transaction only; it ends with the producer's next abort marker. Source: Kafka's CompletedFetch.
    """
    if not fetched.aborted:
        return []
    open_transactions: dict[int, int] = {}
    pending = sorted(fetched.aborted, key=lambda each: each[1], reverse=True)
    aborted = []
    for batch in read_batches(fetched.records):
        while pending and pending[-1][1] <= batch.last_offset:
            producer_id, first = pending.pop()
            open_transactions[producer_id] = first
        if batch.is_control and batch.producer_id in open_transactions:
            record = next(iter(batch.records()), None)
            if record is not None and parse_control_record(record).type == ControlRecordType.ABORT:
                first = open_transactions.pop(batch.producer_id)
                aborted.append(AbortedTransaction(batch.producer_id, first, batch.last_offset))
    return aborted + [AbortedTransaction(*each, MAX_OFFSET) for each in open_transactions.items()]
