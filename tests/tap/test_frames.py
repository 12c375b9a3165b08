"""Streams of frames: passed in pieces, kept whole, decided on by their first bytes."""

from __future__ import annotations

import pytest

from kwire.errors import Malformed
from kwire.protocol.frames import MAX_FRAME_BYTES
from kwire.tap.frames import MAX_PEEK_BYTES, FrameSplitter, Way

WAYS = {b"p": Way.PASS, b"k": Way.KEEP}


class Sink:
    """Decides by the first byte of a frame, and collects."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.kept: list[bytes] = []
        self.splitter = FrameSplitter(self.decide, self.passed, self.take)

    def decide(self, view: bytes | memoryview, size: int) -> Way:
        return WAYS[bytes(view[4:5])] if len(view) > 4 else Way.PEEK

    def passed(self, data: bytes | memoryview) -> None:
        self.out.append(bytes(data))

    def take(self, frame: bytes) -> None:
        self.out.append(frame)
        self.kept.append(frame)


def frame(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


STREAM = b"".join(map(frame, (b"pass", b"keep", b"k", b"p", b"p" * 300, b"k" * 300, b"", b"pass")))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 100, 1000])
def test_frames_are_the_same_however_the_stream_is_split(size: int) -> None:
    sink = Sink()
    for start in range(0, len(STREAM), size):
        assert not sink.splitter.feed(STREAM[start : start + size])
    assert b"".join(sink.out) == STREAM
    # an empty frame has nothing to decide by: it is kept
    assert sink.kept == [frame(text) for text in (b"keep", b"k", b"k" * 300, b"")]
    assert sink.splitter.is_between_frames


def test_what_is_passed_does_not_wait_for_the_end_of_its_frame() -> None:
    sink = Sink()
    sink.splitter.feed((1 << 30).to_bytes(4, "big") + b"p")
    sink.splitter.feed(b"x" * 10)
    assert b"".join(sink.out) == b"\x40\0\0\0p" + b"x" * 10
    assert not sink.splitter.is_between_frames


@pytest.mark.parametrize(
    ("length", "first", "is_refused"),
    [
        (-1, b"p", True),
        (-(2**31), b"p", True),
        (2**31 - 1, b"p", False),
        (2**31 - 1, b"k", True),
        (MAX_FRAME_BYTES, b"k", False),
        (MAX_FRAME_BYTES + 1, b"k", True),
    ],
)
def test_lengths_at_the_borders(length: int, first: bytes, is_refused: bool) -> None:
    sink = Sink()
    data = length.to_bytes(4, "big", signed=True) + first
    if is_refused:
        with pytest.raises(Malformed, match=f"frame of {length} bytes"):
            sink.splitter.feed(data)
    else:
        assert not sink.splitter.feed(data)


def test_a_pause_returns_the_rest() -> None:
    sink = Sink()
    one, two = frame(b"keep"), frame(b"pass")

    def take(kept: bytes) -> None:
        sink.kept.append(kept)
        splitter.is_paused = True

    splitter = FrameSplitter(sink.decide, sink.passed, take)
    assert bytes(splitter.feed(one + two + one)) == two + one
    assert bytes(splitter.feed(two)) == two
    splitter.is_paused = False
    assert not splitter.feed(two + one)
    assert sink.out == [two]


def test_a_frame_that_cannot_be_decided_on_is_kept_in_one_buffer() -> None:
    sink = Sink()
    splitter = FrameSplitter(lambda view, size: Way.PEEK, sink.passed, sink.take)
    whole = frame(b"x" * (2 * MAX_PEEK_BYTES))
    for start in range(0, len(whole), 1000):
        splitter.feed(whole[start : start + 1000])
        assert len(splitter._head) < MAX_PEEK_BYTES, "it is copied with each piece"
    assert sink.kept == [whole]
    assert splitter.is_between_frames
