"""Frames of a stream, and the header of each API and version."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from tests import golden

from kwire.errors import DecodeError, Malformed, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.plan import frame_codec
from kwire.protocol import (
    NEED_DATA,
    FrameBuffer,
    read_request,
    read_response,
    request_codec,
    request_key,
    response_codec,
    write_request,
    write_response,
)
from kwire.protocol.frames import FIRST_FRAME_BYTES, KEPT_FRAMES, LEAST_KEPT_BYTES, MOST_KEPT_BYTES, FrameMemory


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


FRAMES = [frame(bytes([i]) * n) for i, n in enumerate((0, 1, 4, 100, 5000, 3))]


def cut(stream: bytes, sizes: Any) -> list[bytes]:
    pieces, start = [], 0
    while start < len(stream):
        size = next(sizes)
        pieces.append(stream[start : start + size])
        start += size
    return pieces


@pytest.mark.requirement("W-87")
@pytest.mark.parametrize("seed", ["whole", "bytes", *range(20)])
def test_frames_are_the_same_for_any_split_of_the_stream(seed: str | int) -> None:
    stream, draw = b"".join(FRAMES), random.Random(seed)
    sizes = {"whole": iter([len(stream)]), "bytes": iter(lambda: 1, 0)}.get(str(seed))
    buffer, found = FrameBuffer(), []
    for piece in cut(stream, sizes or iter(lambda: draw.randrange(1, 50), 0)):
        buffer.append(piece)
        while (one := buffer.next_frame()) is not NEED_DATA:
            found.append(one)
    assert found == FRAMES
    assert len(buffer) == 0
    assert buffer.next_frame() is NEED_DATA


def test_a_frame_does_not_wait_for_the_next_one() -> None:
    buffer = FrameBuffer()
    buffer.append(FRAMES[2] + FRAMES[3][:-1])
    assert buffer.next_frame() == FRAMES[2]
    assert buffer.next_frame() is NEED_DATA
    buffer.append(FRAMES[3][-1:])
    assert buffer.next_frame() == FRAMES[3]


def test_frames_have_a_maximum_size() -> None:
    buffer = FrameBuffer(max_frame_bytes=10)
    buffer.append(frame(bytes(10)))
    assert buffer.next_frame() == frame(bytes(10))
    for size in (11, -1, 2**31 - 1, -(2**31)):
        buffer = FrameBuffer(max_frame_bytes=10)
        buffer.append(struct.pack(">i", size))  # before any other byte
        with pytest.raises(Malformed, match=f"frame of {size} bytes"):
            buffer.next_frame()


def test_need_data_is_false_and_has_a_repr() -> None:
    assert not NEED_DATA
    assert repr(NEED_DATA) == "NEED_DATA"


@pytest.mark.slow
@pytest.mark.requirement("W-80", "W-81", "W-82", "W-86", "W-87", "S482-24", "S482-26", "S482-28", "S482-29")
def test_every_api_and_version_has_kafkas_headers() -> None:
    """The length of the header shows its version; the two exceptions are among the lines."""
    count = 0
    for line in golden.lines("headers.jsonl"):
        api_key, version, kafka = line["apiKey"], line["version"], line["kafka"]
        request, response = registry.request(api_key, kafka), registry.response(api_key, kafka)
        if version in request.VALID_VERSIONS:
            assert request.SPEC.header_version(version) == line["request_header_version"]
            header: Any = registry.get("RequestHeader")(
                request_api_key=api_key, request_api_version=version, correlation_id=7, client_id="me"
            )
            expected = header.encode(version=max(1, line["request_header_version"]))
            if line["request_header_version"] == 0:
                expected = expected[:8]
                header.client_id = None
            try:
                body = request().encode(version=version)
            except Exception:  # some requests cannot be encoded with all defaults
                body = None
            if body is not None:
                codec = request_codec(api_key, version, kafka)
                assert codec.encode((header, request())) == frame(expected + body)
                assert codec.decode(frame(expected + body))[1] == request()
        if version in response.VALID_VERSIONS:
            assert response.SPEC.header_version(version) == line["response_header_version"]
            tagged = b"\0" if line["response_header_version"] else b""
            answer: Any = registry.get("ResponseHeader")(correlation_id=7)
            body = response().encode(version=version)
            assert response_codec(api_key, version, kafka).encode((answer, response())) == frame(
                struct.pack(">i", 7) + tagged + body
            )
        count += 1
    assert count == 632


@pytest.mark.requirement("W-84")
def test_the_first_four_bytes_are_api_key_and_version() -> None:
    assert request_key(frame(bytes.fromhex("0003 0009 00000001"))) == (3, 9)
    for short in range(4):
        with pytest.raises(Truncated, match=f"request of {short} bytes"):
            request_key(frame(bytes(short)))


def test_unknown_apis_and_versions_have_no_codec() -> None:
    for codec_of in (request_codec, response_codec):
        for api_key, version in ((30_000, 0), (-1, 0), (3, 99), (3, -1)):
            with pytest.raises(UnsupportedVersion):
                codec_of(api_key, version)


def test_a_frame_must_end_at_its_length() -> None:
    codec = response_codec(18, 0)
    header: Any = registry.get("ResponseHeader")(correlation_id=1)
    wire = codec.encode((header, registry.response(18)()))
    for broken in (
        wire[:-1],
        wire + b"x",
        frame(wire[4:] + b"x"),
        frame(wire[4:-1]),
        b"\xff\xff\xff\xff" + wire[4:],
        wire[:3],
    ):
        with pytest.raises(DecodeError):
            codec.decode(broken)
    assert codec.decode_from(wire + b"next", 0)[1] == len(wire)


class Stream:
    """A socket's recv_into over bytes, in pieces of up to `most` bytes."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.most = data, most

    def recv_into(self, room: memoryview) -> int:
        piece = self.data[: min(self.most, len(room))]
        self.data = self.data[len(piece) :]
        room[: len(piece)] = piece
        return len(piece)


