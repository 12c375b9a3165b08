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


def started(data: bytes = b"") -> TcpStream:
    """Return a stream from sequence number 100 on that has returned these bytes."""
    tcp = TcpStream()
    tcp.start(99)
    assert joined(list(tcp.add(100, data, 0, 0))) == data
    return tcp


def test_of_a_truncated_retransmission_only_what_is_new_is_a_hole() -> None:
    tcp = started(b"abcd")
    assert list(tcp.add(100, b"ab", 6, 0)) == [Hole(4, 4)]
    tcp = started(b"abcd")
    assert list(tcp.add(100, b"abcd", 3, 0)) == [Hole(4, 3)]
    assert list(started(b"abcd").add(100, b"ab", 2, 0)) == []
    assert list(started().add(100, b"", 4, 0)) == [Hole(0, 4)]


def test_what_was_captured_first_stays_and_only_new_bytes_follow() -> None:
    tcp = started()
    assert list(tcp.add(104, b"EFGH", 0, 1)) == []
    assert list(tcp.add(100, b"abcdef", 0, 2)) == [Piece(0, b"abcdef", 2, True), Piece(6, b"GH", 1, False)]
    assert list(tcp.add(106, b"xyz", 0, 3)) == [Piece(8, b"z", 3, True)]
    tcp = started()
    assert list(tcp.add(104, b"ef", 0, 1)) == []
    assert list(tcp.add(100, b"abcdef", 0, 2)) == [Piece(0, b"abcdef", 2, True)]
    assert list(tcp.add(102, b"cdef", 0, 3)) == []
    assert list(tcp.add(106, b"g", 0, 4)) == [Piece(6, b"g", 4, True)]


def test_sequence_numbers_half_the_range_ahead_are_old() -> None:
    tcp = TcpStream()
    tcp.start(99)
    assert list(tcp.add((100 + 2**31) % 2**32, b"old", 0, 0)) == []
    assert list(tcp.finish()) == []
    assert list(tcp.add((100 + 2**31 - 1) % 2**32, b"new", 0, 0)) == []
    assert list(tcp.finish()) == [Hole(0, 2**31 - 1), Piece(2**31 - 1, b"new", 0, True)]


def test_only_so_many_bytes_and_segments_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.capture.reassembly.MAX_WAITING_BYTES", 5)
    tcp = started()
    assert list(tcp.add(110, b"12345", 0, 0)) == []
    assert joined(list(tcp.add(120, b"6", 0, 0))) == b"?" * 10 + b"12345"
    assert list(tcp.add(130, b"789a", 0, 0)) == []  # with the one that still waits, five
    assert list(tcp.add(140, b"b", 0, 0)) == [Hole(15, 5), Piece(20, b"6", 0, True)]
    monkeypatch.setattr("kwire.capture.reassembly.MAX_WAITING_SEGMENTS", 2)
    tcp = started()
    assert [*tcp.add(110, b"1", 0, 0), *tcp.add(120, b"2", 0, 0)] == []
    assert joined(list(tcp.add(130, b"3", 0, 0))) == b"?" * 10 + b"1"


def test_the_receivers_first_acknowledgement_counts() -> None:
    tcp = started(b"abc")
    assert [*tcp.add(106, b"ghi", 0, 0), *tcp.acknowledge(108, 0), *tcp.acknowledge(109, PATIENCE_NS)] == []
    assert list(tcp.acknowledge(103, PATIENCE_NS + 1)) == [Hole(3, 3), Piece(6, b"ghi", 0, True)]
