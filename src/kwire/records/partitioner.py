"""Kafka's default partitioner: (murmur2(key) & 0x7fffffff) % partitions.

Every Java client computes the same, so a key stays in its partition. (librdkafka has another default; its
`partitioner=murmur2_random` is this one.)
Source: BuiltInPartitioner.partitionForKey, Utils.murmur2, Utils.toPositive.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.extras import needing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["hash_plain", "key_hashes", "partitions_of_keys"]

SEED, MULTIPLIER, MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def key_hashes(keys: pa.Array) -> npt.NDArray[np.uint32]:
    """Compute murmur2 of each key of a binary or string column; undefined for nulls.

    Raises OptionError for a column of another type.
    """
    with needing("partitions of a column of keys"):
        import numpy as np
        import pyarrow as pa

    kind: Any = keys.type
    if pa.types.is_dictionary(kind):
        keys = keys.dictionary_decode()
        kind = keys.type
    if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
        try:
            keys = keys.cast(pa.binary())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise OptionError(f"column 'key' is {kind}; expected binary or string ({error})") from None
    hashes = np.zeros(len(keys), np.uint32)
    _, ends, data = keys.buffers()
    if not len(keys) or ends is None:
        return hashes
    offsets = np.frombuffer(ends, np.int32, len(keys) + 1, 4 * keys.offset)
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    hash_keys = hash_plain if native.LEVEL is None else native.hash_keys
    done = hash_keys(offsets, text, hashes)
    if done < len(keys):
        raise EncodeError(f"row {done}: the key lies outside of its column")
    return hashes


def hash_plain(ends: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], hashes: npt.NDArray[np.uint32]) -> int:
    """Hash in Python key i, which is data[ends[i]:ends[i + 1]].

    Returns the number of keys hashed: fewer than there are where an entry of ends points outside of data.
    """
    for index, (start, end) in enumerate(itertools.pairwise(ends.tolist())):
        if not 0 <= start <= end <= len(data):
            return index
        hashes[index] = murmur2(data[start:end].tobytes())
    return len(hashes)


def murmur2(key: bytes) -> int:
    """Compute the hash of a key."""
    whole = len(key) // 4 * 4
    value = SEED ^ len(key)
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * MULTIPLIER & MASK
        value = value * MULTIPLIER & MASK ^ (word ^ word >> 24) * MULTIPLIER & MASK
    if whole < len(key):
        value = (value ^ int.from_bytes(key[whole:], "little")) * MULTIPLIER & MASK
    value = (value ^ value >> 13) * MULTIPLIER & MASK
    return value ^ value >> 15


def partitions_of_keys(keys: pa.Array, partitions: int) -> npt.NDArray[np.int32]:
    """Return the partition of each key, -1 for a null key, whose partition the caller chooses.

    partitions: of the topic. Raises OptionError for a column of another type.
    """
    with needing("partitions of a column of keys"):
        import numpy as np

    if partitions <= 0:
        raise OptionError(f"partitions {partitions} is out of range: at least 1")
    numbers = ((key_hashes(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)).astype(np.int32)
    if keys.null_count:
        numbers[keys.is_null().to_numpy(zero_copy_only=False)] = -1
    return numbers