@pytest.mark.sampled
@pytest.mark.parametrize("most", [1, 7, 1000, 1 << 20])
def test_buffers_that_share_a_scratch_receive_the_same_frames(most: int) -> None:
    """Small frames are copied from the scratch buffer, large ones received into their own memory."""
    scratch = bytearray(1 << 10)
    frames = [*FRAMES, frame(random.Random(1).randbytes(300_000)), *FRAMES] if most > 1 else FRAMES
    pairs = [(FrameBuffer(scratch=scratch), Stream(b"".join(frames), most)) for _ in range(3)]
    found: list[list[bytes | memoryview]] = [[] for _ in pairs]
    while any(stream.data for _, stream in pairs):
        for (buffer, stream), mine in zip(pairs, found, strict=True):
            buffer.receive(stream.recv_into)
            while (one := buffer.next_frame()) is not NEED_DATA:
                mine.append(one)  # type: ignore[arg-type]
            buffer.release_scratch()
    assert found == [frames, frames, frames]
    assert [len(buffer) for buffer, _ in pairs] == [0, 0, 0]


def test_a_large_frame_takes_memory_as_its_bytes_arrive() -> None:
    """The length alone reserves nothing; a refusal pauses the frame until the next call."""
    allowed, reserved = [False], list[int]()

    def reserve(size: int) -> bool:
        if allowed[0]:
            reserved.append(size)
        return allowed[0]

    data = frame(bytes(1_000_000))
    buffer = FrameBuffer(reserve=reserve)
    buffer.append(data[:4])
    assert buffer.next_frame() is NEED_DATA
    assert not buffer.is_paused
    buffer.append(data[4:])
    assert buffer.next_frame() is NEED_DATA
    assert buffer.is_paused
    assert len(buffer) == len(data)
    allowed[0] = True
    assert buffer.next_frame() == data
    assert not buffer.is_paused
    assert sum(reserved) == len(data) - FIRST_FRAME_BYTES


def test_trailing_bytes_are_an_error_unless_allowed() -> None:
    """librdkafka's Metadata requests have some; Kafka ignores them."""
    request: Any = registry.get("MetadataRequest")(topics=None)
    data, sent = write_request(request, 9, correlation_id=5, client_id="rdkafka")
    trailing = frame(data[4:] + b"more")
    for kernels in (False, True):
        header = registry.get("RequestHeader")
        codec = frame_codec(header.SPEC, 2, header, type(request).SPEC, 9, type(request), kernels=kernels)
        with pytest.raises(Malformed, match="4 bytes"):
            codec.decode(trailing)
        assert codec.decode(trailing, allow_trailing=True) == (sent.header, request)
        assert codec.decode(data, allow_trailing=True) == (sent.header, request)
    with pytest.raises(Malformed):
        read_request(trailing)
    found = read_request(trailing, allow_trailing=True)
    assert (found.body, found.correlation_id, found.size_bytes) == (request, 5, len(trailing))


