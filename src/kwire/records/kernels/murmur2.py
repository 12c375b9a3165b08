"""The hash that Kafka's default partitioner takes of a key: murmur2, 32 bits, seed 0x9747b28c.

Source: A. Appleby's MurmurHash2; org.apache.kafka.common.utils.Utils.murmur2.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.wire.kernels.arrays import Bytes, Int32s, WritableUInt32s
from kwire.wire.kernels.compiler import export, kernel
from kwire.wire.kernels.memory import load_uint8, load_uint32

__all__ = ["hash_keys"]

SEED = np.uint32(0x9747B28C)
MULTIPLIER = np.uint32(0x5BD1E995)
ROTATION = np.uint32(24)


@kernel
def murmur2(at, end):
    """The hash of the bytes at addresses [at, end), which the caller has checked: uint32."""
    h = SEED ^ np.uint32(end - at)
    while at + 4 <= end:
        k = np.uint32(load_uint32(at) * MULTIPLIER)
        k ^= k >> ROTATION
        k = np.uint32(k * MULTIPLIER)
        h = np.uint32(h * MULTIPLIER) ^ k
        at += 4
    left = end - at
    if left >= 3:
        h ^= np.uint32(load_uint8(at + 2)) << np.uint32(16)
    if left >= 2:
        h ^= np.uint32(load_uint8(at + 1)) << np.uint32(8)
    if left >= 1:
        h ^= np.uint32(load_uint8(at))
        h = np.uint32(h * MULTIPLIER)
    h ^= h >> np.uint32(13)
    h = np.uint32(h * MULTIPLIER)
    return np.uint32(h ^ (h >> np.uint32(15)))


@export
def hash_keys(ends: Int32s, data: Bytes, hashes: WritableUInt32s) -> int:
    """Hash each key of an Arrow binary column.

    ends: int32[count + 1], key i is data[ends[i]:ends[i + 1]]. data: uint8. hashes: uint32[count], filled in place.
    Returns the number of keys hashed: fewer than count where an entry of ends points outside of data.
    """
    address = np.int64(data.ctypes.data)
    for i in range(hashes.shape[0]):
        start, end = np.int64(ends[i]), np.int64(ends[i + 1])
        if start < 0 or end < start or end > data.shape[0]:
            return i
        hashes[i] = murmur2(address + start, address + end)
    return hashes.shape[0]
