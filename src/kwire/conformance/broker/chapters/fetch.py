"""Fetch: waiting, limits, positions, sessions, epochs, and the records of every version."""

from __future__ import annotations

import time
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.chapters.data import WAIT_MS, batch, fetch, fetch_fields, fetched, produce
from kwire.conformance.broker.chapters.tables import api_versions, released
from kwire.conformance.broker.checks import BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import error_name, request

__all__ = ["chapter"]

chapter = Chapter("Fetch")
USES = {"Fetch": 4, "Produce": -1, "Topics": -1}
SESSION = {**USES, "Fetch": 7}


@chapter.check("FETCH-001", "FetchRequest", uses=USES)
def empty_log(bench: Bench) -> Any:
    """An empty log has positions and no records.

    Fetch from offset 0 of a new topic.
    There is no error, and all positions are 0.
    """
    return fetched(fetch(bench, bench.topic()))


@chapter.check("FETCH-002", "FetchRequest", uses=USES)
def beyond_the_end(bench: Bench) -> Any:
    """An offset above the end of the log is out of range.

    Produce one record, and fetch from the offsets 1 and 2.
    Offset 1 is the end and has no error; offset 2 has OFFSET_OUT_OF_RANGE.
    """
    topic = bench.topic()
    produce(bench, topic, batch())
    return {"at the end": fetched(fetch(bench, topic, 1)), "after it": fetched(fetch(bench, topic, 2))}


@chapter.check("FETCH-003", "FetchRequest", uses=USES)
def negative_offset(bench: Bench) -> Any:
    """A negative offset is out of range.

    Fetch from offset -1.
    The error is OFFSET_OUT_OF_RANGE.
    """
    return fetched(fetch(bench, bench.topic(), -1))


@chapter.check("FETCH-004", "DelayedFetch", uses=USES)
def waits(bench: Bench) -> Any:
    """A Fetch waits for min_bytes, until max_wait_ms.

    Fetch from an empty log with min_bytes=1 and max_wait_ms=1000.
    The response arrives after more than 800 ms, without records.
    """
    topic = bench.topic()
    began = time.monotonic()
    part = fetch(bench, topic, min_bytes=1, max_wait_ms=1000)
    return {"waited": time.monotonic() - began >= 0.8, **fetched(part)}


@chapter.check("FETCH-005", "DelayedFetch", uses=USES)
def does_not_wait(bench: Bench) -> Any:
    """A Fetch with min_bytes=0 does not wait.

    Fetch from an empty log with min_bytes=0 and max_wait_ms=5,000.
    The response arrives at once.
    """
    topic = bench.topic()
    began = time.monotonic()
    fetch(bench, topic, max_wait_ms=5000)
    return {"waited": time.monotonic() - began >= 3}


@chapter.check("FETCH-006", "DelayedFetch", uses=USES)
def woken(bench: Bench) -> Any:
    """A waiting Fetch has its response as soon as records arrive.

    Fetch from an empty log with min_bytes=1 and max_wait_ms=8,000; then produce on another connection.
    The response has the record, long before 8 s.
    """
    topic = bench.topic()
    waiting = bench.connect(topic.leader)
    version = bench.best("Fetch")
    fields = fetch_fields(topic, min_bytes=1, max_wait_ms=8000)
    began = time.monotonic()
    waiting.send(request("Fetch", version, **fields), version)
    silent = waiting.is_silent(0.1)
    produce(bench, topic, batch(b"late"))
    part = waiting.receive().responses[0].partitions[0]
    return {"silent before": silent, "in time": time.monotonic() - began < 6, "batches": fetched(part)["batches"]}


@chapter.check("FETCH-007", "DelayedFetch", uses=USES)
def min_bytes_above(bench: Bench) -> Any:
    """Less than min_bytes is sent only after max_wait_ms.

    Produce a record, and fetch it with min_bytes=100,000 and max_wait_ms=1000.
    The response has the record after more than 800 ms.
    """
    topic = bench.topic()
    produce(bench, topic, batch())
    began = time.monotonic()
    part = fetch(bench, topic, min_bytes=100_000, max_wait_ms=1000)
    return {"waited": time.monotonic() - began >= 0.8, **fetched(part)}


