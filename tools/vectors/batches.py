"""Record batches of three magics and five codecs, written by Kafka's MemoryRecordsBuilder, and broken ones."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import google_crc32c

from tools.vectors.draft import Draft
from tools.vectors.edits import varint
from tools.vectors.releases import JUDGES

__all__ = ["batch_drafts", "batch_edits", "run_edits"]

CODECS = {0: ("none", "gzip", "snappy", "lz4"), 1: ("none", "gzip", "snappy", "lz4")}
CODECS[2] = ("none", "gzip", "snappy", "lz4", "zstd")
SOURCES = {0: "KIP-31; LegacyRecord", 1: "KIP-31, KIP-32; LegacyRecord", 2: "KIP-98; DefaultRecordBatch, DefaultRecord"}
RANDOM = 40
TIME = 1_760_000_000_000
NO_PRODUCER = {"producerId": -1, "producerEpoch": -1, "baseSequence": -1}
PRODUCER = {"producerId": 4000, "producerEpoch": 3, "baseSequence": 17}

Json = dict[str, Any]


def text(value: bytes | None) -> str | None:
    """Return base64; null stays null."""
    return None if value is None else base64.b64encode(value).decode()


def record(
    offset: int, key: bytes | None = b"k", value: bytes | None = b"value", *, time: int = TIME, headers: Any = ()
) -> Json:
    """Return a record for the task."""
    pairs = [[name, text(content)] for name, content in headers]
    return {"offset": offset, "timestamp": time, "key": text(key), "value": text(value), "headers": pairs}


def records(count: int, first: int = 0, step: int = 1) -> list[Json]:
    """Return a number of records."""
    return [record(first + i * step, b"key %d" % i, b"value %d" % i, time=TIME + i) for i in range(count)]


def batch_drafts() -> Iterator[Draft]:
    """Return batches, each made by every release. Those with equal bytes are kept once."""
    for magic, codecs in CODECS.items():
        for codec in codecs:
            cases = [*_cases(magic), *_random(magic, codec)]
            for maker in reversed(JUDGES):
                for case, reason, changes in cases:
                    yield _draft(magic, codec, case, reason, changes, maker)


def _draft(magic: int, codec: str, case: str, reason: str, changes: Json, maker: str) -> Draft:
    task: Json = {
        "op": "batch",
        "magic": magic,
        "codec": codec,
        "timestampType": "CreateTime" if magic else "NoTimestampType",
        "baseOffset": 0,
        "logAppendTime": -1,
        **NO_PRODUCER,
        "isTransactional": False,
        "isControl": False,
        "partitionLeaderEpoch": -1,
        **changes,
    }
    if not magic:
        task["records"] = [{**each, "timestamp": -1} for each in task["records"]]
    first = "2.1.1" if codec == "zstd" else "2.0.1"
    minor = ".".join(maker.split(".")[:2])
    return Draft(
        chapter="batches",
        type="records",
        version=magic,
        case=f"{codec}-{case}" if codec == "none" or maker == JUDGES[-1] else f"{codec}-{case}-by-{minor}",
        since=first,
        until=None,
        maker=maker,
        task=task,
        judge={"op": "records"},
        encoding="canonical" if codec == "none" else "free",
        reason=reason,
        source=SOURCES[magic] + ("; KIP-110" if codec == "zstd" else ""),
    )


def _cases(magic: int) -> Iterator[tuple[str, str, Json]]:
    for count in (1, 2, 5, 64):
        yield f"{count}-records", f"{count} records", {"records": records(count)}
    yield "null-key", "a null key", {"records": [record(0, None)]}
    yield "null-value", "a tombstone", {"records": [record(0, b"k", None)]}
    yield "null-both", "key and value null", {"records": [record(0, None, None)]}
    yield "empty", "empty key and value", {"records": [record(0, b"", b"")]}
    yield "offset-large", "offsets above 32 bits", {"baseOffset": 2**40, "records": records(3, 2**40)}
    yield "gaps", "gaps between the offsets, as compaction leaves", {"records": records(4, 0, 7)}
    yield "first-gone", "the first offset is not the base offset", {"baseOffset": 100, "records": records(3, 105)}
    for length in (63, 64, 127, 128, 8191, 8192, 16384):
        yield f"value-{length}", f"a value of {length} bytes", {"records": [record(0, b"k", b"v" * length)]}
    yield "utf8", "non-ASCII keys", {"records": [record(0, "käse".encode(), "日本語".encode())]}
    if magic:
        times = [record(i, time=each) for i, each in enumerate((TIME, TIME - 5000, TIME + 5000))]
        yield "times", "timestamps out of order", {"records": times}
        yield "time-zero", "timestamp 0", {"records": [record(0, time=0)]}
        yield "no-time", "timestamp -1", {"records": [record(0, time=-1)]}
        append = {"timestampType": "LogAppendTime", "logAppendTime": TIME + 77, "records": records(3)}
        yield "append-time", "LogAppendTime", append
    if magic < 2:
        return
    headers = [("h", b"1"), ("h", b"2"), ("empty", b""), ("null", None), ("", b"no name"), ("käse", b"x")]
    yield "headers", "headers: repeated, empty, null", {"records": [record(0, headers=headers)]}
    many = [(f"h{i}", b"%d" % i) for i in range(64)]
    yield "headers-64", "64 headers, so that the count takes two bytes", {"records": [record(0, headers=many)]}
    yield "idempotent", "an idempotent producer", {**PRODUCER, "records": records(3)}
    wrap = {**PRODUCER, "baseSequence": 2**31 - 2, "records": records(4)}
    yield "sequence-wraps", "sequence numbers start again at 0", wrap
    yield "transactional", "part of a transaction", {**PRODUCER, "isTransactional": True, "records": records(2)}
    yield "leader-epoch", "a leader epoch", {"partitionLeaderEpoch": 9, "records": records(2)}
    largest = {"producerId": 2**63 - 1, "producerEpoch": 32767, "baseSequence": 0, "partitionLeaderEpoch": 2**31 - 1}
    yield "largest", "largest producer id and epochs", {**largest, "records": records(2)}
    far = [record(0, time=0), record(1, time=2**62), record(2, time=-1)]
    yield "times-far", "timestamps 2^62 ms apart", {"records": far}
    wide = [record(0), record(2**31 - 1)]
    yield "offset-delta-largest", "an offset 2^31 - 1 above the base", {"records": wide}
    compacted = {"lastOffset": 20, "records": records(3)}
    yield "last-gone", "the last offset is above that of the last record", compacted
    control = {**PRODUCER, "baseSequence": -1, "isTransactional": True, "isControl": True}
    for marker in ("COMMIT", "ABORT"):
        entries = [{"offset": 0, "timestamp": TIME, "marker": marker, "epoch": 5}]
        yield f"control-{marker.lower()}", f"a transaction marker: {marker}", {**control, "records": entries}
    for number, name in ((2, "leader-change"), (3, "snapshot-header"), (4, "snapshot-footer"), (77, "unknown")):
        key = struct.pack(">hh", 0, number)
        entries = [{"offset": 0, "timestamp": TIME, "control": text(key), "value": text(bytes(12))}]
        about = f"a control record of type {number}"
        yield f"control-{name}", about, {**NO_PRODUCER, "isControl": True, "records": entries}


def _random(magic: int, codec: str) -> Iterator[tuple[str, str, Json]]:
    for number in range(RANDOM):
        draw = random.Random(f"{magic} {codec} {number}")
        base = draw.choice((0, 1, 1000, 2**33))
        offset, time, drawn = base, TIME, []
        for _ in range(draw.choice((1, 2, 3, 10, 40))):
            headers = [(draw.choice("abc"), draw.choice((b"", b"1", None))) for _ in range(draw.choice((0, 0, 1, 2)))]
            key, value = (draw.choice((None, b"", b"key", b"x" * draw.randint(1, 70))) for _ in range(2))
            drawn.append(record(offset, key, value, time=time, headers=headers if magic == 2 else ()))
            offset += draw.choice((1, 1, 1, 2, 90))
            time += draw.choice((0, 1, -1, 1000, 10**6))
        extra: Json = {}
        if magic == 2 and draw.random() < 0.5:
            extra = {**PRODUCER, "baseSequence": draw.randint(0, 2**31 - 1), "isTransactional": draw.random() < 0.5}
        if magic and draw.random() < 0.3:
            extra |= {"timestampType": "LogAppendTime", "logAppendTime": TIME + number}
        yield f"random-{number + 1}", "drawn at random", {"baseOffset": base, "records": drawn, **extra}


# Broken batches


def with_checksum(data: bytes) -> bytes:
    """Return one batch of any magic with a checksum that fits its content."""
    if data[16] == 2:
        return data[:17] + struct.pack(">I", google_crc32c.value(data[21:])) + data[21:]
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:]


def batch_edits(made: Draft) -> Iterator[Draft]:
    """Return broken batches of a valid one: of each codec, one with several records."""
    if made.maker != JUDGES[-1] or not made.case.endswith(("-5-records", "-headers", "-control-commit")):
        return
    data = made.data

    def edit(case: str, changed: bytes, reason: str, source: str, forbidden: str = "") -> Draft:
        return Draft(
            chapter="batches",
            type="records",
            version=made.version,
            case=f"{made.case}-{case}",
            since=made.since,
            until=None,
            maker=made.maker,
            data=changed,
            judge=made.judge,
            encoding="free",
            reason=reason,
            source=source,
            forbidden=forbidden,
        )

    length = struct.unpack_from(">i", data, 8)[0]
    for case, value in (("length-0", 0), ("length-13", 13), ("length-negative", -1), ("length-short", length - 1)):
        changed = data[:8] + struct.pack(">i", value) + data[12:]
        yield edit(
            case, changed, f"the length field says {value}, and it is {length}", "R-02; ByteBufferLogInputStream"
        )
    for case, cut in (("cut-1", 1), ("cut-half", len(data) // 2), ("cut-header", len(data) - 14)):
        reason = f"the last {cut} bytes are missing: an incomplete batch at the end is left out"
        yield edit(case, data[:-cut], reason, "Fetch: a response may end inside a batch")
    crc_at = 17 if made.version == 2 else 12
    flipped = data[:crc_at] + bytes([data[crc_at] ^ 1]) + data[crc_at + 1 :]
    yield edit("crc", flipped, "one bit of the checksum is wrong", "ensureValid")
    yield edit("content", data[:-1] + bytes([data[-1] ^ 1]), "one bit of the last byte is wrong", "ensureValid")
    for magic in (3, 127, 255):
        changed = data[:16] + bytes([magic]) + data[17:]
        yield edit(
            f"magic-{magic}", changed, f"magic {magic if magic < 128 else magic - 256}", "ByteBufferLogInputStream"
        )
    at = 22 if made.version == 2 else 17
    for number in (5, 6, 7):
        changed = with_checksum(data[:at] + bytes([data[at] & 0xF8 | number]) + data[at + 1 :])
        yield edit(f"codec-{number}", changed, f"codec {number}, which does not exist", "CompressionType.forId")
    if made.version == 2:
        yield from _default_edits(made, edit)
    elif "none-" in made.case:
        yield from _legacy_edits(made, edit)
    else:
        yield from _wrapper_edits(made, edit)


def _default_edits(made: Draft, edit: Any) -> Iterator[Draft]:
    data = made.data
    count = struct.unpack_from(">i", data, 57)[0]
    for case, value in (
        ("count-more", count + 1),
        ("count-less", count - 1),
        ("count-0", 0),
        ("count-negative", -1),
        ("count-huge", 2**31 - 1),
    ):
        changed = with_checksum(data[:57] + struct.pack(">i", value) + data[61:])
        yield edit(case, changed, f"the number of records says {value}, and there are {count}", "DefaultRecordBatch")
    delta = struct.unpack_from(">i", data, 23)[0]
    for case, value in (("last-delta-more", delta + 5), ("last-delta-less", delta - 1), ("last-delta-negative", -1)):
        changed = with_checksum(data[:23] + struct.pack(">i", value) + data[27:])
        forbidden = "the last offset is not below that of a record; readers do not look" if value < delta else ""
        yield edit(case, changed, f"last offset delta {value}; the last record has {delta}", "KIP-98", forbidden)
    changed = with_checksum(data[:21] + bytes([data[21] | 0x80]) + data[22:])
    yield edit("attribute-15", changed, "an unused bit of the attributes is set", "KIP-98")
    yield edit(
        "base-offset-negative", b"\xff" * 8 + data[8:], "base offset -1", "DefaultRecordBatch", "offsets start at 0"
    )
    if "none-" not in made.case:
        middle = 61 + (len(data) - 61) // 2
        yield edit("compressed-cut", _sized(data[:middle]), "the compressed records end early", "DefaultRecordBatch")
        yield edit("compressed-garbage", _sized(data[:61] + b"\x55" * 20), "not compressed data", "DefaultRecordBatch")
        yield edit("compressed-nothing", _sized(data[:61]), "no compressed data", "DefaultRecordBatch")
        return
    first = data[61:]
    size = first[0] >> 1  # zigzag, one byte in these batches
    if first[0] & 0x80:
        return
    inner = first[1 : 1 + size]
    rest = first[1 + size :]

    def with_first(content: bytes, length: int | None = None) -> bytes:
        zigzag = (len(content) if length is None else length) * 2
        return _sized(data[:61] + varint(zigzag) + content + rest)

    yield edit("record-length-more", with_first(inner, size + 1), "a record's length is one too large", "DefaultRecord")
    yield edit("record-length-less", with_first(inner, size - 1), "a record's length is one too small", "DefaultRecord")
    negative = _sized(data[:61] + b"\x01" + inner + rest)
    yield edit("record-length-negative", negative, "a record's length is -1", "DefaultRecord")
    endless = _sized(data[:61] + b"\xff" * 5 + b"\x01" + inner + rest)
    yield edit("record-length-varint", endless, "a record's length is a varint of six bytes", "DefaultRecord")
    key_at = 3  # attributes, timestamp delta, offset delta: one byte each in the first record
    long_key = with_first(inner[:key_at] + varint(2 * 63) + inner[key_at + 1 :])
    yield edit("key-long", long_key, "a key of 63 bytes in a shorter record", "DefaultRecord")
    key_two = with_first(inner[:key_at] + b"\x03" + inner[key_at + 1 + (inner[key_at] >> 1) :])
    yield edit("key-length-2", key_two, "a key of length -2", "DefaultRecord", "null has the length -1")
    more = with_first(inner + b"\0")
    yield edit("record-trailing", more, "one more byte at the end of a record", "DefaultRecord")
    if "headers" not in made.case:
        minus = with_first(inner[:-1] + b"\x01")
        yield edit("headers-negative", minus, "-1 headers", "DefaultRecord")
        yield edit("headers-missing", with_first(inner[:-1] + b"\x02"), "one header, and none follows", "DefaultRecord")
        null_name = with_first(inner[:-1] + b"\x02\x01\x01")
        yield edit("header-null-name", null_name, "a header whose name is null", "DefaultRecord")
        used = with_first(b"\x01" + inner[1:])
        yield edit("record-attributes", used, "the attributes of a record are not 0", "DefaultRecord")
    yield edit("section-trailing", _sized(data + b"\0"), "one more byte after the last record", "DefaultRecordBatch")


def _sized(data: bytes) -> bytes:
    """Return a batch with the length and the checksum of its bytes."""
    return with_checksum(data[:8] + struct.pack(">i", len(data) - 12) + data[12:])


def _legacy_edits(made: Draft, edit: Any) -> Iterator[Draft]:
    """Change the first message of several: offset, size, crc, magic, attributes, timestamp in magic 1, key, value."""
    data = made.data
    size = struct.unpack_from(">i", data, 8)[0]
    first, rest = data[: 12 + size], data[12 + size :]
    at = 18 + 8 * made.version
    key = struct.unpack_from(">i", first, at)[0]
    value_at = at + 4 + key
    value = struct.unpack_from(">i", first, value_at)[0]
    for case, place, number in (
        ("key-more", at, key + 1),
        ("key-long", at, 10**6),
        ("key-length-2", at, -2),
        ("value-more", value_at, value + 1),
        ("value-less", value_at, value - 1),
        ("value-long", value_at, 2**31 - 1),
        ("value-length-2", value_at, -2),
    ):
        changed = with_checksum(first[:place] + struct.pack(">i", number) + first[place + 4 :]) + rest
        forbidden = "null has the length -1; sizes fill the message" if number < value or number < key else ""
        yield edit(case, changed, f"the length of the {case.split('-')[0]} says {number}", "LegacyRecord", forbidden)
    if made.version:
        changed = with_checksum(first[:17] + bytes([first[17] | 0xF0]) + first[18:]) + rest
        yield edit("attributes-unused", changed, "unused bits of the attributes are set", "LegacyRecord")


def _wrapper_edits(made: Draft, edit: Any) -> Iterator[Draft]:
    """Change the value of a compressed wrapper message."""
    data = made.data
    at = 18 + 8 * made.version + 4  # the key of a wrapper is null
    content = data[at + 4 :]
    for case, value, reason in (
        ("compressed-cut", content[: len(content) // 2], "the compressed messages end early"),
        ("compressed-garbage", b"\x55" * 20, "not compressed data"),
        ("compressed-nothing", b"", "an empty value instead of messages"),
        ("compressed-null", None, "a null value instead of messages"),
    ):
        length = -1 if value is None else len(value)
        changed = data[:at] + struct.pack(">i", length) + (value or b"")
        changed = changed[:8] + struct.pack(">i", len(changed) - 12) + changed[12:]
        yield edit(case, with_checksum(changed), reason, "AbstractLegacyRecordBatch")


def run_edits(made: list[Draft]) -> Iterator[Draft]:
    """Return runs of several batches, as a Fetch response or a segment has them."""
    by_case = {(each.version, each.case): each for each in made if each.maker == JUDGES[-1]}
    runs = {
        "two": [(2, "none-2-records"), (2, "none-2-records")],
        "codecs": [(2, f"{codec}-5-records") for codec in CODECS[2]],
        "magics": [(0, "none-2-records"), (1, "gzip-2-records"), (2, "lz4-2-records")],
        "magics-back": [(2, "none-2-records"), (1, "none-2-records"), (0, "snappy-2-records")],
        "transaction": [(2, "none-transactional"), (2, "none-control-commit")],
        "aborted": [(2, "none-transactional"), (2, "zstd-idempotent"), (2, "none-control-abort")],
    }
    for case, parts in runs.items():
        data, offset = b"", 0
        for part in parts:
            each = by_case[part].data
            data += each if part[0] < 2 else offset.to_bytes(8, "big") + each[8:]
            offset += 100
        for suffix, changed, reason in (
            ("", data, "several batches"),
            ("-incomplete", data[:-9], "several batches, the last one without its last 9 bytes"),
        ):
            yield Draft(
                chapter="batches",
                type="records",
                version=max(magic for magic, _ in parts),
                case=f"run-{case}{suffix}",
                since="2.1.1",
                until=None,
                maker=JUDGES[-1],
                data=changed,
                judge={"op": "records"},
                encoding="free",
                reason=f"{reason}: {', '.join(name for _, name in parts)}",
                source="MemoryRecords",
            )
