"""Produce: batches, acknowledgements, retries, sequences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kwire.conformance.check import Verdict
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import (
    acknowledged,
    batches_sent,
    obeyed_throttle,
    records,
    reported,
    retried,
    spaced,
    told_or,
    written_once,
)
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.script import Delivery, failed
from kwire.conformance.client.stage import Stage, text
from kwire.conformance.client.task import produce
from kwire.protocol.error_codes import ErrorCode

__all__ = ["chapter"]

chapter = Chapter("Producer")
FIRST_PAUSE_MS = 1000
IDEMPOTENT = {"enable_idempotence": "true", "max_in_flight_requests_per_connection": "5"}
ORDERED = {"enable_idempotence": "false", "max_in_flight_requests_per_connection": "1"}


def spread(count: int, wait_ms: int) -> list[dict[str, Any]]:
    """Return records with a pause before each, so that they are in several batches.

    The pause after the first is longer: by then, the client has the leader and its producer id.
    """
    return [{**each, "wait_ms": FIRST_PAUSE_MS if i == 1 else wait_ms} for i, each in enumerate(records(count))]


@chapter.scenario("PRODUCER-001", "KIP-98")
def plain(s: Stage) -> Steps:
    """Records are written and acknowledged.

    Produce ten records without idempotence.
    Each is acknowledged with its offset, and in the log once, in order.
    """
    topic = s.topic()
    out = yield produce(topic, records(10), **ORDERED)
    written_once(s, out, topic, 10)


@chapter.scenario("PRODUCER-002", "KIP-98")
def idempotent(s: Stage) -> Steps:
    """An idempotent producer numbers its batches.

    Produce ten records with idempotence, in several batches.
    Batches have a producer id, and sequences that follow each other from 0.
    """
    topic = s.topic()
    out = yield produce(topic, spread(10, 20), **IDEMPOTENT)
    written_once(s, out, topic, 10)
    expect(s.exchanges("InitProducerId"), "no InitProducerId request, so the producer is not idempotent")
    batches_sent(s, 2)


@chapter.scenario("PRODUCER-003", "KIP-98")
def lost_response(s: Stage) -> Steps:
    """A lost response does not double records.

    The broker writes the first batch and closes the connection instead of responding.
    The idempotent producer sends the batch again with the same sequence, and reports its offset.
    """
    topic = s.topic()
    s.script.lose("Produce")
    out = yield produce(topic, records(5), **IDEMPOTENT)
    written_once(s, out, topic, 5)
    retried(s, "Produce")


@chapter.scenario("PRODUCER-004", "KIP-98; ProduceResponse")
def lost_without_idempotence(s: Stage) -> Steps:
    """A lost response does not lose records without idempotence.

    The broker writes the first batch and closes the connection instead of responding.
    The producer sends the batch again; what was written may be there twice.
    """
    topic = s.topic()
    s.script.lose("Produce")
    out = yield produce(topic, records(5), **ORDERED)
    written_once(s, out, topic, 5, may_double=True)
    retried(s, "Produce")


@chapter.scenario("PRODUCER-005", "KIP-98; Errors")
def closed(s: Stage) -> Steps:
    """A closed connection is opened again.

    The broker closes the connection twice when a Produce request arrives, without handling it.
    All records are written in the end.
    """
    topic = s.topic()
    s.script.close("Produce", times=2)
    out = yield produce(topic, records(5), **IDEMPOTENT)
    written_once(s, out, topic, 5)


@chapter.scenario("PRODUCER-006", "KIP-91")
def silent(s: Stage) -> Steps:
    """A silent broker is given up after the request timeout.

    The broker does not respond to the first Produce request.
    After request.timeout.ms, 3 s, the producer sends the batch again on another connection.
    """
    topic = s.topic()
    s.script.silence("Produce")
    out = yield produce(topic, records(3), **IDEMPOTENT)
    written_once(s, out, topic, 3)
    retried(s, "Produce")


@chapter.scenario("PRODUCER-007", "KIP-91")
def always_silent(s: Stage) -> Steps:
    """A broker that never responds is reported after the delivery timeout.

    The broker responds to no Produce request; delivery.timeout.ms is 3 s, request.timeout.ms 1 s.
    The application gets an error for each record.
    """
    topic = s.topic()
    s.script.silence("Produce", times=None)
    out = yield produce(topic, records(2), **ORDERED, delivery_timeout_ms="3000", request_timeout_ms="1000")
    expect(not out.acked, "a record is acknowledged that no broker has")
    reported(out, "the timeout")


@chapter.scenario("PRODUCER-008", "ProduceRequest: acks=0")
def no_acks(s: Stage) -> Steps:
    """With acks=0 no response is awaited.

    Produce five records with acks=0, to which the broker does not respond.
    The program ends, and the records are in the log.
    """
    topic = s.topic()
    out = yield produce(topic, records(5), acks="0", enable_idempotence="false")
    acknowledged(out, 5)
    s.settle(topic, 5)
    expect(s.log(topic) == [f"v{i}" for i in range(5)], f"the log has {s.log(topic)}")


@chapter.scenario("PRODUCER-009", "KIP-219")
def throttled(s: Stage) -> Steps:
    """A throttle time is obeyed.

    Responses to Produce have a throttle time of 500 ms, and the broker does not delay them.
    Nothing arrives on the connection until the time is over.
    """
    topic = s.topic()
    s.script.throttle("Produce", 500, times=2)
    out = yield produce(topic, spread(4, 100), **ORDERED)
    written_once(s, out, topic, 4)
    obeyed_throttle(s, "Produce", 500)


@chapter.scenario("PRODUCER-010", "KIP-98; ProducerStateManager")
def duplicate(s: Stage) -> Steps:
    """DUPLICATE_SEQUENCE_NUMBER means that the batch is written.

    The broker writes the first batch, and responds DUPLICATE_SEQUENCE_NUMBER.
    The records are acknowledged, and not written again.
    """
    topic = s.topic()

    def change(exchange: Exchange, body: Any) -> None:
        for each in body.responses[0].partition_responses:
            each.error_code, each.base_offset = 46, -1

    s.script.change("Produce", change, times=1)
    out = yield produce(topic, records(3), **IDEMPOTENT)
    acknowledged(out, 3)
    expect(s.log(topic) == ["v0", "v1", "v2"], f"the log has {s.log(topic)}")


@chapter.scenario("PRODUCER-011", "KIP-98: OUT_OF_ORDER_SEQUENCE_NUMBER")
def in_flight(s: Stage) -> Steps:
    """Batches in flight keep their order when one fails.

    The second batch gets NOT_ENOUGH_REPLICAS after 200 ms, while more batches are under way: the broker refuses those
    with OUT_OF_ORDER_SEQUENCE_NUMBER.
    All are written in order in the end, each once.
    """
    topic = s.topic()
    s.script.fail("Produce", "NOT_ENOUGH_REPLICAS", after=1, delivery=Delivery(delay_s=0.2))
    out = yield produce(topic, spread(8, 20), **IDEMPOTENT)
    written_once(s, out, topic, 8)
    batches_sent(s, 3)
    _, failed, *later = s.exchanges("Produce")
    crossed = [each for each in later if failed.answered_at is None or each.at < failed.answered_at]
    expect(crossed, "the client has one batch of a partition in flight", Verdict.NOT_APPLICABLE)


@chapter.scenario("PRODUCER-012", "KIP-360: UNKNOWN_PRODUCER_ID")
def unknown_producer(s: Stage) -> Steps:
    """A broker that has forgotten the producer gets its batches in the end, or the application gets an error.

    The third Produce request gets UNKNOWN_PRODUCER_ID, as when the state of the producer has expired.
    """
    topic = s.topic()
    s.script.fail("Produce", "UNKNOWN_PRODUCER_ID", after=2)
    out = yield produce(topic, spread(5, 40), **IDEMPOTENT)
    batches_sent(s, 3)
    told_or(out, lambda: written_once(s, out, topic, 5))


@chapter.scenario("PRODUCER-013", "KIP-98: INVALID_PRODUCER_EPOCH")
def fenced(s: Stage) -> Steps:
    """An idempotent producer with a fenced epoch gets a new one, or the application gets an error.

    The second Produce request gets INVALID_PRODUCER_EPOCH.
    """
    topic = s.topic()
    s.script.fail("Produce", "INVALID_PRODUCER_EPOCH", after=1)
    out = yield produce(topic, spread(4, 40), **IDEMPOTENT)
    batches_sent(s, 2)
    told_or(out, lambda: written_once(s, out, topic, 4))


@chapter.scenario("PRODUCER-014", "KIP-98: OUT_OF_ORDER_SEQUENCE_NUMBER")
def out_of_order(s: Stage) -> Steps:
    """A gap in sequences is never passed silently.

    The second Produce request gets OUT_OF_ORDER_SEQUENCE_NUMBER, though nothing is missing.
    The records are written once, in order, or the application gets an error.
    """
    topic = s.topic()
    s.script.fail("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", after=1)
    out = yield produce(topic, spread(4, 40), **IDEMPOTENT)
    batches_sent(s, 2)
    told_or(out, lambda: written_once(s, out, topic, 4))
    log = s.log(topic)
    expect(len(log) == len(set(log)), f"records are doubled: {log}")


@chapter.scenario("PRODUCER-015", "max.request.size")
def big(s: Stage) -> Steps:
    """A record of 2 MB is written whole.

    max.request.size and the topic's max.message.bytes are 4 MB.
    """
    topic = s.topic(max_message_bytes=4 << 20)
    large = {"partition": 0, "key": "k0", "value": "v", "repeat": 2_000_000}
    out = yield produce(topic, [large], max_request_size=str(4 << 20), enable_idempotence="false")
    acknowledged(out, 1)
    expect([len(value or "") for value in s.log(topic)] == [2_000_000], "the value in the log has another size")


@chapter.scenario("PRODUCER-016", "KIP-82; Record")
def contents(s: Stage) -> Steps:
    """Keys, values and headers arrive unchanged.

    Records have null and empty keys and values, and headers with doubles and nulls.
    """
    topic = s.topic()
    headers = [["a", "1"], ["b", None], ["a", "2"]]
    sent: list[dict[str, Any]] = [
        {"partition": 0, "key": None, "value": "v0"},
        {"partition": 0, "key": "k", "value": None},
        {"partition": 0, "key": "", "value": ""},
        {"partition": 0, "key": "k", "value": "v3", "headers": headers},
    ]
    out = yield produce(topic, sent, **ORDERED)
    acknowledged(out, 4)
    found = s.records(topic)
    written = [(text(each.key), text(each.value)) for each in found]
    expect(written == [(each["key"], each["value"]) for each in sent], f"keys and values are {written}")
    kept = [[key, text(value)] for key, value in found[3].headers]
    expect(kept == headers, f"headers are {kept} instead of {headers}")


@chapter.scenario("PRODUCER-017", "ProduceRequest")
def many_partitions(s: Stage) -> Steps:
    """Fifty partitions are written together.

    Each gets three records; order is kept in each partition.
    """
    topic = s.topic(partitions=50)
    out = yield produce(topic, [{**records(3, p)[i]} for i in range(3) for p in range(50)], **IDEMPOTENT)
    expect(len(out.acked) == 150, f"{len(out.acked)} of 150 records are acknowledged: {out.complaints[:1]}")
    wrong = [each for each in range(50) if s.log(topic, each) != ["v0", "v1", "v2"]]
    expect(not wrong, f"partitions with other records: {wrong[:5]}")


@chapter.scenario("PRODUCER-018", "NetworkClient")
def slow_bytes(s: Stage) -> Steps:
    """A response that arrives in small pieces is one response.

    Produce responses arrive three bytes at a time.
    """
    topic = s.topic()
    s.script.trickle("Produce", 3, 0.002, times=2)
    out = yield produce(topic, spread(3, 20), **IDEMPOTENT)
    written_once(s, out, topic, 3)


@chapter.scenario("PRODUCER-019", "NetworkClient")
def cut_response(s: Stage) -> Steps:
    """A cut response does not acknowledge records.

    The connection ends in the middle of the first Produce response.
    """
    topic = s.topic()
    s.script.add("Produce", times=1, delivery=Delivery(cut_bytes=10))
    out = yield produce(topic, records(3), **IDEMPOTENT)
    written_once(s, out, topic, 3)


@chapter.scenario("PRODUCER-020", "NetworkClient.correlate")
def wrong_correlation(s: Stage) -> Steps:
    """A response with another correlation id does not acknowledge records.

    The first Produce request is not handled, and gets a response with another correlation id.
    """
    topic = s.topic()
    s.script.add(
        "Produce",
        times=1,
        unhandled=True,
        reply=lambda exchange: failed(exchange, ErrorCode.NONE),
        encoded=lambda data: data[:4] + b"\x7f\x00\x00\x01" + data[8:],
    )
    out = yield produce(topic, records(3), **IDEMPOTENT)
    told_or(out, lambda: written_once(s, out, topic, 3))


@chapter.scenario("PRODUCER-021", "KIP-32; ProduceResponse.logAppendTimeMs")
def log_append_time(s: Stage) -> Steps:
    """A topic with LogAppendTime is written as any other.

    message.timestamp.type is LogAppendTime, so that responses have a time.
    """
    topic = s.topic(message_timestamp_type="LogAppendTime")
    out = yield produce(topic, records(3), **IDEMPOTENT)
    written_once(s, out, topic, 3)


@chapter.scenario("PRODUCER-022", "KIP-467")
def record_errors(s: Stage) -> Steps:
    """A refused record is reported.

    The topic is compacted, and a record has no key: the broker refuses the batch with INVALID_RECORD.
    """
    topic = s.topic(cleanup_policy="compact")
    out = yield produce(topic, [{"partition": 0, "key": None, "value": "v0"}], **ORDERED)
    expect(not out.acked, "the record is acknowledged")
    reported(out, "the refused record")


@chapter.scenario("PRODUCER-023", "request.timeout.ms")
def late_response(s: Stage) -> Steps:
    """A late response is still a response.

    The broker takes 1 s for the first Produce request, a third of the request timeout.
    The batch is not sent again.
    """
    topic = s.topic()
    s.script.delay("Produce", 1.0)
    out = yield produce(topic, records(3), **ORDERED)
    written_once(s, out, topic, 3)


@chapter.scenario("PRODUCER-024", "Metadata")
def new_topic(s: Stage) -> Steps:
    """A topic that is being created is waited for.

    Metadata has UNKNOWN_TOPIC_OR_PARTITION twice, then LEADER_NOT_AVAILABLE, then the topic.
    """
    topic = s.topic()
    s.script.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2)
    s.script.fail("Metadata", "LEADER_NOT_AVAILABLE", after=2)
    out = yield produce(topic, records(3), **ORDERED)
    told_or(out, lambda: written_once(s, out, topic, 3))


@chapter.scenario("PRODUCER-025", "Errors: NOT_ENOUGH_REPLICAS; retry.backoff.ms")
def backoff(s: Stage) -> Steps:
    """Retries are spaced by the backoff.

    The first five Produce requests get NOT_ENOUGH_REPLICAS; retry.backoff.ms is 100.
    """
    topic = s.topic()
    s.script.fail("Produce", "NOT_ENOUGH_REPLICAS", times=5)
    out = yield produce(topic, records(1), **ORDERED, retry_backoff_ms="100", retry_backoff_max_ms="1000")
    written_once(s, out, topic, 1)
    spaced(s, "Produce", 0.05)


@chapter.scenario("PRODUCER-026", "NetworkClient")
def unreachable(s: Stage) -> Steps:
    """An unreachable broker is reported, without a storm of connections.

    After Metadata, the broker closes each connection immediately, for 3 s of delivery.timeout.ms.
    """
    topic = s.topic()
    s.script.close("Produce", times=None)
    out = yield produce(topic, records(1), **ORDERED, delivery_timeout_ms="3000", request_timeout_ms="1000")
    expect(not out.acked, "the record is acknowledged")
    reported(out, "the failure")


@chapter.scenario("PRODUCER-027", "KIP-98")
def slow_responses(s: Stage) -> Steps:
    """Batches in flight have sequences of their own.

    The broker takes 200 ms for each Produce request, while more records are sent.
    All are written in order, each once.
    """
    topic = s.topic()
    s.script.delay("Produce", 0.2, times=None)
    out = yield produce(topic, spread(6, 30), **IDEMPOTENT)
    written_once(s, out, topic, 6)
    sent = s.exchanges("Produce")
    crossed = any(later.at < (each.answered_at or later.at) for each, later in pairwise(sent))
    expect(crossed, "the client has one batch of a partition in flight", Verdict.NOT_APPLICABLE)