@chapter.check("FETCH-008", "KIP-74", uses=USES)
def one_batch_at_least(bench: Bench) -> Any:
    """The first batch is sent whole, though it is above both limits.

    Produce two batches of 3,000 bytes, and fetch with max_bytes=1 and partition_max_bytes=1.
    The first batch arrives, and not the second.
    """
    topic = bench.topic()
    for _ in range(2):
        produce(bench, topic, batch(bytes(3000)))
    return fetched(fetch(bench, topic, max_bytes=1, partition_max_bytes=1))


@chapter.check("FETCH-009", "KIP-74", uses=USES)
def partition_limit(bench: Bench) -> Any:
    """partition_max_bytes limits what is sent of a partition.

    Produce three batches of 1,000 bytes, and fetch with partition_max_bytes=2,500.
    At most 2,500 bytes arrive, with two whole batches.
    """
    topic = bench.topic()
    for _ in range(3):
        produce(bench, topic, batch(bytes(1000)))
    part = fetch(bench, topic, partition_max_bytes=2500)
    return {"within": len(part.records) <= 2500, "whole batches": len(fetched(part)["batches"])}


@chapter.check("FETCH-010", "KIP-74", uses=USES)
def request_limit(bench: Bench) -> Any:
    """max_bytes limits what is sent of all partitions, in the order of the request.

    Produce 3,000 bytes to two partitions, and fetch both with max_bytes=1,000.
    The first partition has its batch, the second none; both have their positions.
    """
    topic = bench.topic(partitions=2)
    for partition in (0, 1):
        produce(bench, topic, batch(bytes(3000)), partition=partition)
    parts = [{"partition": each, "partition_max_bytes": 1 << 20} for each in (0, 1)]
    topics = [{"topic": topic.name, "topic_id": topic.topic_id, "partitions": parts}]
    body = bench.ask("Fetch", at=topic.leader, max_wait_ms=WAIT_MS, max_bytes=1000, topics=topics)
    found = sorted(body.responses[0].partitions, key=lambda each: each.partition_index)
    return {
        "batches": [len(fetched(each)["batches"]) for each in found],
        "ends": [each.high_watermark for each in found],
    }


@chapter.check("FETCH-011", "FetchRequest", uses=USES)
def inside_a_batch(bench: Bench) -> Any:
    """A Fetch from inside a batch has the whole batch.

    Produce three records in one batch, and fetch from offset 2.
    The batch begins at offset 0.
    """
    topic = bench.topic()
    produce(bench, topic, batch(b"a", b"b", b"c"))
    return fetched(fetch(bench, topic, 2))


@chapter.check("FETCH-012", "FetchRequest", uses={**USES, "DeleteRecords": -1})
def before_the_start(bench: Bench) -> Any:
    """An offset below the log start offset is out of range.

    Produce three records, delete those before offset 2, and fetch from the offsets 1 and 2.
    Offset 1 has OFFSET_OUT_OF_RANGE; offset 2 has a record, and the log start offset is 2.
    """
    topic = bench.topic()
    for value in (b"a", b"b", b"c"):
        produce(bench, topic, batch(value))
    asked = [{"name": topic.name, "partitions": [{"partition_index": 0, "offset": 2}]}]
    bench.ask("DeleteRecords", at=topic.leader, topics=asked, timeout_ms=5000)
    return {"before": fetched(fetch(bench, topic, 1)), "at": fetched(fetch(bench, topic, 2))}


