"""Streams from segments in any order, with retransmissions and holes."""

from __future__ import annotations

import random

import pytest

from kwire.capture.reassembly import PATIENCE_NS, Hole, Piece, TcpStream


def joined(parts: list[Piece | Hole]) -> bytes:
    """Return the stream with holes as question marks, after checking that its parts are contiguous."""
    out = b""
    for part in parts:
        assert part.position == len(out)
        out += part.data if isinstance(part, Piece) else b"?" * part.size_bytes
    return out


@pytest.mark.parametrize("start", [0, 5, 2**32 - 20])
def test_any_order_repeats_and_overlaps_give_the_stream_once(start: int) -> None:
    stream = bytes(range(100))
    for seed in range(50):
        rng = random.Random(seed)
        pieces = [(at, at + rng.randint(10, 30)) for at in range(0, 100, 10)]
        pieces += [(rng.randint(0, 90), rng.randint(91, 100)) for _ in range(3)]
        rng.shuffle(pieces)
        tcp = TcpStream()
        tcp.start((start - 1) % 2**32)
        parts: list[Piece | Hole] = []
        for a, b in pieces:
            parts += tcp.add((start + a) % 2**32, stream[a:b], 0, 0)
        parts += tcp.finish()
        assert joined(parts)[:100] == stream
        assert not any(isinstance(part, Hole) for part in parts)


def test_missing_bytes_are_a_hole_at_the_end() -> None:
    tcp = TcpStream()
    tcp.start(99)
    parts = [*tcp.add(100, b"abc", 0, 1), *tcp.add(106, b"ghi", 0, 2), *tcp.add(112, b"mno", 0, 3)]
    assert joined(parts) == b"abc"
    assert joined([*parts, *tcp.finish()]) == b"abc???ghi???mno"


def test_missing_bytes_are_a_hole_when_later_bytes_were_acknowledged_some_time_ago() -> None:
    tcp = TcpStream()
    tcp.start(99)
    parts = [*tcp.add(100, b"abc", 0, 0), *tcp.add(106, b"ghi", 0, 0), *tcp.acknowledge(109, 0)]
    parts += tcp.acknowledge(109, PATIENCE_NS)
    assert joined(parts) == b"abc"  # the packet may be captured later
    parts += tcp.acknowledge(109, PATIENCE_NS + 1)
    assert joined(parts) == b"abc???ghi"
    assert list(tcp.add(103, b"def", 0, 0)) == []


def test_a_truncated_packet_leaves_a_hole_unless_a_retransmission_fills_it() -> None:
    tcp = TcpStream()
    tcp.start(99)
    parts = [*tcp.add(100, b"ab", 4, 0), *tcp.add(106, b"gh", 0, 0)]
    assert joined(parts) == b"ab????gh"
    tcp = TcpStream()
    tcp.start(99)
    parts = [*tcp.add(104, b"efgh", 0, 0), *tcp.add(100, b"ab", 4, 0)]
    assert joined(parts) == b"ab??efgh"


def test_the_first_segment_begins_the_stream_where_no_syn_was_captured() -> None:
    tcp = TcpStream()
    assert joined([*tcp.add(7000, b"abc", 0, 0), *tcp.add(7003, b"def", 0, 0)]) == b"abcdef"
    assert list(tcp.add(6990, b"before", 0, 0)) == []
