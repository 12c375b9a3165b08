"""Keys are partitioned as by Java's clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire import native
from kwire.errors import OptionError
from kwire.records.partitioner import hash_plain, key_hashes, partitions_of_keys

# org.apache.kafka.common.utils.UtilsTest.testMurmur2, as Java's signed ints
CASES = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


def murmur2_by_hand(data: bytes) -> int:
    """A second implementation, from the description of the algorithm."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if tail := data[whole:]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def test_hashes_equal_javas_utils() -> None:
    hashes = key_hashes(pa.array([key for key, _ in CASES], pa.binary()))
    assert hashes.view(np.int32).tolist() == [value for _, value in CASES]


def test_every_length_hashes_as_in_the_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    keys = [rng.bytes(n % 41) for n in range(2000)]
    assert key_hashes(pa.array(keys, pa.binary())).tolist() == [murmur2_by_hand(key) for key in keys]
    monkeypatch.setattr(native, "LEVEL", None)
    assert key_hashes(pa.array(keys, pa.binary())).tolist() == [murmur2_by_hand(key) for key in keys]


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_columns_of_every_type_and_slices_hash_alike(kind: Any) -> None:
    column = pa.array(["a", "foobar", None, "abc", ""], pa.string()).cast(kind)
    whole = partitions_of_keys(column, 10)
    assert whole.tolist() == [
        murmur2_by_hand(k) % 2**31 % 10 if k is not None else -1 for k in (b"a", b"foobar", None, b"abc", b"")
    ]
    assert partitions_of_keys(column.slice(1, 3), 10).tolist() == whole[1:4].tolist()


def test_an_empty_key_is_hashed_and_a_null_key_is_not() -> None:
    assert partitions_of_keys(pa.array([b"", None], pa.binary()), 7).tolist() == [murmur2_by_hand(b"") % 2**31 % 7, -1]
    assert partitions_of_keys(pa.nulls(2, pa.binary()), 7).tolist() == [-1, -1]
    assert partitions_of_keys(pa.array([], pa.binary()), 7).tolist() == []


def test_columns_that_cannot_be_keys_are_rejected() -> None:
    with pytest.raises(OptionError, match="column 'key' is int64"):
        key_hashes(pa.array([1]))
    with pytest.raises(OptionError, match="partitions 0 is out of range"):
        partitions_of_keys(pa.array([b"a"]), 0)


def test_the_kernel_stays_within_the_column() -> None:
    data, hashes = np.frombuffer(b"abcdef", np.uint8), np.zeros(2, np.uint32)
    for ends in ([0, 3, 7], [-1, 3, 6], [0, 3, 2], [2**31 - 1, 3, 6]):
        for hash_keys in (hash_plain, hash_plain if native.LEVEL is None else native.hash_keys):
            assert hash_keys(np.array(ends, np.int32), data, hashes) < 2