@chapter.check("FETCH-013", "KIP-320", uses={**USES, "Fetch": 9})
def future_leader_epoch(bench: Bench) -> Any:
    """A leader epoch above that of the broker is unknown.

    Fetch with current_leader_epoch 0, then with 5.
    The second has UNKNOWN_LEADER_EPOCH.
    """
    topic = bench.topic()
    parts = [fetch(bench, topic, current_leader_epoch=epoch) for epoch in (0, 5)]
    return {"errors": [error_name(each.error_code) for each in parts]}


@chapter.check("FETCH-014", "KIP-595; FetchRequest", uses={**USES, "Fetch": 12})
def diverging_epoch(bench: Bench) -> Any:
    """A last fetched epoch that the log does not have gives the epoch where logs diverge.

    Produce a record, and fetch from offset 1 with last_fetched_epoch 0 and from offset 0 with 3.
    The first has no diverging epoch; the second is answered as in the release.
    """
    topic = bench.topic()
    produce(bench, topic, batch())
    parts = [fetch(bench, topic, offset, last_fetched_epoch=epoch) for offset, epoch in ((1, 0), (1, 3))]
    return {
        "errors": [error_name(each.error_code) for each in parts],
        "diverging": [[each.diverging_epoch.epoch, each.diverging_epoch.end_offset] for each in parts],
    }


@chapter.check("FETCH-015", "KIP-392", uses={**USES, "Fetch": 11})
def preferred_replica(bench: Bench) -> Any:
    """Without a replica selector there is no preferred read replica.

    Fetch with a rack id.
    preferred_read_replica is -1.
    """
    return {"preferred": fetch(bench, bench.topic(), rack_id="rack-1").preferred_read_replica}


@chapter.check("FETCH-016", "FetchRequest", uses=USES)
def read_committed(bench: Bench) -> Any:
    """Without transactions, read_committed reads what read_uncommitted reads.

    Produce a record, and fetch it with isolation_level 1.
    The record arrives, and the list of aborted transactions is empty.
    """
    topic = bench.topic()
    produce(bench, topic, batch())
    part = fetch(bench, topic, isolation_level=1)
    return {**fetched(part), "aborted": len(part.aborted_transactions or ())}


def _session(bench: Bench, topics: list[Any], at: Any, **fields: Any) -> Any:
    return bench.ask("Fetch", at=at, max_wait_ms=WAIT_MS, min_bytes=0, topics=topics, **fields)


@chapter.check("FETCH-017", "KIP-227", uses=SESSION)
def session_created(bench: Bench) -> Any:
    """A full Fetch with epoch 0 creates a session; an incremental one has only what changed.

    Fetch with session epoch 0, then with epoch 1 and no topics; produce a record, and fetch with epoch 2.
    The first creates a session, the second has no partitions, the third has the record.
    """
    topic = bench.topic()
    topics = fetch_fields(topic)["topics"]
    first = _session(bench, topics, topic.leader, session_epoch=0)
    second = _session(bench, [], topic.leader, session_id=first.session_id, session_epoch=1)
    produce(bench, topic, batch(b"new"))
    third = _session(bench, [], topic.leader, session_id=first.session_id, session_epoch=2)
    return {
        "created": first.session_id != 0,
        "same": [second.session_id == first.session_id, third.session_id == first.session_id],
        "partitions": [sum(len(each.partitions) for each in body.responses) for body in (first, second, third)],
        "batches": fetched(third.responses[0].partitions[0])["batches"],
    }


@chapter.check("FETCH-018", "KIP-227", uses=SESSION)
def session_unknown(bench: Bench) -> Any:
    """An unknown session is refused as a whole.

    Fetch with the session id 123456 and epoch 1.
    The error is FETCH_SESSION_ID_NOT_FOUND, without topics.
    """
    body = _session(bench, [], None, session_id=123456, session_epoch=1)
    return {"error": error_name(body.error_code), "topics": len(body.responses)}


