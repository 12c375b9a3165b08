"""Logs to compact, built batch by batch: every magic and codec, transactions in every state, idempotent
producers, tombstones, records without key, append times, several segments."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from kwire.log.files.file_names import segment_file
from kwire.records import Compression, ControlRecordType, Record, TimestampType, write_batch, write_transaction_marker

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000


@dataclass(slots=True)
class Producer:
    """An idempotent or transactional producer of a generated log."""

    producer_id: int
    producer_epoch: int = 0
    sequence: int = 0
    is_open: bool = False


@dataclass(slots=True)
class GeneratedLog:
    """A log that grows by random batches. segments: (base offset, bytes), the active one last."""

    random: random.Random
    keys: int = 12
    next_offset: int = 0
    now_ms: int = NOW_MS - 600 * MINUTE_MS
    segments: list[tuple[int, bytearray]] = field(default_factory=lambda: [(0, bytearray())])
    producers: dict[int, Producer] = field(default_factory=dict)

    def roll(self) -> None:
        """Start another segment, sometimes after a gap of offsets."""
        self.next_offset += self.random.choice([0, 0, 0, 5])
        self.segments.append((self.next_offset, bytearray()))

    def records(self, count: int, magic: int, *, gaps: bool = False) -> list[Record]:
        """Return records from the next offset."""
        draw, found = self.random, list[Record]()
        for _ in range(count):
            self.now_ms += draw.randrange(3)
            key = None if draw.random() < 0.03 else b"key-%d" % draw.randrange(self.keys)
            value = None if draw.random() < 0.2 else draw.randbytes(draw.choice([0, 1, 5, 70, 200]))
            headers = [("h", b"x"), ("n", None)] if magic == 2 and draw.random() < 0.2 else []
            timestamp = self.now_ms + draw.choice([0, -500, 70_000])
            found.append(
                Record(
                    offset=self.next_offset,
                    timestamp=timestamp,
                    timestamp_type=TimestampType.CREATE_TIME,
                    key=key,
                    value=value,
                    headers=headers,
                )
            )
            self.next_offset += 1 + (draw.random() < 0.2 if gaps else 0)
        return found

    def append(self, batch: bytes) -> None:
        """Append a batch."""
        self.segments[-1][1].extend(batch)

    def add_plain(self, magic: int = 2) -> None:
        """Append a batch without a producer, or a message set of magic 0 or 1."""
        draw = self.random
        codec = draw.choice([each for each in Compression if magic == 2 or each != Compression.ZSTD])
        append_time = magic > 0 and draw.random() < 0.2
        base = self.next_offset
        records = self.records(draw.choice([1, 2, 7, 40]), magic, gaps=magic < 2 and bool(codec))
        self.append(
            write_batch(
                records,
                magic=magic,
                compression=codec,
                base_offset=base,
                keep_offsets=True,
                timestamp_type=TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME,
                log_append_time_ms=self.now_ms if append_time else -1,
                partition_leader_epoch=draw.choice([0, 3]) if magic == 2 else -1,
            )
        )

    def add_produced(self, producer_id: int, *, is_transactional: bool) -> None:
        """Append a batch of a producer with state."""
        draw = self.random
        producer = self.producers.setdefault(producer_id, Producer(producer_id))
        base = self.next_offset
        records = self.records(draw.choice([1, 3, 9]), 2)
        self.append(
            write_batch(
                records,
                compression=draw.choice(list(Compression)),
                base_offset=base,
                producer_id=producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=producer.sequence,
                is_transactional=is_transactional,
                partition_leader_epoch=3,
            )
        )
        producer.sequence += len(records)
        producer.is_open = is_transactional

    def add_marker(self, producer_id: int, *, commit: bool) -> None:
        """Append a transaction marker, sometimes of a transaction without data."""
        producer = self.producers.setdefault(producer_id, Producer(producer_id))
        if self.random.random() < 0.2:
            producer.producer_epoch += 1
            producer.sequence = 0
        self.append(
            write_transaction_marker(
                ControlRecordType.COMMIT if commit else ControlRecordType.ABORT,
                producer_id=producer_id,
                producer_epoch=producer.producer_epoch,
                base_offset=self.next_offset,
                timestamp=self.now_ms,
                coordinator_epoch=4,
                partition_leader_epoch=3,
            )
        )
        self.next_offset += 1
        producer.is_open = False

    def grow(self, batches: int, *, magics: tuple[int, ...] = (2,), segment_bytes: int = 4000) -> None:
        """Append random batches."""
        draw = self.random
        for _ in range(batches):
            self.now_ms += draw.randrange(MINUTE_MS)
            if len(self.segments[-1][1]) > segment_bytes:
                self.roll()
            kind = draw.random()
            if kind < 0.45 or 2 not in magics:
                self.add_plain(draw.choice(magics))
            elif kind < 0.6:
                self.add_produced(draw.choice([100, 101]), is_transactional=False)
            elif kind < 0.8:
                self.add_produced(draw.choice([200, 201, 202]), is_transactional=True)
            else:
                self.add_marker(draw.choice([200, 201, 202, 203]), commit=draw.random() < 0.5)

    def write(self, directory: Path) -> None:
        """Write the segments, the last one active, with modification times a day apart before NOW_MS."""
        directory.mkdir(parents=True)
        for i, (base_offset, data) in enumerate(self.segments):
            path = directory / segment_file(base_offset, "log")
            path.write_bytes(data)
            modified_ns = (NOW_MS - (len(self.segments) - i) * 1440 * MINUTE_MS) * 1_000_000
            os.utime(path, ns=(modified_ns, modified_ns))


def generated_log(seed: int, *, batches: int = 80, magics: tuple[int, ...] = (2,)) -> GeneratedLog:
    """Return a random log that ends with a separate segment, so that everything before it can be compacted."""
    log = GeneratedLog(random.Random(seed))
    log.grow(batches, magics=magics)
    for producer in list(log.producers.values()):
        if producer.is_open and log.random.random() < 0.8:
            log.add_marker(producer.producer_id, commit=True)
    log.roll()
    log.add_plain(magics[-1])
    return log
