"""What is expected of every request on the wire, whatever the scenario is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kwire import records
from kwire.conformance.client.cluster import Front
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.scenario import expect
from kwire.errors import KwireError

__all__ = ["STORM", "check_wire"]

STORM = 60
"""Requests of one API, or connections, in a second: more of them without success is a storm. Tasks ask for a backoff of
50 ms, so that 20 are expected."""


def check_wire(front: Front) -> None:
    """Raise Finding for requests that no broker should get."""
    for each in front.exchanges:
        expect(not each.problem, f"request {each.problem}" if each.problem else "")
    _correlation_ids(front.exchanges)
    _storms(front)
    _sequences(front.exchanges)


def _correlation_ids(exchanges: Sequence[Exchange]) -> None:
    last: dict[int, int] = {}
    for each in exchanges:
        if each.request is not None:
            number = each.request.correlation_id
            expect(last.get(each.connection) != number, f"correlation id {number} twice in a row on a connection")
            last[each.connection] = number


def _storms(front: Front) -> None:
    failures: dict[str, list[float]] = defaultdict(list)
    for each in front.exchanges:
        if each.shut_at is not None or _failed(each):
            failures[each.api].append(each.at)
    failures["connection"] = front.opened
    for what, times in failures.items():
        most = max((sum(begin <= at < begin + 1 for at in times) for begin in times[:: STORM // 4]), default=0)
        expect(most <= STORM, f"a storm of retries: {most} {what} attempts without success within a second")


def _failed(exchange: Exchange) -> bool:
    response = exchange.response
    if getattr(response, "error_code", 0):
        return True
    for topic in [*getattr(response, "responses", ()), *getattr(response, "topics", ())]:
        for part in [*getattr(topic, "partition_responses", ()), *getattr(topic, "partitions", ())]:
            if getattr(part, "error_code", 0):
                return True
    return False


def _sequences(exchanges: Sequence[Exchange]) -> None:
    """Batches of an idempotent producer follow each other, or are sent again as they were."""
    following: dict[tuple[str, int, int, int], int] = {}
    sent: dict[tuple[str, int, int, int], set[tuple[int, int]]] = defaultdict(set)
    for each in exchanges:
        if each.api != "Produce" or each.body is None:
            continue
        for topic in each.body.topic_data:
            for part in topic.partition_data:
                for found in _batches(part.records):
                    producer_id, epoch, sequence, count = found
                    key = (f"{topic.name}{topic.topic_id}", part.index, producer_id, epoch)
                    if (sequence, count) in sent[key]:
                        continue
                    wanted = following.get(key, sequence)
                    what = f"partition {part.index}, producer epoch {epoch}"
                    expect(sequence == wanted, f"sequence {sequence} instead of {wanted} in {what}")
                    sent[key].add((sequence, count))
                    following[key] = sequence + count


def _batches(data: bytes | None) -> list[tuple[int, int, int, int]]:
    """Return (producer id, epoch, first sequence, records) of the batches of idempotent producers."""
    try:
        return [
            (each.producer_id, each.producer_epoch, each.base_sequence, 1 + each.last_offset - each.base_offset)
            for each in records.read_batches(data or b"")
            if each.magic == 2 and each.producer_id >= 0
        ]
    except KwireError as error:
        expect(condition=False, reason=f"records of a Produce request cannot be read: {error}")
        return []
