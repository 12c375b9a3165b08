"""Transactions: markers, isolation, fencing, retries of EndTxn, both versions of the protocol."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from kwire.conformance.broker.bench import Address, Bench, Topic
from kwire.conformance.broker.chapters.data import batch, batches, fetch, fetched, list_offset, produce, produced
from kwire.conformance.broker.checks import Chapter
from kwire.conformance.broker.requests import error_name

__all__ = ["chapter"]

chapter = Chapter("Transactions")
SOURCE = "KIP-98; TransactionCoordinator"
USES = {
    "InitProducerId": -1,
    "AddPartitionsToTxn": 0,
    "EndTxn": 0,
    "FindCoordinator": -1,
    "Topics": -1,
    "Produce": -1,
    "Fetch": 4,
}
V1_ADD, V1_END = 3, 3  # the last versions of the first protocol
SETTLED_S = 10.0


class Producer(NamedTuple):
    """A transactional producer."""

    txn: str
    at: Address
    producer_id: int
    epoch: int


def _producer(bench: Bench, txn: str = "txn", **fields: Any) -> Producer:
    name = bench.name(txn)
    at = bench.coordinator(name, 1)
    options = {"transaction_timeout_ms": 60_000, **fields}
    version = bench.best("InitProducerId", 4)
    ask = lambda: bench.ask("InitProducerId", version, at=at, transactional_id=name, **options)  # noqa: E731
    body = bench.until(ask, 14, 15, 16, 51)
    return Producer(name, at, body.producer_id, body.producer_epoch)


def _add(bench: Bench, producer: Producer, topic: Topic, **fields: Any) -> str:
    names = {"transactional_id": producer.txn, "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    names.update(fields)
    values: dict[str, Any] = {f"v3_and_below_{name}": value for name, value in names.items()}
    topics = [{"name": topic.name, "partitions": [0]}]

    def ask() -> Any:
        body = bench.ask("AddPartitionsToTxn", V1_ADD, at=producer.at, **values, v3_and_below_topics=topics)
        return body.results_by_topic_v3_and_below[0].results_by_partition[0]

    found = ask()
    deadline = time.monotonic() + SETTLED_S  # the markers of the former transaction may still be missing
    while error_name(found.partition_error_code) == "CONCURRENT_TRANSACTIONS" and time.monotonic() < deadline:
        time.sleep(0.02)
        found = ask()
    return error_name(found.partition_error_code)


def _end(bench: Bench, producer: Producer, committed: bool, *, version: int = V1_END, **fields: Any) -> Any:
    names = {"transactional_id": producer.txn, "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    ask = lambda: bench.ask("EndTxn", version, at=producer.at, **{**names, **fields}, committed=committed)  # noqa: E731
    return bench.until(ask, 51)


def _write(bench: Bench, producer: Producer, topic: Topic, value: bytes, sequence: int = 0) -> Any:
    fields: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    data = batch(value, **fields, base_sequence=sequence, is_transactional=True)
    return produce(bench, topic, data, version=bench.best("Produce", 11), transactional_id=producer.txn)


def _settled(bench: Bench, topic: Topic, offset: int) -> int:
    """Wait until the last stable offset is reached: markers are written after EndTxn has its response."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        found = list_offset(bench, topic, -1, isolation_level=1).offset
        if found >= offset or time.monotonic() > deadline:
            return int(found)
        time.sleep(0.02)


@chapter.check("TXN-001", SOURCE, uses=USES)
def committed(bench: Bench) -> Any:
    """A committed transaction is readable, with its marker.

    Add a partition, produce a record, commit, and fetch from its offset and from the next.
    The record and a control batch arrive; the last stable offset is the end.
    """
    topic, producer = bench.topic(), _producer(bench)
    steps = [_add(bench, producer, topic), error_name(_write(bench, producer, topic, b"a").error_code)]
    steps.append(error_name(_end(bench, producer, True).error_code))
    stable = _settled(bench, topic, 2)
    marker = batches(fetch(bench, topic, 1).records)
    return {"steps": steps, "stable": stable, **fetched(fetch(bench, topic, isolation_level=1)), "marker": marker}


