"""What are the cost and compression ratio of the codecs and their levels, on data typical for topics?

Three kinds of records: JSON events, log lines, and small binary readings (Avro-like). Batches of 16 KB and of 1 MB.
Prints a line per codec, level and kind: ratio (uncompressed by compressed bytes) and CPU speed of the compressor and
decompressor, in MB/s of uncompressed bytes. `python -m benchmarks.records.compression page` also draws
docs/compression.svg and updates the table in docs/compression.md.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kwire.records import Compression, Record, TimestampType, read_batches, write_batches
from kwire.records.compression.codecs import expand_into, largest_room
from kwire.records.compression.compressor import compress_into, largest_compressed

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- figures: python -m benchmarks.records.compression page -->", "<!-- end of figures -->"
LEVELS: list[tuple[Compression, int | None]] = [
    (Compression.SNAPPY, None),
    (Compression.LZ4, None),
    (Compression.LZ4, 3),
    (Compression.LZ4, 6),
    (Compression.LZ4, 12),
    (Compression.GZIP, None),
    (Compression.GZIP, 1),
    (Compression.GZIP, 6),
    (Compression.GZIP, 9),
    (Compression.ZSTD, -5),
    (Compression.ZSTD, 1),
    (Compression.ZSTD, 3),
    (Compression.ZSTD, 6),
    (Compression.ZSTD, 12),
]
BATCH_SIZES = {"16 KB": 16384, "1 MB": 1 << 20}
BYTES_OF_A_KIND = 3 << 20
RUNS = 3
MIN_NS = 40_000_000  # of CPU time in a run

VERBS = ("opened", "closed", "updated", "viewed", "shared", "removed")
PATHS = ("/api/v1/orders", "/api/v1/users", "/health", "/static/app.js", "/api/v2/search?q=")


class Figure(NamedTuple):
    """The figures of a codec and level on a kind of data. Speeds in MB/s of uncompressed bytes."""

    kind: str
    batch: str
    codec: Compression
    level: int | None
    ratio: float
    compress: float
    decompress: float

    @property
    def label(self) -> str:
        """Return the codec and level as text."""
        return self.codec.text if self.level is None else f"{self.codec.text} {self.level}"


def json_event(source: random.Random, number: int) -> bytes:
    """Return an event of a web shop, about 300 bytes."""
    return (
        f'{{"event_id":"{source.getrandbits(64):016x}","type":"item_{source.choice(VERBS)}","user_id":'
        f'{source.randrange(50_000)},"session":"{source.randrange(4000):08x}","ts":"2026-03-14T09:'
        f'{number // 6000 % 60:02d}:{number // 100 % 60:02d}.{number % 1000:03d}Z",'
        f'"price":{source.randrange(1, 90_000) / 100},"currency":"EUR",'
        f'"tags":["{source.choice(VERBS)}","{source.choice(VERBS)}"],'
        f'"device":{{"os":"{source.choice(("ios", "android"))}",'
        f'"version":"{source.randrange(10, 18)}.{source.randrange(5)}"}}}}'
    ).encode()


def log_line(source: random.Random, number: int) -> bytes:
    """Return a line of a web server's log, about 150 bytes."""
    address = f"10.{source.randrange(4)}.{source.randrange(256)}.{source.randrange(256)}"
    request = f"GET {source.choice(PATHS)}{source.randrange(9999)} HTTP/1.1"
    status = source.choice((200, 200, 200, 304, 404, 500))
    time_of_day = f"09:{number // 6000 % 60:02d}:{number // 100 % 60:02d}"
    return (
        f'{address} - - [14/Mar/2026:{time_of_day} +0000] "{request}" {status} {source.randrange(20_000)} "-" '
        f'"Mozilla/5.0 (X11)" {source.expovariate(8):.3f}'
    ).encode()


def binary_reading(source: random.Random, number: int) -> bytes:
    """Return a sensor reading of 34 bytes, half of them noise."""
    return struct.pack(
        ">IQdfhB7s",
        source.randrange(2000),
        1_773_479_000_000 + number * 10,
        20 + source.gauss(0, 3),
        source.random(),
        source.randrange(-300, 300),
        source.randrange(3),
        b"celsius",
    )


KINDS: dict[str, Callable[[random.Random, int], bytes]] = {
    "JSON events": json_event,
    "log lines": log_line,
    "binary readings": binary_reading,
}


