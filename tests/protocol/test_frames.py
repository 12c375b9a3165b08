"""Frames: cut from any stream, with the header that each API and version has."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from tests import golden

from kwire.errors import DecodeError, Malformed, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.protocol import NEED_DATA, FrameBuffer, request_codec, request_key, response_codec


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
def test_frames_come_out_of_any_split_of_the_stream(seed: str | int) -> None:
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


def test_a_frame_is_not_held_up_by_the_next_one() -> None:
    buffer = FrameBuffer()
    buffer.append(FRAMES[2] + FRAMES[3][:-1])
    assert buffer.next_frame() == FRAMES[2]
    assert buffer.next_frame() is NEED_DATA
    buffer.append(FRAMES[3][-1:])
    assert buffer.next_frame() == FRAMES[3]


def test_frames_have_a_largest_size() -> None:
    buffer = FrameBuffer(max_frame_bytes=10)
    buffer.append(frame(bytes(10)))
    assert buffer.next_frame() == frame(bytes(10))
    for size in (11, -1, 2**31 - 1, -(2**31)):
        buffer = FrameBuffer(max_frame_bytes=10)
        buffer.append(struct.pack(">i", size))  # before any of it has come
        with pytest.raises(Malformed, match=f"frame of {size} bytes"):
            buffer.next_frame()


def test_need_data_is_false_and_says_its_name() -> None:
    assert not NEED_DATA
    assert repr(NEED_DATA) == "NEED_DATA"


@pytest.mark.requirement("W-80", "W-81", "W-82", "W-86", "W-87", "S482-24", "S482-26", "S482-28", "S482-29")
def test_every_api_and_version_has_kafkas_headers() -> None:
    """The header's length in an empty frame tells its version; the two exceptions are among the lines."""
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
            except Exception:  # some requests cannot be written with all defaults
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
def test_the_first_four_bytes_say_what_a_request_is() -> None:
    assert request_key(frame(bytes.fromhex("0003 0009 00000001"))) == (3, 9)
    for short in range(4):
        with pytest.raises(Truncated, match=f"request of {short} bytes"):
            request_key(frame(bytes(short)))


def test_unknown_apis_and_versions_have_no_codec() -> None:
    for codec_of in (request_codec, response_codec):
        for api_key, version in ((30_000, 0), (-1, 0), (3, 99), (3, -1)):
            with pytest.raises(UnsupportedVersion):
                codec_of(api_key, version)


def test_a_frame_must_end_where_its_length_says() -> None:
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
