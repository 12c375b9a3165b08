"""SipHash-2-4 with 128 bits: the hash of a key in the offset map.

Two keys with the same hash would count as one key, and the older record would be removed. With a random secret of 16
bytes per pass, the probability of a collision among 2**32 keys is 2**-65, and collisions cannot be constructed. Kafka's
MD5 has as many bits, takes four times as long, and collisions are known.
Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", and their siphash.c for the 128 bits.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.wire.kernels.compiler import inlined, kernel
from kwire.wire.kernels.memory import load_uint8, load_uint64

__all__ = ["hash_key"]


@inlined
def rotate(word, bits):
    """Rotate word to the left."""
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@inlined
def stir(v0, v1, v2, v3):
    """Apply one SipRound."""
    v0 = v0 + v1
    v2 = v2 + v3
    v1 = rotate(v1, 13) ^ v0
    v3 = rotate(v3, 16) ^ v2
    v0 = rotate(v0, 32) + v3
    v2 = v2 + v1
    v3 = rotate(v3, 21) ^ v0
    v1 = rotate(v1, 17) ^ v2
    return v0, v1, rotate(v2, 32), v3


@kernel
def hash_key(address, n, secret_low, secret_high):
    """Return both halves of the hash of the n bytes at address, uint64 each. secret: two uint64."""
    v0 = secret_low ^ np.uint64(0x736F6D6570736575)
    v1 = secret_high ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
    v2 = secret_low ^ np.uint64(0x6C7967656E657261)
    v3 = secret_high ^ np.uint64(0x7465646279746573)
    end = address + n
    while end - address >= 8:
        word = load_uint64(address)
        v3 ^= word
        v0, v1, v2, v3 = stir(v0, v1, v2, v3)
        v0, v1, v2, v3 = stir(v0, v1, v2, v3)
        v0 ^= word
        address += 8
    word = np.uint64(n) << np.uint64(56)
    shift = np.uint64(0)
    while address < end:
        word |= np.uint64(load_uint8(address)) << shift
        shift += np.uint64(8)
        address += 1
    v3 ^= word
    v0, v1, v2, v3 = stir(v0, v1, v2, v3)
    v0, v1, v2, v3 = stir(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xEE)
    for _ in range(4):
        v0, v1, v2, v3 = stir(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= np.uint64(0xDD)
    for _ in range(4):
        v0, v1, v2, v3 = stir(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3
