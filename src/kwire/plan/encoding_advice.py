"""Sizes of the integers in many messages by KIP-625 encoding, and the best encoding of each field.

    tally = EncodingTally()
    tally.add(MetadataResponse.SPEC, 9, body) ...        bodies of any messages and versions, mixed
    tally.rows()                                         a row per message, version and field

The size of a tally depends only on the number of fields. Tallies serialize to JSON; merging the tallies of many files
or machines gives exact totals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.errors import DecodeError
from kwire.extras import needing
from kwire.schema.encoding_costs import IntegerCounts
from kwire.wire.integer_encoding import ENCODINGS, FORMS

if TYPE_CHECKING:
    from kwire.plan.integer_columns import IntegerField
    from kwire.schema.model import Message

__all__ = ["EncodingTally", "MessageTally", "advice_row"]

Row = dict[str, Any]
WAITING_BYTES = 4 << 20  # bodies of one message and version that are read as columns together


@dataclass(slots=True, kw_only=True)
class MessageTally:
    """One version of one message. size_bytes: of the bodies counted; unreadable: the number that do not decode."""

    bodies: int = 0
    size_bytes: int = 0
    unreadable: int = 0
    counts: dict[str, IntegerCounts] = field(default_factory=dict)

    def merge(self, other: MessageTally) -> None:
        """Add the counts of another tally."""
        self.bodies += other.bodies
        self.size_bytes += other.size_bytes
        self.unreadable += other.unreadable
        for path, counts in other.counts.items():
            self.counts[path] = self.counts.get(path, IntegerCounts()) + counts


@dataclass(slots=True)
class EncodingTally:
    """Counts by message and version. specs: the definitions of the messages."""

    messages: dict[tuple[str, int], MessageTally] = field(default_factory=dict)
    specs: dict[str, Message] = field(default_factory=dict)
    _waiting: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    _waiting_bytes: int = 0

    def add(self, spec: Message, version: int, body: bytes) -> None:
        """Count a body, possibly later, because many bodies are read together."""
        self.specs[spec.name] = spec
        self._waiting.setdefault((spec.name, version), []).append(body)
        self._waiting_bytes += len(body)
        if self._waiting_bytes >= WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Count the waiting bodies."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        for (name, version), bodies in waiting.items():
            tally = self.messages.setdefault((name, version), MessageTally())
            tally.merge(count_bodies(self.specs[name], version, bodies))

    def to_json(self) -> list[Row]:
        """Convert to JSON, without the definitions."""
        self.flush()
        return [{"message": name, "version": version} | asdict(each) for (name, version), each in self.messages.items()]

    def merge_json(self, rows: list[Row], specs: dict[str, Message]) -> None:
        """Add another tally's to_json(). specs: the definitions of its messages."""
        self.specs.update(specs)
        for row in rows:
            key = row["message"], row["version"]
            counts = {
                path: IntegerCounts(**{**each, "natural": tuple(each["natural"]), "negative": tuple(each["negative"])})
                for path, each in row["counts"].items()
            }
            tally = MessageTally(
                bodies=row["bodies"], size_bytes=row["size_bytes"], unreadable=row["unreadable"], counts=counts
            )
            self.messages.setdefault(key, MessageTally()).merge(tally)

    def rows(self) -> Iterator[Row]:
        """Yield the advice_row of every field with values, with `message`, `version` and `bodies`."""
        with needing("counts of integers"):
            from kwire.plan.integer_columns import integer_fields

        self.flush()
        for (name, version), tally in sorted(self.messages.items()):
            for each in integer_fields(self.specs[name], version):
                counts = tally.counts.get(each.path)
                if counts is not None and counts.count:
                    about = {"message": name, "version": version, "bodies": tally.bodies}
                    yield about | advice_row(each, version, counts)


def count_bodies(spec: Message, version: int, bodies: list[bytes]) -> MessageTally:
    """Count bodies of one version. Unreadable ones are found by halving the list."""
    with needing("counts of integers"):
        from kwire.plan.integer_columns import count_fields, integer_fields

    fields = integer_fields(spec, version)
    try:
        counts = count_fields(spec, version, fields, bodies)
        return MessageTally(bodies=len(bodies), size_bytes=sum(map(len, bodies)), counts=counts)
    except DecodeError:
        if len(bodies) == 1:
            return MessageTally(unreadable=1)
    tally = MessageTally()
    half = len(bodies) // 2
    for part in (bodies[:half], bodies[half:]):
        tally.merge(count_bodies(spec, version, part))
    return tally


def advice_row(each: IntegerField, version: int, counts: IntegerCounts) -> Row:
    """Return the values of a field and its size in each encoding, as JSON types.

    best: the smallest of the field's width; on a tie the current one, then the simplest.
    saved_bytes: savings of best. encodings: bytes by name, None where a number does not fit.
    """
    field = each.field
    bits = int(field.type.removeprefix("int"))
    now = field.wire_type(version)
    costs = {name: counts.bytes_as(encoding) for name, encoding in ENCODINGS.items() if encoding.bits <= bits}
    candidates = dict.fromkeys((now, *(f"{form}{bits}" for form in FORMS)))
    best = min(candidates, key=lambda name: costs[name] or 0) if counts.count else now
    packed = ENCODINGS[f"packed{bits}"]
    return {
        "path": f"{each.path}[]" if field.is_array else each.path,
        "type": field.type,
        "bits": bits,
        "encoding": now,
        "values": counts.count,
        "smallest": counts.smallest,
        "largest": counts.largest,
        "negative": counts.negatives,
        "bytes": costs[now],
        "encodings": costs,
        "best": best,
        "saved_bytes": (costs[now] or 0) - (costs[best] or 0),
        "packed_sizes": {str(size): n for size, n in counts.sizes(packed).items()},
        "unsigned_bits": {str(i): n for i, n in enumerate(counts.natural) if n},
        "negative_bits": {str(i): n for i, n in enumerate(counts.negative) if n},
    }
