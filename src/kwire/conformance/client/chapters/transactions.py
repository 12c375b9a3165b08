"""Transactions: what is committed is read, what is aborted is not, and fenced producers stop."""

from __future__ import annotations

from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.groups import committed_offset
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import acknowledged, records, reported, retried
from kwire.conformance.client.program import Outcome
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.stage import Stage
from kwire.conformance.client.task import transact, transaction

__all__ = ["chapter"]

chapter = Chapter("Transactions of clients")


def committed(s: Stage, topic: str, wanted: list[str]) -> None:
    """Expect these values for a reader of committed records."""
    found = s.committed_values(topic)
    expect(found == wanted, f"committed records are {found} instead of {wanted}")


def ended(out: Outcome, *wanted: str) -> None:
    """Expect that the transactions ended so."""
    expect(
        out.ended == list(wanted),
        f"transactions ended with {out.ended} instead of {list(wanted)}: {out.complaints[:1]}",
    )


@chapter.scenario("TRANSACT-001", "KIP-98")
def commits(s: Stage) -> Steps:
    """A committed transaction is read.

    Three records are written and committed.
    """
    topic = s.topic()
    out = yield transact(topic, s.name("txn"), [transaction(records(3))])
    ended(out, "commit")
    acknowledged(out, 3)
    committed(s, topic, ["v0", "v1", "v2"])


@chapter.scenario("TRANSACT-002", "KIP-98")
def aborts(s: Stage) -> Steps:
    """An aborted transaction is not read.

    Three records are written and aborted.
    """
    topic = s.topic()
    out = yield transact(topic, s.name("txn"), [transaction(records(3), "abort")])
    ended(out, "abort")
    committed(s, topic, [])
    expect(s.exchanges("Produce"), "the client sent no records before it aborted", Verdict.NOT_APPLICABLE)


@chapter.scenario("TRANSACT-003", "KIP-98; KIP-890")
def several(s: Stage) -> Steps:
    """Transactions follow each other.

    Commit, abort, commit, each with two records.
    """
    topic = s.topic()
    parts = [transaction(records(2, start=2 * i), end) for i, end in enumerate(("commit", "abort", "commit"))]
    out = yield transact(topic, s.name("txn"), parts)
    ended(out, "commit", "abort", "commit")
    acknowledged(out, 6)
    committed(s, topic, ["v0", "v1", "v4", "v5"])


@chapter.scenario("TRANSACT-004", "KIP-98; KIP-890", nodes=1)
def first_version(s: Stage) -> Steps:
    """Partitions are added before they are written to.

    The broker has no feature transaction.version: the client has to send AddPartitionsToTxn.
    """
    s.front.hides_features = True
    s.versions("Produce", 3, 11)
    s.versions("EndTxn", 0, 4)
    topic = s.topic()
    out = yield transact(topic, s.name("txn"), [transaction(records(3))])
    ended(out, "commit")
    committed(s, topic, ["v0", "v1", "v2"])
    added, written = s.exchanges("AddPartitionsToTxn"), s.exchanges("Produce")
    expect(added and written and added[0].at < written[0].at, "records were sent before AddPartitionsToTxn")


@chapter.scenario("TRANSACT-005", "KIP-98; KIP-447")
def offsets(s: Stage) -> Steps:
    """Offsets are committed with the transaction.

    Two records and offset 7 of a group are committed; then one record and offset 9 are aborted.
    """
    topic, group = s.topic(), s.name("group")
    parts = [
        transaction(records(2), offsets={"group": group, "partition": 0, "offset": 7}),
        transaction(records(1, start=2), "abort", offsets={"group": group, "partition": 0, "offset": 9}),
    ]
    out = yield transact(topic, s.name("txn"), parts)
    ended(out, "commit", "abort")
    committed(s, topic, ["v0", "v1"])
    found = committed_offset(s, group, topic)
    expect(found == 7, f"the committed offset is {found} instead of 7")


