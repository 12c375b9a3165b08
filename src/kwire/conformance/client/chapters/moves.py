"""Leaders and coordinators that move, and nodes that go: one broker, shown as three nodes."""

from __future__ import annotations

from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import numbered, stored
from kwire.conformance.client.chapters.fetching import first_batch_only
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import consumed, records, written_once
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.scripted_log import ScriptedLog
from kwire.conformance.client.stage import Stage, batch
from kwire.conformance.client.task import consume, produce, transact, transaction

__all__ = ["chapter"]

chapter = Chapter("Moves")
IDEMPOTENT = {"enable_idempotence": "true"}


def at_node(number: int) -> Any:
    """Return a condition: the request arrived at a node."""
    return lambda exchange: exchange.node == number


@chapter.scenario("MOVE-001", "Errors: NOT_LEADER_OR_FOLLOWER", nodes=3)
def producing(s: Stage) -> Steps:
    """A producer follows the leader.

    When the first Produce request arrives at node 1, node 2 becomes the leader, in the next leader epoch.
    The client asks for metadata and writes the batch at node 2.
    """
    topic = s.topic()
    spread = [{**each, "wait_ms": 30} for each in records(6)]
    s.script.add("Produce", times=1, then=lambda _: s.front.placement.move(topic, 0, 2))
    out = yield produce(topic, spread, **IDEMPOTENT)
    written_once(s, out, topic, 6)
    expect(s.exchanges("Produce", at_node(2)), "nothing was written at the new leader")


@chapter.scenario("MOVE-002", "Errors: NOT_LEADER_OR_FOLLOWER", nodes=3)
def consuming(s: Stage) -> Steps:
    """A consumer follows the leader.

    When the second Fetch arrives at node 1, node 3 becomes the leader.
    """
    topic = stored(s, 2, 2, 2)
    first_batch_only(s)
    s.script.add("Fetch", after=1, times=1, then=lambda _: s.front.placement.move(topic, 0, 3))
    out = yield consume(topic, 6)
    consumed(out, numbered(6))
    expect(s.exchanges("Fetch", at_node(3)), "nothing was read at the new leader")


@chapter.scenario("MOVE-003", "Errors: LEADER_NOT_AVAILABLE", nodes=3)
def no_leader(s: Stage) -> Steps:
    """A partition without a leader is waited for.

    Metadata has no leader three times; then node 2 is the leader.
    """
    topic = s.topic()
    placement = s.front.placement
    placement.leaders[topic, 0] = -1
    s.script.add("Metadata", after=3, times=1, then=lambda _: placement.move(topic, 0, 2))
    out = yield produce(topic, records(3), **IDEMPOTENT)
    written_once(s, out, topic, 3)


@chapter.scenario("MOVE-004", "KIP-320: Metadata.updateLastSeenEpochIfNewer", nodes=3)
def stale_metadata(s: Stage) -> Steps:
    """Metadata with an older leader epoch does not lead back for long.

    After a move to node 2, one Metadata response still has node 1 with the former epoch.
    """
    topic = stored(s, 2, 2, 2)
    first_batch_only(s)
    s.script.add("Fetch", after=1, times=1, then=lambda _: s.front.placement.move(topic, 0, 2))

    def stale(exchange: Exchange, body: Any) -> None:
        for each in body.topics:
            for part in each.partitions:
                part.leader_id, part.leader_epoch = 1, 0

    moved = lambda exchange: s.front.placement.leader(topic, 0) == 2  # noqa: E731
    s.script.change("Metadata", stale, times=1, when=moved)
    out = yield consume(topic, 6)
    consumed(out, numbered(6))