@chapter.check("TXN-002", SOURCE, uses=USES)
def aborted(bench: Bench) -> Any:
    """An aborted transaction is in the list of aborted ones.

    Add a partition, produce a record, abort, and fetch with read_committed.
    The record and a control batch arrive, with the producer id and the first offset in the list.
    """
    topic, producer = bench.topic(), _producer(bench)
    _add(bench, producer, topic)
    _write(bench, producer, topic, b"a")
    _end(bench, producer, False)
    _settled(bench, topic, 2)
    part = fetch(bench, topic, isolation_level=1)
    listed = [[each.producer_id == producer.producer_id, each.first_offset] for each in part.aborted_transactions or ()]
    return {**fetched(part), "aborted": listed, "marker": batches(fetch(bench, topic, 1).records)}


@chapter.check("TXN-003", SOURCE, uses=USES)
def open_transaction(bench: Bench) -> Any:
    """An open transaction is not readable with read_committed.

    Produce a record outside and one inside of a transaction; fetch with both isolation levels.
    read_committed has the first record only, and the last stable offset is 1.
    """
    topic, producer = bench.topic(), _producer(bench)
    produce(bench, topic, batch(b"before"))
    _add(bench, producer, topic)
    _write(bench, producer, topic, b"inside")
    bench.at_end(lambda: _end(bench, producer, False))
    found = {level: fetched(fetch(bench, topic, isolation_level=level)) for level in (0, 1)}
    return {"uncommitted": found[0], "committed": found[1]}


@chapter.check("TXN-004", SOURCE, uses={**USES, "ListOffsets": 2})
def end_by_isolation(bench: Bench) -> Any:
    """ListOffsets with read_committed ends at an open transaction.

    Produce a record in a transaction, and send ListOffsets with both isolation levels.
    The ends are 1 and 0.
    """
    topic, producer = bench.topic(), _producer(bench)
    _add(bench, producer, topic)
    _write(bench, producer, topic, b"a")
    bench.at_end(lambda: _end(bench, producer, False))
    return {"ends": [list_offset(bench, topic, -1, isolation_level=level).offset for level in (0, 1)]}


@chapter.check("TXN-005", SOURCE, uses=USES)
def fenced(bench: Bench) -> Any:
    """A second producer of a transactional id fences the first.

    Initialize a transactional id twice; add a partition and end with the first epoch, then with the second.
    The epoch grows by one; the first producer is fenced with the error of the release.
    """
    topic, first = bench.topic(), _producer(bench)
    second = _producer(bench)
    return {
        "same id": first.producer_id == second.producer_id,
        "epoch": second.epoch - first.epoch,
        "first adds": _add(bench, first, topic),
        "first ends": error_name(_end(bench, first, True).error_code),
        "second adds": _add(bench, second, topic),
        "second ends": error_name(_end(bench, second, False).error_code),
    }


@chapter.check("TXN-006", SOURCE, uses=USES)
def fenced_writer(bench: Bench) -> Any:
    """A fenced producer cannot write.

    Produce in a transaction; initialize the transactional id again, which aborts it; produce with the old epoch.
    The error is that of the release.
    """
    topic, first = bench.topic(), _producer(bench)
    _add(bench, first, topic)
    _write(bench, first, topic, b"a")
    _producer(bench)
    stable = _settled(bench, topic, 2)
    return {"stable": stable, "error": error_name(_write(bench, first, topic, b"b", 1).error_code)}


@chapter.check("TXN-007", SOURCE, uses=USES)
def ends_twice(bench: Bench) -> Any:
    """EndTxn may be sent again with the same result, and not with the other.

    Commit a transaction, commit again, then abort.
    The second has no error, the third INVALID_TXN_STATE.
    """
    topic, producer = bench.topic(), _producer(bench)
    _add(bench, producer, topic)
    _write(bench, producer, topic, b"a")
    return {"errors": [error_name(_end(bench, producer, each).error_code) for each in (True, True, False)]}


