"""Fetch: what is stored is delivered once, in order, whatever the responses look like."""

from __future__ import annotations

import struct
from typing import Any

from kwire import records
from kwire.conformance.broker.chapters.data import with_crc
from kwire.conformance.check import Verdict
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.judging import consumed, reported, values
from kwire.conformance.client.program import Outcome
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.scripted_log import ScriptedLog
from kwire.conformance.client.stage import TIME, Stage, batch
from kwire.conformance.client.task import consume
from kwire.records import TimestampType

__all__ = ["chapter", "each_part", "numbered", "stored"]

chapter = Chapter("Consumer")


def numbered(count: int, start: int = 0) -> list[tuple[int, str]]:
    """Return (offset, value) of records whose values are v and their offset."""
    return list(enumerate(values(count, start), start))


def stored(s: Stage, *counts: int) -> str:
    """Return a topic with batches of these numbers of records, whose values are v and their offset."""
    topic, start = s.topic(), 0
    for count in counts:
        s.write(topic, *(value.encode() for value in values(count, start)))
        start += count
    return topic


def printed(out: Outcome, name: str, wanted: list[Any]) -> None:
    """Expect a field of the records; a program may leave out what its client does not have."""
    found = [line.get(name) for line in out.received]
    expect(any(each is not None for each in found), f"the program prints no {name}", Verdict.NOT_APPLICABLE)
    expect(found == wanted, f"{name}: {found} instead of {wanted}")


def each_part(body: Any) -> list[Any]:
    """Return the partitions of a Fetch response."""
    return [part for topic in body.responses for part in topic.partitions]


@chapter.scenario("CONSUME-001", "KIP-98")
def plain(s: Stage) -> Steps:
    """Records are delivered once, in order.

    Read three batches from the beginning.
    """
    topic = stored(s, 3, 4, 3)
    out = yield consume(topic, 10)
    consumed(out, numbered(10))


@chapter.scenario("CONSUME-002", "FetchRequest: fetchOffset")
def from_offset(s: Stage) -> Steps:
    """Reading begins inside a batch.

    The client begins at offset 5 of a batch with offsets 0 to 9, which the broker returns whole.
    Records before offset 5 are not delivered.
    """
    topic = stored(s, 10)
    out = yield consume(topic, 5, offset=5)
    consumed(out, numbered(5, 5))


