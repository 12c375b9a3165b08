"""Record formats: each magic with each codec, as it may be in the log of a broker."""

from __future__ import annotations

from kwire.conformance.check import Verdict
from kwire.conformance.client.chapters.consumer import numbered
from kwire.conformance.client.judging import acknowledged, consumed, records, told_or, values
from kwire.conformance.client.scenario import Chapter, Steps, expect
from kwire.conformance.client.scripted_log import ScriptedLog
from kwire.conformance.client.stage import Stage, batch
from kwire.conformance.client.task import consume, produce
from kwire.records import Compression, read_batches

__all__ = ["chapter"]

chapter = Chapter("Record formats")
CODECS = {
    0: ("none", "gzip", "snappy", "lz4"),
    1: ("none", "gzip", "snappy", "lz4"),
    2: ("none", "gzip", "snappy", "lz4", "zstd"),
}


def _stored(magic: int, codec: str) -> None:
    def play(s: Stage) -> Steps:
        topic = s.topic()
        data = [
            batch(*(value.encode() for value in values(count, base)), magic=magic, compression=codec, base_offset=base)
            for base, count in ((0, 3), (3, 1), (4, 6))
        ]
        ScriptedLog(*data).play(s.script)
        out = yield consume(topic, 10)
        told_or(out, lambda: consumed(out, numbered(10)))
        out = yield consume(topic, 3, offset=7)
        consumed(out, numbered(3, 7))

    steps = (
        f"The log has batches of 3, 1 and 6 records of magic {magic}, with codec {codec}.",
        "All are delivered, from the beginning and from offset 7, the middle of a batch.",
    )
    title = f"Records of magic {magic} with codec {codec} are delivered"
    chapter.add(f"FORMAT-{magic}-{codec.upper()}", title, "KIP-31; KIP-98; KIP-110", play, steps=steps)


for _magic, _codecs in CODECS.items():
    for _codec in _codecs:
        _stored(_magic, _codec)


def _produced(codec: str) -> None:
    def play(s: Stage) -> Steps:
        topic = s.topic()
        compressible = [{**each, "repeat": 500} for each in records(20)]
        out = yield produce(topic, compressible, compression_type=codec, linger_ms="50", enable_idempotence="false")
        acknowledged(out, 20)
        expect(s.log(topic) == [value * 500 for value in values(20)], "the log has other values than were produced")
        used = {
            each.compression
            for exchange in s.exchanges("Produce")
            for data in exchange.body.topic_data
            for part in data.partition_data
            for each in read_batches(part.records or b"")
        }
        expect(used <= {Compression[codec.upper()], Compression.NONE}, f"batches have {used}")
        expect(Compression[codec.upper()] in used, f"the client compresses nothing with {codec}", Verdict.UNSUPPORTED)

    steps = (f"Produce 20 records of 1 kB with compression.type={codec}.", "The broker reads them all.")
    title = f"Records are produced with codec {codec}"
    chapter.add(f"FORMAT-PRODUCE-{codec.upper()}", title, "KIP-110", play, steps=steps)


for _codec in ("gzip", "snappy", "lz4", "zstd"):
    _produced(_codec)


@chapter.scenario("FORMAT-MIXED", "KIP-31; KIP-98")
def mixed(s: Stage) -> Steps:
    """One response has records of every magic.

    The log of a topic that was written by clients of all times is returned in one response.
    """
    topic = s.topic()
    ScriptedLog(
        batch(b"v0", b"v1", magic=0),
        batch(b"v2", b"v3", magic=1, compression="gzip", base_offset=2),
        batch(b"v4", b"v5", base_offset=4),
        batch(b"v6", magic=1, base_offset=6),
        batch(b"v7", b"v8", compression="lz4", base_offset=7),
    ).play(s.script)
    out = yield consume(topic, 9)
    consumed(out, numbered(9))