@chapter.check("TXN-008", SOURCE, uses=USES)
def nothing_to_end(bench: Bench) -> Any:
    """A transaction that has not begun cannot be ended.

    Initialize a transactional id, and commit.
    The error is INVALID_TXN_STATE.
    """
    return {"error": error_name(_end(bench, _producer(bench), True).error_code)}


@chapter.check("TXN-009", SOURCE, uses=USES)
def other_producer_id(bench: Bench) -> Any:
    """Another producer id than that of the transactional id is refused.

    Add a partition and end with producer id 424242.
    Both have INVALID_PRODUCER_ID_MAPPING.
    """
    topic, producer = bench.topic(), _producer(bench)
    end = _end(bench, producer, True, producer_id=424242)
    return {"add": _add(bench, producer, topic, producer_id=424242), "end": error_name(end.error_code)}


@chapter.check("TXN-010", SOURCE, uses=USES)
def timeouts(bench: Bench) -> Any:
    """Transaction timeouts of 0, and above the broker's limit, are refused.

    Initialize with the timeouts 0 and the largest int32.
    Both have INVALID_TRANSACTION_TIMEOUT.
    """
    name = bench.name("txn")
    at = bench.coordinator(name, 1)
    version = bench.best("InitProducerId", 4)
    fields: dict[str, Any] = {"transactional_id": name}
    bodies = [
        bench.ask("InitProducerId", version, at=at, **fields, transaction_timeout_ms=each) for each in (0, 2**31 - 1)
    ]
    return {"errors": [error_name(each.error_code) for each in bodies]}


@chapter.check("TXN-011", "KIP-890; ReplicaManager", uses=USES)
def without_adding(bench: Bench) -> Any:
    """A partition that is not part of the transaction.

    Produce a transactional record without adding its partition, with a version before Produce 12.
    The error, or its absence, is that of the release.
    """
    topic, producer = bench.topic(), _producer(bench)
    part = produced(_write(bench, producer, topic, b"a"))
    bench.at_end(lambda: _end(bench, producer, False))
    return part


@chapter.check("TXN-012", "KIP-890", uses={**USES, "Produce": 12, "EndTxn": 5})
def second_protocol(bench: Bench) -> Any:
    """Produce 12 adds the partition by itself, and EndTxn 5 returns the next epoch.

    Produce in a transaction with Produce 12 and commit with EndTxn 5, then produce with the epoch of the response.
    Nothing has an error, and the epoch grows by one.
    """
    topic, producer = bench.topic(), _producer(bench)
    fields: dict[str, Any] = {"producer_id": producer.producer_id, "is_transactional": True, "base_sequence": 0}
    data = batch(b"a", **fields, producer_epoch=producer.epoch)
    first = produced(produce(bench, topic, data, version=12, transactional_id=producer.txn))
    ended = _end(bench, producer, True, version=5)
    later = producer._replace(producer_id=ended.producer_id, epoch=ended.producer_epoch)
    fields["producer_id"] = later.producer_id
    data = batch(b"b", **fields, producer_epoch=later.epoch)
    second = produced(produce(bench, topic, data, version=12, transactional_id=producer.txn))
    bench.at_end(lambda: _end(bench, later, False, version=5))
    return {"first": first, "epoch": later.epoch - producer.epoch, "second": second["error"]}