def test_a_response_belongs_to_its_request() -> None:
    _, sent = write_request(registry.get("MetadataRequest")(), 9, correlation_id=5)
    body: Any = registry.get("MetadataResponse")(controller_id=3)
    data = write_response(body, api_key=3, version=9, correlation_id=5)
    assert read_response(data, sent).body == body
    for broken in (data[:8], data[:7], write_response(body, api_key=3, version=9, correlation_id=6), data + b"x"):
        with pytest.raises(DecodeError):
            read_response(broken, sent)


def received(buffer: FrameBuffer, data: bytes, most: int = 1 << 20) -> memoryview:
    """Receive one large frame."""
    stream = Stream(data, most)
    while (one := buffer.next_frame()) is NEED_DATA:
        assert buffer.receive(stream.recv_into)[0]
    assert isinstance(one, memoryview)
    return one


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(10))
def test_memory_is_used_again_when_no_view_of_its_frame_is_left(seed: int) -> None:
    """Frames that are held, whole or in part, keep their bytes whatever arrives after them."""
    draw, memory = random.Random(seed), FrameMemory()
    buffers = [FrameBuffer(memory=memory) for _ in range(2)]
    held: list[tuple[memoryview, bytes]] = []
    for _ in range(60):
        data = frame(draw.randbytes(draw.choice([300_000, 300_001, 600_000, 1_000_000])))
        view = received(draw.choice(buffers), data, draw.choice([5000, 70_000, 1 << 20]))
        assert view == data
        start = draw.randrange(len(data))
        if draw.random() < 0.7:
            held.append((view[start : start + 1000], data[start : start + 1000]))
        while len(held) > draw.randrange(5):
            held.pop(draw.randrange(len(held)))
        del view
        assert all(part == expected for part, expected in held)


def test_the_memory_of_two_frames_is_kept() -> None:
    buffer, data = FrameBuffer(memory=FrameMemory()), frame(bytes(500_000))
    views = [received(buffer, data) for _ in range(KEPT_FRAMES + 1)]
    places = [id(each.obj) for each in views]
    assert len(set(places)) == KEPT_FRAMES + 1
    part = views.pop()[-1:]
    views.clear()
    smaller = received(buffer, frame(bytes(400_000)))
    assert id(smaller.obj) == places[1]  # those of the first one are not kept, the last one is in use
    assert len(smaller) == 400_004
    del part
    assert id(received(buffer, data).obj) == places[2]


def test_memory_is_not_used_again_while_there_is_a_reference_without_a_view() -> None:
    buffer, data = FrameBuffer(memory=FrameMemory()), frame(bytes(500_000))
    held = received(buffer, data).obj
    assert received(buffer, frame(b"x" * 500_000)).obj is not held
    assert held == data


@pytest.mark.parametrize(
    ("first", "second", "is_kept"),
    [
        (LEAST_KEPT_BYTES - 1, LEAST_KEPT_BYTES, False),
        (LEAST_KEPT_BYTES, LEAST_KEPT_BYTES, True),
        (MOST_KEPT_BYTES, MOST_KEPT_BYTES, True),
        (MOST_KEPT_BYTES + 1, MOST_KEPT_BYTES, False),
        (1_000_000, 500_000, True),
        (1_000_000, 499_999, False),
        (1_000_000, 9_000_000, True),
    ],
)
def test_memory_is_kept_and_used_for_frames_of_a_similar_size(first: int, second: int, is_kept: bool) -> None:
    memory = FrameMemory()
    kept = bytearray(first)
    place = id(kept)
    memory.keep(kept)
    del kept
    found = memory.take(second)
    assert (found is not None) == is_kept
    assert found is None or id(found) == place
    assert memory.take(second) is None


def test_memory_is_not_used_again_by_default() -> None:
    buffer, data = FrameBuffer(), frame(bytes(500_000))
    first = received(buffer, data).obj
    assert received(buffer, data).obj is not first