@chapter.scenario("CONSUME-003", "KIP-74; FetchResponse")
def cut_batch(s: Stage) -> Steps:
    """A batch that is cut at the end of a response is fetched again.

    The first response has a whole batch and half of the next one, as brokers send when the size limit is reached.
    The client delivers the whole batch, and asks again from the offset after it.
    """
    topic = stored(s, 3, 3)

    def cut(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            if part.records:
                part.records = bytes(part.records)[: len(part.records) * 3 // 4]

    s.script.change("Fetch", cut, times=1)
    out = yield consume(topic, 6)
    consumed(out, numbered(6))


@chapter.scenario("CONSUME-004", "KIP-74; FetchResponse")
def cut_anywhere(s: Stage) -> Steps:
    """A batch may be cut at any byte.

    Each response has a whole batch and the first 1, 11, 12, 16, 17, 18, 60, 61 or 62 bytes of the next one.
    """
    topic, lengths = stored(s, *[1] * 10), iter([1, 11, 12, 16, 17, 18, 60, 61, 62])

    def cut(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            if part.records:
                data = bytes(part.records)
                part.records = data[: struct.unpack_from(">i", data, 8)[0] + 12 + next(lengths, 0)]

    s.script.change("Fetch", cut)
    out = yield consume(topic, 10)
    consumed(out, numbered(10))


@chapter.scenario("CONSUME-005", "KIP-74")
def large(s: Stage) -> Steps:
    """A record above the limits of a Fetch is delivered.

    A record of 300 kB is read with max.partition.fetch.bytes and fetch.max.bytes of 10 kB.
    """
    topic = s.topic()
    s.write(topic, b"v0", b"x" * 300_000, b"v2")
    out = yield consume(topic, 3, max_partition_fetch_bytes="10000", fetch_max_bytes="10000")
    consumed(out, [(0, "v0"), (1, "x" * 300_000), (2, "v2")])


@chapter.scenario("CONSUME-006", "FetchResponse: records")
def empty(s: Stage) -> Steps:
    """Responses without records are not the end.

    The first three responses have no bytes of records, and the next one has them.
    """
    topic = stored(s, 4)

    def clear(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            part.records = b""

    s.script.change("Fetch", clear, times=3)
    out = yield consume(topic, 4)
    consumed(out, numbered(4))


@chapter.scenario("CONSUME-007", "FetchResponse: records, nullable")
def null_records(s: Stage) -> Steps:
    """Null in place of records is like no records.

    The first two responses have null records.
    """
    topic = stored(s, 4)

    def clear(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            part.records = None

    s.script.change("Fetch", clear, times=2)
    out = yield consume(topic, 4)
    consumed(out, numbered(4))


@chapter.scenario("CONSUME-008", "FetchResponse: responses")
def no_topics(s: Stage) -> Steps:
    """A response without topics is not the end.

    The first two responses have no topics at all, as in throttled fetches and sessions without news.
    """
    topic = stored(s, 4)

    def clear(exchange: Exchange, body: Any) -> None:
        body.responses = []

    s.script.change("Fetch", clear, times=2)
    out = yield consume(topic, 4)
    consumed(out, numbered(4))


def _kept(base: int, last: int, *offsets: int, **options: Any) -> bytes:
    """Return a batch of offsets base to last in which compaction has kept some."""
    data = bytearray(batch(*(f"v{each}".encode() for each in range(base, last + 1)), base_offset=base, **options))
    whole = next(iter(records.read_batches(bytes(data))))
    kept = [each for each in whole.records() if each.offset in offsets]
    builder = records.BatchBuilder(base_offset=base, **options)
    for each in kept:
        builder.append(each.key, each.value, timestamp=each.timestamp, offset=each.offset)
    return _with_last(builder.build(), last - base) if kept else _emptied(bytes(data))


def _with_last(data: bytes, delta: int) -> bytes:
    """Return a batch with another last offset delta, as compaction keeps that of the produced batch."""
    return with_crc(data[:23] + struct.pack(">i", delta) + data[27:])


def _emptied(data: bytes) -> bytes:
    """Return a batch without records, which keeps its offsets."""
    head = data[:8] + struct.pack(">i", 61 - 12) + data[12:57] + struct.pack(">i", 0)
    return with_crc(head)


@chapter.scenario("CONSUME-009", "KIP-98; LogCleaner")
def gaps(s: Stage) -> Steps:
    """Gaps that compaction leaves are passed.

    Batches have offsets 0, 3 and 4 of 0 to 5, and 8 of 6 to 9: their ends are compacted too.
    The client continues after the last offset of each batch, not after its last record.
    """
    topic = s.topic()
    ScriptedLog(_kept(0, 5, 0, 3, 4), _kept(6, 9, 8), batch(b"v12", base_offset=12)).play(s.script)
    out = yield consume(topic, 5)
    consumed(out, [(each, f"v{each}") for each in (0, 3, 4, 8, 12)])


@chapter.scenario("CONSUME-010", "KIP-98; LogCleaner")
def emptied(s: Stage) -> Steps:
    """A batch that lost all of its records is passed.

    Between two batches is one without records, which compaction keeps for its producer's sequence.
    """
    topic = s.topic()
    between = _kept(2, 5)
    ScriptedLog(batch(b"v0", b"v1"), between, batch(b"v6", base_offset=6)).play(s.script)
    out = yield consume(topic, 3)
    consumed(out, [(0, "v0"), (1, "v1"), (6, "v6")])


@chapter.scenario("CONSUME-011", "KIP-98; LogCleaner")
def only_emptied(s: Stage) -> Steps:
    """A response with nothing but an emptied batch is passed.

    The broker returns the emptied batch alone, as a limit of bytes may have it.
    """
    topic = s.topic()
    log = ScriptedLog(_kept(0, 3), batch(b"v4", base_offset=4))
    log.play(s.script)

    def one(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            if part.records:
                data = bytes(part.records)
                part.records = data[: struct.unpack_from(">i", data, 8)[0] + 12]

    s.script.change("Fetch", one)
    out = yield consume(topic, 1)
    consumed(out, [(4, "v4")])


@chapter.scenario("CONSUME-012", "ListOffsetsRequest: earliest")
def later_start(s: Stage) -> Steps:
    """The earliest offset is not always 0.

    The log begins at offset 100.
    """
    topic = s.topic()
    ScriptedLog(batch(b"v100", b"v101", base_offset=100), start=100).play(s.script)
    out = yield consume(topic, 2)
    consumed(out, [(100, "v100"), (101, "v101")])


@chapter.scenario("CONSUME-013", "KIP-32")
def log_append_time(s: Stage) -> Steps:
    """With LogAppendTime every record has the time of its batch.

    A batch has timestamp type LogAppendTime and a maximum timestamp, which the broker has set.
    The client reports that time for each record.
    """
    topic = s.topic()
    kind = TimestampType.LOG_APPEND_TIME
    ScriptedLog(batch(b"v0", b"v1", timestamp_type=kind, log_append_time_ms=TIME + 5000)).play(s.script)
    out = yield consume(topic, 2)
    consumed(out, numbered(2))
    printed(out, "timestamp", [TIME + 5000] * 2)


@chapter.scenario("CONSUME-014", "KIP-32")
def create_time(s: Stage) -> Steps:
    """With CreateTime every record has its own time.

    Two records have timestamps of their own.
    """
    topic = stored(s, 2)
    out = yield consume(topic, 2)
    consumed(out, numbered(2))
    printed(out, "timestamp", [TIME, TIME + 1])


@chapter.scenario("CONSUME-015", "Record: key and value, nullable")
def nulls(s: Stage) -> Steps:
    """Null and empty are different.

    Values are null, empty and one character.
    """
    topic = s.topic()
    s.write(topic, None, b"", b"x")
    out = yield consume(topic, 3)
    consumed(out, [(0, None), (1, ""), (2, "x")])


@chapter.scenario("CONSUME-016", "KIP-82")
def headers(s: Stage) -> Steps:
    """Headers keep their order, doubles and nulls.

    A record has headers a=1, b=null, a=2 and one with an empty value.
    """
    topic = s.topic()
    wanted = [("a", b"1"), ("b", None), ("a", b"2"), ("c", b"")]
    builder = records.BatchBuilder()
    builder.append(b"k", b"v0", timestamp=TIME, headers=wanted)
    ScriptedLog(builder.build()).play(s.script)
    out = yield consume(topic, 1)
    consumed(out, numbered(1))
    printed(out, "headers", [[[key, None if value is None else value.decode()] for key, value in wanted]])


@chapter.scenario("CONSUME-017", "KIP-74")
def big(s: Stage) -> Steps:
    """A record of 2 MB is delivered whole.

    It is above the defaults of fetch.max.bytes and max.partition.fetch.bytes of some clients.
    """
    topic = s.topic(max_message_bytes=4 << 20)
    s.write(topic, b"y" * 2_000_000)
    out = yield consume(topic, 1)
    consumed(out, [(0, "y" * 2_000_000)])


@chapter.scenario("CONSUME-018", "FetchRequest")
def many_partitions(s: Stage) -> Steps:
    """Many partitions are read together.

    A hundred partitions have a record each.
    """
    topic = s.topic(partitions=100)
    for partition in range(100):
        s.write(topic, f"p{partition}".encode(), partition=partition)
    out = yield consume(topic, 100, partitions=range(100))
    for partition in range(100):
        consumed(out, [(0, f"p{partition}")], partition)


@chapter.scenario("CONSUME-019", "ListOffsets; auto.offset.reset")
def out_of_range(s: Stage) -> Steps:
    """An offset out of range is reset.

    The client begins at offset 1000 of a log with 5 records, with auto.offset.reset=earliest.
    """
    topic = stored(s, 5)
    out = yield consume(topic, 5, offset=1000)
    consumed(out, numbered(5))


@chapter.scenario("CONSUME-020", "ListOffsets; auto.offset.reset")
def no_reset(s: Stage) -> Steps:
    """An offset out of range is reported without a reset policy.

    The client begins at offset 1000 of a log with 5 records, with auto.offset.reset=none.
    """
    topic = stored(s, 5)
    out = yield consume(topic, 5, offset=1000, auto_offset_reset="none")
    expect(not out.received, "records are delivered from another offset")
    reported(out, "that the offset is out of range")


@chapter.scenario("CONSUME-021", "KIP-98: isolation.level")
def uncommitted(s: Stage) -> Steps:
    """read_uncommitted delivers aborted records, and no markers.

    The log has an aborted and a committed transaction, each with its marker.
    """
    topic = s.topic()
    s.transaction(topic, b"a0", b"a1", commits=False)
    s.transaction(topic, b"c0", commits=True)
    out = yield consume(topic, 3, isolation_level="read_uncommitted")
    consumed(out, [(0, "a0"), (1, "a1"), (3, "c0")])


@chapter.scenario("CONSUME-022", "KIP-98: isolation.level")
def committed(s: Stage) -> Steps:
    """read_committed leaves aborted records out.

    The log has records outside of transactions, an aborted and a committed transaction.
    """
    topic = stored(s, 1)
    s.transaction(topic, b"a0", b"a1", commits=False)
    s.transaction(topic, b"c0", commits=True)
    s.write(topic, b"end")
    out = yield consume(topic, 3, isolation_level="read_committed")
    consumed(out, [(0, "v0"), (4, "c0"), (6, "end")])


def marker(base: int, producer: int, *, commits: bool) -> bytes:
    """Return a control batch."""
    fields: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
    builder = records.BatchBuilder(base_offset=base, is_control=True, **fields)
    key, value = struct.pack(">hh", 0, int(commits)), struct.pack(">hi", 0, 0)
    builder.append(key, value, timestamp=TIME)
    return builder.build()


def of_transaction(base: int, producer: int, *names: bytes, sequence: int = 0) -> bytes:
    """Return a transactional batch."""
    fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    return batch(*names, base_offset=base, **fields)


@chapter.scenario("CONSUME-023", "KIP-98: FetchResponse.abortedTransactions")
def interleaved(s: Stage) -> Steps:
    """Aborted transactions end at their marker, one producer at a time.

    Producers 1 and 2 write in turns; 1 aborts and then commits a second transaction, 2 commits.
    """
    topic = s.topic()
    ScriptedLog(
        of_transaction(0, 1, b"a0"),
        of_transaction(1, 2, b"c1"),
        of_transaction(2, 1, b"a2", sequence=1),
        marker(3, 1, commits=False),
        of_transaction(4, 1, b"c4", sequence=2),
        of_transaction(5, 2, b"c5", sequence=1),
        marker(6, 2, commits=True),
        marker(7, 1, commits=True),
        aborted=((1, 0, 3),),
    ).play(s.script)
    out = yield consume(topic, 3, isolation_level="read_committed")
    consumed(out, [(1, "c1"), (4, "c4"), (5, "c5")])


@chapter.scenario("CONSUME-024", "KIP-98")
def all_aborted(s: Stage) -> Steps:
    """A response with nothing but aborted records and markers is passed.

    The first 50 transactions are aborted, and the last one is committed; each Fetch returns a little.
    """
    topic = s.topic()
    batches, aborted, at = [], [], 0
    for number in range(50):
        batches += [of_transaction(at, number, b"a"), marker(at + 1, number, commits=False)]
        aborted.append((number, at, at + 1))
        at += 2
    batches += [of_transaction(at, 99, b"c"), marker(at + 1, 99, commits=True)]
    ScriptedLog(*batches, aborted=tuple(aborted)).play(s.script)
    out = yield consume(topic, 1, max_partition_fetch_bytes="600", isolation_level="read_committed")
    consumed(out, [(100, "c")])


@chapter.scenario("CONSUME-025", "DefaultRecordBatch: crc")
def corrupt(s: Stage) -> Steps:
    """Records with a wrong checksum are not delivered.

    The first response has a changed byte in its records, and the ones after it do not.
    The client fetches again, or reports the corruption.
    """
    topic = stored(s, 3)

    def flip(exchange: Exchange, body: Any) -> None:
        for part in each_part(body):
            if part.records:
                data = bytes(part.records)
                part.records = data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]

    s.script.change("Fetch", flip, times=1)
    out = yield consume(topic, 3, check_crcs="true")
    wrong = [line["value"] for line in out.received if line["value"] not in values(3)]
    expect(not wrong, f"changed values are delivered: {wrong}")
    if not out.told:
        consumed(out, numbered(3))


@chapter.scenario("CONSUME-037", "DefaultRecord: timestampDelta, varlong")
def distant_times(s: Stage) -> Steps:
    """Timestamps of a batch may be far apart.

    A batch has records of 2025 and of 1990 and 2059, whose differences in milliseconds do not fit 32 bits.
    """
    topic = s.topic()
    times = [TIME, TIME - 1_104_537_600_000, TIME + 1_073_000_000_000]
    builder = records.BatchBuilder()
    for number, each in enumerate(times):
        builder.append(b"k", f"v{number}".encode(), timestamp=each)
    ScriptedLog(builder.build()).play(s.script)
    out = yield consume(topic, 3)
    consumed(out, numbered(3))
    printed(out, "timestamp", times)