@chapter.scenario("TRANSACT-006", "KIP-98")
def lost_end(s: Stage) -> Steps:
    """A lost response to EndTxn is asked for again.

    The broker ends the transaction, and closes the connection instead of responding.
    """
    topic = s.topic()
    s.script.lose("EndTxn")
    out = yield transact(topic, s.name("txn"), [transaction(records(2)), transaction(records(2, start=2))])
    ended(out, "commit", "commit")
    committed(s, topic, ["v0", "v1", "v2", "v3"])
    retried(s, "EndTxn", 3)


@chapter.scenario("TRANSACT-007", "KIP-98")
def lost_produce(s: Stage) -> Steps:
    """A lost response to Produce doubles nothing in a transaction.

    The broker writes the records, and closes the connection instead of responding.
    """
    topic = s.topic()
    s.script.lose("Produce")
    out = yield transact(topic, s.name("txn"), [transaction(records(3))])
    ended(out, "commit")
    committed(s, topic, ["v0", "v1", "v2"])


@chapter.scenario("TRANSACT-008", "KIP-98: PRODUCER_FENCED")
def fenced(s: Stage) -> Steps:
    """A producer that another one has replaced stops.

    Before the second transaction ends, another producer takes the transactional id.
    The application gets an error, and the second transaction is not committed.
    """
    topic, name = s.topic(), s.name("txn")
    s.script.add("EndTxn", after=1, times=1, reply=_fenced(s))
    out = yield transact(topic, name, [transaction(records(2)), transaction(records(2, start=2))])
    expect(out.ended == ["commit"], f"transactions ended with {out.ended}")
    reported(out, "that it is fenced")
    after = [each for each in s.exchanges("Produce") if each.at > s.exchanges("EndTxn")[1].at]
    expect(not after, "the producer went on writing after it was fenced")


def _fenced(s: Stage) -> Any:
    from kwire.conformance.client.script import failed
    from kwire.protocol.error_codes import ErrorCode

    def reply(exchange: Exchange) -> Any:
        code = ErrorCode.PRODUCER_FENCED if exchange.version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        return failed(exchange, code)

    return reply


@chapter.scenario("TRANSACT-009", "KIP-98")
def closing(s: Stage) -> Steps:
    """A coordinator that closes connections is asked again.

    The connection is closed at the first InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn.
    """
    topic, group = s.topic(), s.name("group")
    for api in ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"):
        s.script.close(api, optional=api.startswith("Add"))  # the second version of transactions does without
    part = transaction(records(2), offsets={"group": group, "partition": 0, "offset": 7})
    out = yield transact(topic, s.name("txn"), [part])
    ended(out, "commit")
    committed(s, topic, ["v0", "v1"])
    expect(committed_offset(s, group, topic) == 7, "the offset of the transaction is not committed")


@chapter.scenario("TRANSACT-010", "KIP-98")
def failed_records(s: Stage) -> Steps:
    """A transaction with a record that failed is not committed.

    The broker refuses the records with MESSAGE_TOO_LARGE; the application commits nevertheless.
    The client does not report a commit.
    """
    topic = s.topic()
    s.script.fail("Produce", "MESSAGE_TOO_LARGE", times=None)
    out = yield transact(topic, s.name("txn"), [transaction(records(1))])
    expect("commit" not in out.ended, "the transaction is reported as committed, without its record")
    reported(out, "the record that failed")


@chapter.scenario("TRANSACT-011", "KIP-98")
def marked(s: Stage) -> Steps:
    """Batches of a transaction carry its flag, id, epoch and sequences.

    Every Produce request of the transaction has the transactional id, and its batches the transactional flag.
    """
    from kwire import records as formats

    topic, name = s.topic(), s.name("txn")
    out = yield transact(topic, name, [transaction(records(4))])
    ended(out, "commit")
    acknowledged(out, 4)
    for each in s.exchanges("Produce"):
        expect(each.body.transactional_id == name, "Produce without the transactional id")
        for data in (part.records for topic in each.body.topic_data for part in topic.partition_data):
            for found in formats.read_batches(data or b""):
                expect(found.is_transactional and found.producer_id >= 0, "a batch without the transactional flag")
