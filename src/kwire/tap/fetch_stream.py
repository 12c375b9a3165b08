"""Fetch responses that are too large to be held: passed on as they arrive, without the addresses in them.

From version 16 on, tag 0 at the end of a response has the addresses of new leaders (KIP-951), by which a client would
get past the tap. Its length cannot change, as that of the frame has been sent. So the tag gets a number that no client
knows: clients ignore it and ask for metadata, as they do of older brokers. Records are skipped, not read.

    header          correlation id, tags
    response        throttle time, error, session id; topics, each with partitions; tags
    partition       index, error, three offsets; aborted transactions; preferred replica; records; tags

Source: FetchResponse.json 4.4.0; KIP-482 for compact types and tags.
"""

from __future__ import annotations

from collections.abc import Generator

from kwire.errors import Malformed

__all__ = ["FIRST_WITH_ADDRESSES", "FetchStream"]

FIRST_WITH_ADDRESSES = 16
ADDRESSES_TAG, UNKNOWN_TAG = 0, 127
LENGTH_AND_CORRELATION_ID = 8
BEFORE_TOPICS, TOPIC_ID, BEFORE_ABORTED, ABORTED, REPLICA = 4 + 2 + 4, 16, 4 + 2 + 3 * 8, 2 * 8, 4
MAX_VARINT_BYTES = 5

Data = bytes | memoryview
Steps = Generator[int, int, None]
"""What comes next: yields a number of bytes to skip, or 0 for one byte, which is sent."""


class FetchStream:
    """A response of version 16 or later, in pieces. size: of the frame, with its length."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._position = 0
        self._skipped = 0  # remaining bytes to skip
        self._tag_at = -1
        self._has_ended = False
        self._steps = self._response()
        self._skipped = next(self._steps)

    @property
    def is_complete(self) -> bool:
        """Whether all of the frame has been fed."""
        return not self._left

    def feed(self, data: Data) -> Data:
        """Return the next piece as it may be sent; it has the same length. Raises Malformed."""
        start, edits, place, end = self._position, [], 0, len(data)
        self._left -= end
        while place < end:
            if self._has_ended:
                raise Malformed("response is longer than its content", self._position)
            if self._skipped:
                taken = min(self._skipped, end - place)
                self._skipped -= taken
                place += taken
                self._position = start + place
                if self._skipped:
                    break
                self._next(None)
                continue
            value = data[place]
            place += 1
            self._position = start + place
            self._tag_at = -1
            self._next(value)
            if self._tag_at >= 0:
                edits.append(self._tag_at - start)
        if self._has_ended is not self.is_complete:
            raise Malformed("response ends before its content, or after it", self._position)
        if not edits:
            return data
        changed = bytearray(data)
        for each in edits:
            changed[each] = UNKNOWN_TAG
        return bytes(changed)

    def _next(self, value: int | None) -> None:
        """Go on with a byte, or after skipped ones."""
        try:
            self._skipped = next(self._steps) if value is None else self._steps.send(value)
        except StopIteration:
            self._has_ended = True

    def _response(self) -> Steps:
        yield LENGTH_AND_CORRELATION_ID
        yield from self._tags()
        yield BEFORE_TOPICS
        for _ in range((yield from self._count())):
            yield TOPIC_ID
            for _ in range((yield from self._count())):
                yield BEFORE_ABORTED
                for _ in range((yield from self._count())):
                    yield ABORTED
                    yield from self._tags()
                yield REPLICA
                yield from self._skip((yield from self._count()))
                yield from self._tags()
            yield from self._tags()
        yield from self._tags(at_end=True)

    def _tags(self, *, at_end: bool = False) -> Steps:
        for _ in range((yield from self._varint())):
            number = yield from self._varint()
            if at_end and number == ADDRESSES_TAG:
                self._tag_at = self._position - 1
            yield from self._skip((yield from self._varint()))

    def _skip(self, size: int) -> Steps:
        if size:
            yield size

    def _count(self) -> Generator[int, int, int]:
        """Read the length of a compact array or of compact bytes; null counts as empty."""
        return max(0, (yield from self._varint()) - 1)

    def _varint(self) -> Generator[int, int, int]:
        value = 0
        for shift in range(0, 7 * MAX_VARINT_BYTES, 7):
            byte = yield 0
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Malformed("unsigned varint above 32 bits", self._position)
