"""Produce: each magic and codec, checksums, acks, errors of single records, sequences and epochs of producers."""

from __future__ import annotations

from typing import Any

from kwire.conformance.broker.bench import Bench, Topic
from kwire.conformance.broker.chapters.data import batch, fetch, fetched, produce, produced, with_crc
from kwire.conformance.broker.chapters.tables import released
from kwire.conformance.broker.checks import Allowed, BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import error_name, request

__all__ = ["chapter"]

chapter = Chapter("Produce")
SOURCE = "UnifiedLog.append; LogValidator"
USES = {"Produce": -1, "Topics": -1, "Fetch": -1}
IDEMPOTENT = {**USES, "InitProducerId": -1}
LAST_OFFSET_DELTA = slice(23, 27)


def _twice(bench: Bench, data: bytes | None, **configs: Any) -> dict[str, Any]:
    """Produce something, then a good record: its offset shows whether anything was appended."""
    topic = bench.topic(**configs)
    first = produced(produce(bench, topic, data))
    return {**first, "next offset": produce(bench, topic, batch()).base_offset}


def _producer(bench: Bench) -> tuple[int, int]:
    body = bench.until(lambda: bench.ask("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000))
    return body.producer_id, body.producer_epoch


def _sequences(bench: Bench, *steps: tuple[int, int], start: Topic | None = None) -> dict[str, Any]:
    """Produce single records with (epoch, base sequence) each."""
    topic, (producer_id, _) = start or bench.topic(), _producer(bench)
    parts = [
        produce(bench, topic, batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))
        for epoch, sequence in steps
    ]
    return {"errors": [error_name(each.error_code) for each in parts], "offsets": [each.base_offset for each in parts]}


@chapter.check("PRODUCE-001", SOURCE, uses=USES)
def contiguous(bench: Bench) -> Any:
    """Offsets have no gaps.

    Produce batches of one, two and three records, and fetch them.
    Base offsets are 0, 1 and 3, and the records have the offsets 0 to 5.
    """
    topic = bench.topic()
    offsets = [produce(bench, topic, batch(*[b"v"] * n)).base_offset for n in (1, 2, 3)]
    return {"base offsets": offsets, **fetched(fetch(bench, topic))}


@chapter.check("PRODUCE-002", SOURCE, uses=USES)
def wrong_checksum(bench: Bench) -> Any:
    """A batch whose checksum does not fit is refused as a whole.

    Produce a batch with one changed byte, then a good one.
    The error is CORRUPT_MESSAGE; the good one has offset 0.
    """
    data = bytearray(batch(b"value"))
    data[-2] ^= 1
    return _twice(bench, bytes(data))


@chapter.check("PRODUCE-003", "ProduceRequest", uses=USES)
def no_response_with_acks_0(bench: Bench) -> Any:
    """With acks=0 there is no response, and the record is appended.

    Produce a record with acks=0, then ask for API versions on the same connection.
    The next response is that of ApiVersions; the record can be fetched.
    """
    topic = bench.topic()
    connection = bench.connect(topic.leader)
    part = {"index": 0, "records": batch(b"quiet")}
    data = [{"name": topic.name, "topic_id": topic.topic_id, "partition_data": [part]}]
    version = bench.best("Produce")
    connection.send(request("Produce", version, acks=0, timeout_ms=1000, topic_data=data), version)
    connection.send(request("ApiVersions", 0), 0)
    return {"next": type(connection.receive()).__name__, **fetched(fetch(bench, topic, max_wait_ms=3000, min_bytes=1))}


@chapter.check("PRODUCE-004", "ProduceRequest", uses=USES)
def wrong_acks(bench: Bench) -> Any:
    """Other values of acks than -1, 0 and 1 are refused.

    Produce a record with acks=2.
    The error is INVALID_REQUIRED_ACKS.
    """
    return produced(produce(bench, bench.topic(), batch(), acks=2))


@chapter.check("PRODUCE-005", SOURCE, uses=USES)
def two_batches(bench: Bench) -> Any:
    """Two batches for one partition are refused.

    Produce two batches in the records of one partition.
    The error is that of the release; the next record has offset 0.
    """
    return _twice(bench, batch(b"one") + batch(b"two"))


@chapter.check("PRODUCE-006", SOURCE, uses=USES)
def control_batch(bench: Bench) -> Any:
    """A client cannot write a control batch.

    Produce a batch with the control bit.
    The error is INVALID_RECORD; the next record has offset 0.
    """
    return _twice(bench, batch(is_control=True, producer_id=5, producer_epoch=0, base_sequence=0))


@chapter.check("PRODUCE-007", SOURCE, uses=USES)
def cut_batch(bench: Bench) -> Any:
    """A batch that is cut is refused.

    Produce a batch without its last five bytes.
    The error is CORRUPT_MESSAGE; the next record has offset 0.
    """
    return _twice(bench, batch(b"value")[:-5])


@chapter.check("PRODUCE-008", SOURCE, uses=USES)
def too_large(bench: Bench) -> Any:
    """A batch above max.message.bytes is refused.

    Create a topic with max.message.bytes=200, and produce 1,000 bytes.
    The error is MESSAGE_TOO_LARGE; the next record has offset 0.
    """
    return _twice(bench, batch(bytes(1000)), max_message_bytes="200")


@chapter.check("PRODUCE-009", "KIP-467", uses={**USES, "Produce": 8})
def without_a_key(bench: Bench) -> Any:
    """A compacted topic refuses records without a key, and names them.

    Create a topic with cleanup.policy=compact, and produce two records without keys.
    The error is INVALID_RECORD, and both records are in record_errors.
    """
    return _twice(bench, batch(b"a", b"b", key=None), cleanup_policy="compact")


@chapter.check("PRODUCE-010", SOURCE, uses=USES)
def unknown_partition(bench: Bench) -> Any:
    """A partition that does not exist fails alone.

    Produce to the partitions 0 and 9 of a topic with one partition.
    The first is appended, the second has UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = bench.topic()
    parts = [{"index": index, "records": batch()} for index in (0, 9)]
    data = [{"name": topic.name, "topic_id": topic.topic_id, "partition_data": parts}]
    body = bench.ask("Produce", at=topic.leader, acks=-1, timeout_ms=5000, topic_data=data)
    found = sorted(body.responses[0].partition_responses, key=lambda each: each.index)
    return {"errors": [error_name(each.error_code) for each in found], "offsets": [each.base_offset for each in found]}


@chapter.check("PRODUCE-011", SOURCE, uses=USES)
def record_count(bench: Bench) -> Any:
    """A batch whose last offset delta does not fit its record count is refused.

    Produce a batch of one record whose last offset delta is 7, with a checksum that fits.
    The error is INVALID_RECORD; the next record has offset 0.
    """
    data = bytearray(batch(b"value"))
    data[LAST_OFFSET_DELTA] = (7).to_bytes(4, "big")
    return _twice(bench, with_crc(bytes(data)))


@chapter.check(
    "PRODUCE-012",
    SOURCE,
    uses=USES,
    allowed=(Allowed(path="error", values=("CORRUPT_MESSAGE", "INVALID_RECORD"), reason="an error that says more"),),
)
def unknown_codec(bench: Bench) -> Any:
    """A codec that does not exist is refused.

    Produce a batch whose attributes name codec 7, with a checksum that fits.
    The error is that of the release; the next record has offset 0.
    """
    data = bytearray(batch(b"value"))
    data[22] = 7
    return _twice(bench, with_crc(bytes(data)))


@chapter.check("PRODUCE-014", SOURCE, uses=USES)
def base_offset(bench: Bench) -> Any:
    """A batch whose base offset is not 0 is refused.

    Produce a batch with base offset 1,000, and fetch from the start.
    The error is INVALID_RECORD, and the log is empty.
    """
    topic = bench.topic()
    part = produce(bench, topic, batch(b"value", base_offset=1000))
    return {**produced(part), "log": fetched(fetch(bench, topic))}


@chapter.check("PRODUCE-015", "KIP-32", uses=USES)
def log_append_time(bench: Bench) -> Any:
    """With LogAppendTime the response has the time, and batches have its type.

    Create a topic with message.timestamp.type=LogAppendTime, and produce a record.
    log_append_time_ms is set in the response, and the fetched batch has the bit of LogAppendTime.
    """
    topic = bench.topic(message_timestamp_type="LogAppendTime")
    part = produce(bench, topic, batch())
    attributes = bytes(fetch(bench, topic).records)[22]
    return {**produced(part), "time": part.log_append_time_ms > 0, "bit": bool(attributes & 8)}


@chapter.check("PRODUCE-016", "KIP-32", uses=USES)
def create_time(bench: Bench) -> Any:
    """With CreateTime the response has no time.

    Produce a record to a topic with the default timestamp type.
    log_append_time_ms is -1.
    """
    return {"time": produce(bench, bench.topic(), batch()).log_append_time_ms}


@chapter.check("PRODUCE-017", "LogValidator", uses=USES)
def compression_of_the_topic(bench: Bench) -> Any:
    """A topic with compression.type compresses what producers send.

    Create a topic with compression.type=gzip, produce an uncompressed record, and fetch it.
    The batch is compressed with gzip.
    """
    topic = bench.topic(compression_type="gzip")
    part = produced(produce(bench, topic, batch(b"value" * 4)))
    return {**part, "log": fetched(fetch(bench, topic))}


@chapter.check("PRODUCE-018", "KIP-101", uses=USES)
def partition_leader_epoch(bench: Bench) -> Any:
    """The broker sets the partition leader epoch of a batch.

    Produce a batch whose partition leader epoch is 99, and fetch it.
    It is the epoch of the leader, 0.
    """
    topic = bench.topic()
    produce(bench, topic, batch(partition_leader_epoch=99))
    return {"epoch": int.from_bytes(bytes(fetch(bench, topic).records)[12:16], "big", signed=True)}


@chapter.check("PRODUCE-019", "KIP-107", uses={**USES, "Produce": 5})
def log_start_offset(bench: Bench) -> Any:
    """The response has the log start offset.

    Produce a record.
    The log start offset is 0.
    """
    return {"log start offset": produce(bench, bench.topic(), batch(), version=bench.best("Produce")).log_start_offset}


@chapter.check("PRODUCE-020", "KIP-98", uses=IDEMPOTENT)
def in_order(bench: Bench) -> Any:
    """Sequence numbers in order are accepted.

    Produce with the sequences 0, 1 and 2 of a new producer id.
    All are appended.
    """
    return _sequences(bench, (0, 0), (0, 1), (0, 2))


@chapter.check("PRODUCE-021", "KIP-98", uses=IDEMPOTENT)
def duplicate(bench: Bench) -> Any:
    """A batch that is sent again is not appended again.

    Produce the sequences 0, 1, and 1 again, then 2.
    The repeated one has no error and its first offset; the next has offset 2.
    """
    return _sequences(bench, (0, 0), (0, 1), (0, 1), (0, 2))


@chapter.check("PRODUCE-022", "KIP-98", uses=IDEMPOTENT)
def gap(bench: Bench) -> Any:
    """A gap in the sequence numbers is refused.

    Produce the sequences 0 and 2, then 1.
    The second has OUT_OF_ORDER_SEQUENCE_NUMBER, and the third is appended.
    """
    return _sequences(bench, (0, 0), (0, 2), (0, 1))


@chapter.check("PRODUCE-023", "KIP-98", uses=IDEMPOTENT)
def begins_late(bench: Bench) -> Any:
    """What a producer id without state may begin with is that of the release.

    Produce the sequence 5 as the first of a new producer id.
    The error, or its absence, is that of the release.
    """
    return _sequences(bench, (0, 5))


@chapter.check("PRODUCE-024", "KIP-98; ProducerAppendInfo", uses=IDEMPOTENT)
def old_epoch(bench: Bench) -> Any:
    """An older producer epoch is fenced.

    Produce sequence 0 in epoch 1, then sequence 0 in epoch 0.
    The second has INVALID_PRODUCER_EPOCH.
    """
    return _sequences(bench, (1, 0), (0, 0), (1, 1))


@chapter.check("PRODUCE-025", "KIP-98; ProducerAppendInfo", uses=IDEMPOTENT)
def new_epoch(bench: Bench) -> Any:
    """A new producer epoch begins at sequence 0.

    Produce sequence 0 in epoch 0, then sequence 1 in epoch 1, then sequence 0 in epoch 1.
    The second has OUT_OF_ORDER_SEQUENCE_NUMBER, and the third is appended.
    """
    return _sequences(bench, (0, 0), (1, 1), (1, 0))


@chapter.check("PRODUCE-026", "ProducerStateEntry", uses=IDEMPOTENT)
def five_batches(bench: Bench) -> Any:
    """The last five batches of a producer are known as duplicates.

    Produce the sequences 0 to 5, then 1 and 0 again.
    The fifth last is a duplicate; the sixth last has the error of the release.
    """
    return _sequences(bench, *((0, i) for i in range(6)), (0, 1), (0, 0))


@chapter.check("PRODUCE-027", "KIP-98", uses={**USES, "Produce": 3, "FindCoordinator": -1})
def transactional_without_id(bench: Bench) -> Any:
    """A transactional batch needs a transaction.

    Produce a transactional batch of an unknown producer id with a transactional id that does not exist.
    The error is that of the release.
    """
    data = batch(producer_id=4242, producer_epoch=0, base_sequence=0, is_transactional=True)
    topic, txn = bench.topic(), bench.name("txn")
    bench.coordinator(txn, 1)  # the first lookup makes the coordinators, which the leader asks
    return bench.loaded(lambda: produced(produce(bench, topic, data, transactional_id=txn)))


@chapter.check("PRODUCE-028", SOURCE, uses={**USES, "Fetch": 4})
def headers_and_nulls(bench: Bench) -> Any:
    """Null keys, null values and headers come back as they were.

    Produce a batch with null and empty keys and values, and fetch it.
    The bytes after the batch's header are the same.
    """
    topic = bench.topic()
    data = batch(None, b"", b"v", key=None)
    produce(bench, topic, data)
    return {"same": bytes(fetch(bench, topic, version=bench.best("Fetch")).records)[61:] == data[61:]}


def _formats(magic: int, codec: str, version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        topic = bench.topic()
        part = produce(bench, topic, batch(b"one", b"two", magic=magic, compression=codec), version=version)
        return {**produced(part), "log": fetched(fetch(bench, topic))}

    return observe


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
for _version in (0, 1, 2, 3, 7, 9, 13):
    for _magic in (0, 1, 2):
        for _codec in CODECS if _magic == 2 else CODECS[:4]:
            chapter.add(
                BrokerCheck(
                    id=f"PRODUCE-V{_version:02}-M{_magic}-{_codec.upper()}",
                    chapter=chapter.name,
                    title=f"Produce {_version} with magic {_magic}, compression {_codec}",
                    source="KIP-98, KIP-110; ProduceRequest.validateRecords",
                    steps=(
                        f"Produce two records of magic {_magic}, compression {_codec}, with Produce {_version}.",
                        "Fetch them in the newest version.",
                        "The error, the offsets, the stored magic and the codec are those of the release.",
                    ),
                    observe=_formats(_magic, _codec, _version),
                    uses={"Produce": _version, "Fetch": -1, "Topics": -1},
                    **released("Produce", _version),
                )
            )