@chapter.scenario("MOVE-005", "KIP-320", nodes=3)
def several_moves(s: Stage) -> Steps:
    """A leader that moves again and again is followed.

    Six times, the leader moves to the next node when a Produce request arrives at it.
    """
    topic = s.topic()
    placement = s.front.placement
    s.script.add("Produce", times=6, then=lambda each: placement.move(topic, 0, each.node % 3 + 1))
    spread = [{**each, "wait_ms": 20} for each in records(10)]
    out = yield produce(topic, spread, **IDEMPOTENT)
    written_once(s, out, topic, 10)


@chapter.scenario("MOVE-006", "KIP-320; OffsetForLeaderEpoch", nodes=3)
def truncated(s: Stage) -> Steps:
    """A log that was truncated after a change of leaders is noticed.

    The client has read to offset 6 in leader epoch 0. Node 2 becomes the leader in epoch 1, in whose log epoch 0 ends
    at offset 4; offsets 4 to 7 have other records now.
    The client asks for the end of its epoch, and reads on from offset 4, or reports the truncation.
    """
    topic = s.topic()
    first = [batch(f"v{each}".encode(), base_offset=each, partition_leader_epoch=0) for each in range(6)]
    after = [batch(f"n{each}".encode(), base_offset=each, partition_leader_epoch=1) for each in range(4, 8)]
    log = ScriptedLog(*first)
    log.play(s.script)
    s.front.placement.epochs[topic, 0] = 0

    def move(_: object) -> None:
        changed = ScriptedLog(*first[:4], *after)
        log.batches, log.end, log.epoch_ends = changed.batches, changed.end, {0: 4, 1: 8}
        s.front.placement.move(topic, 0, 2)

    def ends(exchange: Exchange) -> bool:
        return any(each.fetch_offset == 6 for part in exchange.body.topics for each in part.partitions)

    s.script.add("Fetch", times=1, when=ends, then=move)
    out = yield consume(topic, 10)
    if not out.told or out.received[6:]:
        values = [line["value"] for line in out.received]
        skipped = values[6:] == ["n6", "n7"]
        expect(not skipped, "offsets 4 and 5 were skipped silently: their new records were never delivered")
        wanted = [f"v{each}" for each in range(6)] + [f"n{each}" for each in range(4, 8)]
        expect(values == wanted, f"values {values} instead of {wanted}")


@chapter.scenario("MOVE-007", "NetworkClient", nodes=3)
def dead_leader(s: Stage) -> Steps:
    """A leader that dies is replaced.

    Node 2 is the leader. At the first Produce request it goes down, and node 3 is the leader.
    """
    topic = s.topic()
    placement = s.front.placement
    placement.move(topic, 0, 2)

    def die(_: object) -> None:
        placement.move(topic, 0, 3)
        placement.gone.add(2)
        s.front.stop_node(2)

    s.script.add("Produce", node=2, times=1, then=die)
    spread = [{**each, "wait_ms": 30} for each in records(6)]
    out = yield produce(topic, spread, **IDEMPOTENT)
    written_once(s, out, topic, 6)


@chapter.scenario("MOVE-008", "NetworkClient", nodes=3)
def dead_bootstrap(s: Stage) -> Steps:
    """The broker of bootstrap.servers may go once others are known.

    Node 2 is the leader; node 1, the only address that the client was given, goes down at the first Fetch. Then the
    leader moves to node 3.
    """
    topic = stored(s, 2, 2, 2)
    first_batch_only(s)
    placement = s.front.placement
    placement.move(topic, 0, 2)

    def die(_: object) -> None:
        placement.gone.add(1)
        s.front.stop_node(1)

    s.script.add("Fetch", times=1, then=die)
    s.script.add("Fetch", after=1, times=1, then=lambda _: placement.move(topic, 0, 3))
    out = yield consume(topic, 6)
    consumed(out, numbered(6))