@chapter.check("TXN-013", "KIP-447", uses={**USES, "AddOffsetsToTxn": 0, "TxnOffsetCommit": 0, "OffsetFetch": 7})
def offsets_in_a_transaction(bench: Bench) -> Any:
    """Offsets that are committed in a transaction count when it is committed.

    Add a group, commit an offset in the transaction, fetch it with require_stable, commit, and fetch it again.
    Before the end it is unstable, after it the offset.
    """
    topic, producer, group = bench.topic(), _producer(bench), bench.group()
    names: dict[str, Any] = {"transactional_id": producer.txn, "group_id": group}
    who: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    added = bench.ask("AddOffsetsToTxn", 3, at=producer.at, **names, **who)
    part = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    topics = [{"name": topic.name, "partitions": [part]}]
    at = bench.coordinator(group)
    written = bench.ask("TxnOffsetCommit", 3, at=at, **names, **who, topics=topics)

    def committed() -> list[Any]:
        asked = [{"name": topic.name, "partition_indexes": [0]}]
        body = bench.ask("OffsetFetch", 7, at=at, group_id=group, topics=asked, require_stable=True)
        found = body.topics[0].partitions[0]
        return [error_name(found.error_code), found.committed_offset]

    before = committed()
    _end(bench, producer, True)
    after = committed()
    deadline = time.monotonic() + SETTLED_S
    while after[0] != "NONE" and time.monotonic() < deadline:
        time.sleep(0.02)
        after = committed()
    errors = [error_name(added.error_code), error_name(written.topics[0].partitions[0].error_code)]
    return {"errors": errors, "before": before, "after": after}


@chapter.check(
    "TXN-014", "KIP-664", uses={**USES, "DescribeTransactions": 0, "ListTransactions": 0, "DescribeProducers": 0}
)
def described(bench: Bench) -> Any:
    """An open transaction is listed and described.

    Produce a record in a transaction; describe it, list it, and describe the producers of the partition.
    Its state is Ongoing, and its partition and producer are named.
    """
    topic, producer = bench.topic(), _producer(bench)
    _add(bench, producer, topic)
    _write(bench, producer, topic, b"a")
    bench.at_end(lambda: _end(bench, producer, False))
    found = bench.ask("DescribeTransactions", at=producer.at, transactional_ids=[producer.txn]).transaction_states[0]
    listed = bench.ask("ListTransactions", at=producer.at, state_filters=[], producer_id_filters=[producer.producer_id])
    asked = [{"name": topic.name, "partition_indexes": [0]}]
    active = bench.ask("DescribeProducers", at=topic.leader, topics=asked).topics[0].partitions[0].active_producers
    return {
        "state": found.transaction_state,
        "topics": [[each.topic == topic.name, list(each.partitions)] for each in found.topics],
        "listed": [
            [each.transactional_id == producer.txn, each.transaction_state] for each in listed.transaction_states
        ],
        "producers": [[each.producer_id == producer.producer_id, each.last_sequence] for each in active],
        "starts at": [each.current_txn_start_offset for each in active],
    }


@chapter.check("TXN-015", "KIP-360", uses={**USES, "InitProducerId": 3})
def epoch_bump(bench: Bench) -> Any:
    """A producer raises its own epoch.

    Initialize with the producer id and epoch of the first response, then with an old epoch.
    The first raises the epoch by one; the second has the error of the release.
    """
    producer = _producer(bench)
    fields: dict[str, Any] = {"transactional_id": producer.txn, "transaction_timeout_ms": 60_000}
    who: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    version = bench.best("InitProducerId", 4)
    bumped = bench.ask("InitProducerId", version, at=producer.at, **fields, **who)
    again = _producer(bench)
    stale = bench.ask("InitProducerId", version, at=producer.at, **fields, **who)
    return {
        "errors": [error_name(bumped.error_code), error_name(stale.error_code)],
        "epochs": [bumped.producer_epoch - producer.epoch, again.epoch - producer.epoch],
    }


@chapter.check("TXN-016", "KIP-98", uses={"InitProducerId": -1})
def idempotent_only(bench: Bench) -> Any:
    """A producer without a transactional id gets an id of its own, with epoch 0.

    Send InitProducerId without a transactional id twice.
    Both have epoch 0, and other producer ids.
    """
    fields: dict[str, Any] = {"transactional_id": None, "transaction_timeout_ms": 1000}
    bodies = [bench.until(lambda: bench.ask("InitProducerId", **fields)) for _ in range(2)]
    return {"epochs": [each.producer_epoch for each in bodies], "ids": len({each.producer_id for each in bodies})}
