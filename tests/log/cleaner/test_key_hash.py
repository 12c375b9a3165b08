"""SipHash-2-4-128, compared with its authors' test vectors and a plain Python implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire import native
from kwire.log.cleaner.layout import MapState, Put, Slot

pytestmark = pytest.mark.skipif(native.LEVEL is None, reason="plain Python has another hash")

MASK = (1 << 64) - 1
SECRET = bytes(range(16))
VECTORS = [  # of siphash.c: the hash of 00 01 02 ... under the key 00 01 ... 0f
    (0, "a3817f04ba25a8e66df67214c7550293"),
    (1, "da87c1d86b99af44347659119b22fc45"),
    (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
    (8, "3b62a9ba6258f5610f83e264f31497b4"),
    (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
]


def hashed(data: bytes, secret: bytes = SECRET) -> bytes:
    """Return the hash that an offset map of one slot has of bytes."""
    array = np.frombuffer(data + b"\xff", np.uint8)  # a byte after the end, which must be ignored
    slots, state = np.zeros((1, len(Slot)), np.uint64), np.zeros(len(MapState), np.int64)
    state[[MapState.LIMIT, MapState.ROOM]] = 1
    put = native.put_key(slots, state, np.frombuffer(secret, "<u8"), array.ctypes.data, len(data), 0)
    assert put == Put.ADDED
    return slots[0, [Slot.FIRST, Slot.SECOND]].tobytes()


def reference(data: bytes, secret: bytes) -> bytes:
    """The reference implementation, from the paper."""
    k0, k1 = (int.from_bytes(secret[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(word: int, bits: int) -> int:
        return (word << bits | word >> 64 - bits) & MASK

    def rounds(n: int) -> None:
        for _ in range(n):
            v[0] = v[0] + v[1] & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = v[2] + v[3] & MASK
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & MASK
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    whole = len(data) // 8 * 8
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for i in range(0, whole + 8, 8):
        word = int.from_bytes((data[:whole] + last)[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return first.to_bytes(8, "little") + (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")


@pytest.mark.parametrize(("length", "expected"), VECTORS)
def test_the_published_test_vectors_match(length: int, expected: str) -> None:
    assert reference(bytes(range(length)), SECRET).hex() == expected
    assert hashed(bytes(range(length))).hex() == expected


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(min_size=16, max_size=16))
def test_any_key_hashes_as_in_python(data: bytes, secret: bytes) -> None:
    assert hashed(data, secret) == reference(data, secret)


def test_every_length_and_secret_has_a_different_hash() -> None:
    assert len({hashed(b"\0" * n) for n in range(600)}) == 600
    assert len({hashed(b"key", bytes(i) + b"\1" + bytes(15 - i)) for i in range(16)}) == 16