@chapter.scenario("MOVE-009", "Metadata", nodes=3)
def spread_partitions(s: Stage) -> Steps:
    """Every partition is written at its own leader.

    Six partitions have their leaders on three nodes.
    """
    topic = s.topic(partitions=6)
    for partition in range(6):
        s.front.placement.leaders[topic, partition] = partition % 3 + 1
    out = yield produce(topic, [record for each in range(6) for record in records(2, each)], **IDEMPOTENT)
    for partition in range(6):
        expect(s.log(topic, partition) == ["v0", "v1"], f"partition {partition} has {s.log(topic, partition)}")
    expect(len(out.acked) == 12, f"{len(out.acked)} of 12 records are acknowledged: {out.complaints[:1]}")
    wrong = [each for each in s.exchanges("Produce") if _errors(each)]
    expect(not wrong, "a request for a partition went to another node than its leader")


def _errors(exchange: Exchange) -> list[int]:
    parts = [part for topic in exchange.response.responses for part in topic.partition_responses]
    return [part.error_code for part in parts if part.error_code]


@chapter.scenario("MOVE-010", "Errors: NOT_COORDINATOR", nodes=3)
def coordinator_of_group(s: Stage) -> Steps:
    """A group member follows its coordinator.

    After the group was joined, node 2 becomes its coordinator; node 1 responds NOT_COORDINATOR.
    The client finds node 2, and commits there.
    """
    topic = stored(s, 3)

    def move(_: object) -> None:
        s.front.placement.coordinator = 2

    s.script.add("OffsetCommit", times=1, then=move)
    out = yield consume(topic, 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")
    expect(s.exchanges("OffsetCommit", at_node(2)), "no commit at the new coordinator")


@chapter.scenario("MOVE-011", "Errors: NOT_COORDINATOR", nodes=3)
def coordinator_of_transaction(s: Stage) -> Steps:
    """A transactional producer follows its coordinator.

    Before EndTxn, node 3 becomes the coordinator; node 1 responds NOT_COORDINATOR.
    """
    topic = s.topic()

    def move(_: object) -> None:
        s.front.placement.coordinator = 3

    s.script.add("EndTxn", times=1, then=move)
    out = yield transact(topic, s.name("txn"), [transaction(records(3))])
    expect(out.ended == ["commit"], f"the transaction was not committed: {out.complaints[:1]}")
    written_once(s, out, topic, 3)
    expect(s.exchanges("EndTxn", at_node(3)), "no EndTxn at the new coordinator")


@chapter.scenario("MOVE-012", "NetworkClient", nodes=3)
def dead_coordinator(s: Stage) -> Steps:
    """A coordinator that dies is looked for again.

    Node 2 is the coordinator, and goes down when the offset is committed; node 3 is the coordinator then.
    """
    topic = stored(s, 3)
    placement = s.front.placement
    placement.coordinator = 2

    def die(_: object) -> None:
        placement.coordinator = 3
        placement.gone.add(2)
        s.front.stop_node(2)

    s.script.add("OffsetCommit", node=2, times=1, then=die)
    out = yield consume(topic, 3, group=s.name("group"), commit=True)
    consumed(out, numbered(3))
    expect(out.committed, f"the offset was not committed: {out.complaints[:1]}")


@chapter.scenario("MOVE-013", "KIP-320: FENCED_LEADER_EPOCH", nodes=3)
def epochs_sent(s: Stage) -> Steps:
    """A consumer says which leader epoch it knows.

    Metadata has leader epoch 1 for the partition; Fetch 9 and later carry the epoch of the client.
    """
    topic = stored(s, 3)
    s.front.placement.move(topic, 0, 1)
    out = yield consume(topic, 3)
    consumed(out, numbered(3))
    sent = s.exchanges("Fetch", lambda each: each.version >= 9 and bool(each.body.topics))
    epochs = {part.current_leader_epoch for each in sent for asked in each.body.topics for part in asked.partitions}
    expect(sent, "the client uses Fetch 8 or older", Verdict.UNSUPPORTED)
    expect(epochs == {1}, "Fetch has no leader epoch, so that a stale leader is not noticed", Verdict.DEVIATION)
