"""Orders of 10 fields for the benchmarks of Avro, Protobuf and JSON values: even rows and varied rows.

Even rows resemble each other: short strings of ASCII, every fourth with a note. Varied rows give no reader or branch
predictor anything to learn: integers of any number of bytes, strings of 0 to 300 characters, one in ten not ASCII,
some with characters that JSON escapes; half of the notes are null.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

ROWS = 20_000
"""Rows that kwire and its peers get alike: two Arrow batches of Spark."""
STATUSES = ("NEW", "PAID", "SENT", "DONE")
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("leave", "at", "the", "door", "please", "call", "second", "floor", "fragile", "before", "noon")
OTHER_WORDS = ("Größe", "naïve", "東京", "Łódź", "✓", "emoji 🚚")
ESCAPED_WORDS = ('"gift"', "a\\b", "tab\there", "two\nlines")


@dataclass(frozen=True, slots=True)
class Order:
    """A row. created: to the millisecond; weight: a number of 32 bits."""

    id: int
    customer: str
    amount: float
    quantity: int
    paid: bool
    note: str | None
    created: datetime
    status: int
    token: bytes
    weight: float


def even_orders(count: int = ROWS) -> list[Order]:
    """Return rows of one shape."""
    return [
        Order(
            i * 1_000_003,
            f"customer {i % 5000}",
            i * 1.25,
            i % 100,
            i % 3 == 0,
            None if i % 4 else f"leave order {i} at the door",
            START + timedelta(milliseconds=37 * i),
            i % 4,
            (i * 2654435761 % 2**64).to_bytes(8, "big"),
            i * 0.5,
        )
        for i in range(count)
    ]


def varied_orders(count: int = ROWS) -> list[Order]:
    """Return rows of different shapes, the same each time."""
    source = random.Random(5)
    return [
        Order(
            source.getrandbits(source.randrange(1, 63)),
            text(source, min(int(source.lognormvariate(2.3, 0.9)), 120)),
            round(source.lognormvariate(4, 2), 2),
            source.getrandbits(source.randrange(1, 31)),
            source.random() < 0.5,
            None if source.random() < 0.5 else text(source, min(int(source.lognormvariate(3.5, 0.9)), 300)),
            START + timedelta(milliseconds=source.randrange(10**10)),
            source.choice((0, 0, 0, 1, 2, 3)),
            source.randbytes(source.randrange(40)),
            struct.unpack("<f", struct.pack("<f", source.random() * 1000))[0],
        )
        for _ in range(count)
    ]


def text(source: random.Random, length: int) -> str:
    """Return words of at most `length` characters."""
    kinds = source.choices((WORDS, OTHER_WORDS, ESCAPED_WORDS), (85, 10, 5))[0]
    return " ".join(source.choice(kinds if source.random() < 0.3 else WORDS) for _ in range(length // 3 + 1))[:length]


ORDERS: dict[str, Callable[[], list[Order]]] = {"even": even_orders, "varied": varied_orders}