@chapter.check("FETCH-019", "KIP-227", uses=SESSION)
def session_epoch(bench: Bench) -> Any:
    """A session refuses an epoch that is not the next.

    Create a session, and fetch with epoch 5.
    The error is INVALID_FETCH_SESSION_EPOCH.
    """
    topic = bench.topic()
    first = _session(bench, fetch_fields(topic)["topics"], topic.leader, session_epoch=0)
    body = _session(bench, [], topic.leader, session_id=first.session_id, session_epoch=5)
    return {"error": error_name(body.error_code), "topics": len(body.responses)}


@chapter.check("FETCH-020", "KIP-227", uses=SESSION)
def session_forgets(bench: Bench) -> Any:
    """A session forgets partitions.

    Create a session with a partition, fetch with it in forgotten_topics_data, produce, and fetch again.
    The record does not arrive.
    """
    topic = bench.topic()
    first = _session(bench, fetch_fields(topic)["topics"], topic.leader, session_epoch=0)
    gone = [{"topic": topic.name, "topic_id": topic.topic_id, "partitions": [0]}]
    session: dict[str, Any] = {"session_id": first.session_id}
    _session(bench, [], topic.leader, **session, session_epoch=1, forgotten_topics_data=gone)
    produce(bench, topic, batch())
    body = _session(bench, [], topic.leader, **session, session_epoch=2)
    return {"error": error_name(body.error_code), "topics": len(body.responses)}


@chapter.check("FETCH-021", "KIP-227", uses=SESSION)
def session_closed(bench: Bench) -> Any:
    """A Fetch with epoch -1 closes its session.

    Create a session, fetch with its id and epoch -1, then use the session.
    The second response has session id 0, the third FETCH_SESSION_ID_NOT_FOUND.
    """
    topic = bench.topic()
    topics = fetch_fields(topic)["topics"]
    first = _session(bench, topics, topic.leader, session_epoch=0)
    second = _session(bench, topics, topic.leader, session_id=first.session_id, session_epoch=-1)
    third = _session(bench, [], topic.leader, session_id=first.session_id, session_epoch=1)
    return {"second": second.session_id, "third": error_name(third.error_code)}


@chapter.check("FETCH-022", "FetchRequest", uses=USES)
def unknown_partition(bench: Bench) -> Any:
    """A partition that does not exist fails alone.

    Fetch the partitions 0 and 9 of a topic with one partition.
    The first has positions, the second UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = bench.topic()
    parts = [{"partition": each, "partition_max_bytes": 1000} for each in (0, 9)]
    topics = [{"topic": topic.name, "topic_id": topic.topic_id, "partitions": parts}]
    body = bench.ask("Fetch", at=topic.leader, max_wait_ms=WAIT_MS, topics=topics)
    found = sorted(body.responses[0].partitions, key=lambda each: each.partition_index)
    return {"errors": [error_name(each.error_code) for each in found]}


@chapter.check("FETCH-023", "DelayedFetch", uses=USES)
def without_waiting(bench: Bench) -> Any:
    """A Fetch with max_wait_ms=0 reads the log.

    Produce a record, and fetch it with max_wait_ms=0 and min_bytes=1.
    The response has the record.
    """
    topic = bench.topic()
    produce(bench, topic, batch())
    return fetched(fetch(bench, topic, max_wait_ms=0, min_bytes=1))


def _working(version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        topic = bench.topic()
        produce(bench, topic, batch(b"one", b"two"))
        produce(bench, topic, batch(b"three", compression="gzip"))
        part = fetch(bench, topic, version=version)
        return {**fetched(part), "aborted": len(part.aborted_transactions or ())}

    return observe


for _version in api_versions("Fetch"):
    chapter.add(
        BrokerCheck(
            id=f"FETCH-V{_version:02}",
            chapter=chapter.name,
            title=f"Fetch {_version} of two batches",
            source="FetchResponse",
            steps=(
                "Produce two batches, one of them compressed.",
                f"Fetch them with Fetch {_version}.",
                "Positions, magics, codecs, offsets and values are those of the release.",
            ),
            observe=_working(_version),
            uses={"Fetch": _version, "Produce": -1, "Topics": -1},
            **released("Fetch", _version),
        )
    )