def sections(kind: str, batch_size: int) -> list[bytes]:
    """Return the record sections of uncompressed batches."""
    source, make = random.Random(1), KINDS[kind]
    records, size = [], 0
    while size < BYTES_OF_A_KIND:
        value = make(source, len(records))
        records.append(
            Record(
                offset=0,
                timestamp=1_773_479_000_000 + len(records),
                timestamp_type=TimestampType.CREATE_TIME,
                key=b"%08d" % source.randrange(50_000),
                value=value,
                headers=[],
            )
        )
        size += len(value) + 16
    data = b"".join(write_batches(records, batch_size=batch_size))
    return [bytes(batch.buffer[61:]) for batch in read_batches(data)]


def megabytes_a_second(work: Callable[[], object], n_bytes: int) -> float:
    """Return the speed of the fastest run, by CPU time."""
    best, rounds = float("inf"), 1
    for _ in range(RUNS):
        start, rounds = time.process_time_ns(), 0
        while rounds == 0 or time.process_time_ns() - start < MIN_NS:
            work()
            rounds += 1
        best = min(best, (time.process_time_ns() - start) / rounds)
    return n_bytes / best * 1000


def measure(kind: str, batch: str) -> list[Figure]:
    """Measure all codecs and levels on a kind of data."""
    payloads = [memoryview(section) for section in sections(kind, BATCH_SIZES[batch])]
    n_bytes = sum(map(len, payloads))
    room = memoryview(bytearray(largest_room(max(map(len, payloads)))))
    figures = []
    for codec, level in LEVELS:
        target = memoryview(bytearray(largest_compressed(codec, max(map(len, payloads)))))

        def pack(codec: Compression = codec, level: int | None = level, target: memoryview = target) -> int:
            return sum(compress_into(codec, payload, target, level=level) for payload in payloads)

        packed = [
            memoryview(bytes(target[: compress_into(codec, payload, target, level=level)])) for payload in payloads
        ]

        def unpack(codec: Compression = codec, packed: list[memoryview] = packed) -> int:
            return sum(expand_into(codec, 2, payload, room) for payload in packed)

        assert unpack() == n_bytes
        figures.append(
            Figure(
                kind,
                batch,
                codec,
                level,
                n_bytes / sum(map(len, packed)),
                megabytes_a_second(pack, n_bytes),
                megabytes_a_second(unpack, n_bytes),
            )
        )
    return figures


def all_figures() -> list[Figure]:
    """Measure everything and print each figure: name value unit ratio peer."""
    found = []
    for kind in KINDS:
        for batch in BATCH_SIZES:
            for figure in measure(kind, batch):
                found.append(figure)
                name = f"compression/{kind}/{batch}/{figure.label}".replace(" ", "_")
                print(f"{name}/ratio {figure.ratio:.2f} x - -")
                print(f"{name}/compress {figure.compress:.0f} MB/s - -")
                print(f"{name}/decompress {figure.decompress:.0f} MB/s - -", flush=True)
    return found


def table(figures: list[Figure]) -> str:
    """Return a Markdown table for each kind of data."""
    parts = []
    for kind in KINDS:
        rows = [f for f in figures if f.kind == kind]
        lines = [
            f"**{kind[0].upper()}{kind[1:]}**",
            "",
            "| codec, level | ratio 16 KB | 1 MB | compress MB/s, 16 KB | 1 MB | decompress MB/s, 16 KB | 1 MB |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for small, large in zip(rows[: len(LEVELS)], rows[len(LEVELS) :], strict=True):
            name = small.label if small.level is not None else f"{small.codec.text} (default)"
            lines.append(
                f"| {name} | {small.ratio:.2f} | {large.ratio:.2f} | {small.compress:.0f} | {large.compress:.0f} "
                f"| {small.decompress:.0f} | {large.decompress:.0f} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def write_page() -> None:
    """Measure, draw the chart and update the table of the page."""
    from benchmarks.records.compression_chart import chart

    figures = all_figures()
    (DOCS / "compression.svg").write_text(chart([f for f in figures if f.batch == "16 KB"]))
    page = DOCS / "compression.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{table(figures)}\n\n{END}{after}")


def main() -> None:
    """Print all figures."""
    all_figures()


if __name__ == "__main__":
    write_page() if sys.argv[1:] == ["page"] else main()
