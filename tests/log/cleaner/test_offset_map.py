"""The offset map, compared with a dict."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire import native
from kwire.errors import OptionError
from kwire.log.cleaner.offset_map import SLOT_BYTES, OffsetMap

pytestmark = pytest.mark.usefixtures("path")
SECRET = bytes(range(16))


@pytest.mark.requirement("X-10", "X-11")
@settings(deadline=None)
@given(st.lists(st.binary(max_size=3), max_size=300))
def test_the_last_offset_of_each_key_is_found(keys: list[bytes]) -> None:
    offset_map = OffsetMap(400 * SLOT_BYTES, secret=SECRET)
    expected: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        assert offset_map.put(key, offset)
        expected[key] = offset
        assert offset_map.latest_offset == offset
    assert len(offset_map) == len(expected)
    assert offset_map.utilization == len(expected) / 400
    for key in [*keys, b"another key"]:
        assert offset_map.get(key) == expected.get(key, -1)


@pytest.mark.requirement("X-11")
def test_a_full_map_rejects_entries_and_keeps_existing_ones() -> None:
    offset_map = OffsetMap(10 * SLOT_BYTES, 0.9, secret=SECRET)
    for i in range(9):
        assert offset_map.put(b"key-%d" % i, 100 + i)
    assert not offset_map.put(b"key-9", 109)
    assert not offset_map.put(b"key-0", 110)  # as in Kafka: the pass ends at the next record with a key, whichever
    assert offset_map.latest_offset == 108
    assert [offset_map.get(b"key-%d" % i) for i in range(10)] == [*range(100, 109), -1]


def test_a_map_with_one_free_slot_finds_every_key() -> None:
    offset_map = OffsetMap(7 * SLOT_BYTES, 1.0, secret=SECRET)
    assert [offset_map.put(b"%d" % i, i) for i in range(8)] == [True] * 6 + [False] * 2
    assert [offset_map.get(b"%d" % i) for i in range(8)] == [0, 1, 2, 3, 4, 5, -1, -1]


@pytest.mark.requirement("X-12")
def test_advancing_an_empty_map_sets_its_latest_offset() -> None:
    offset_map = OffsetMap(1 << 20, secret=SECRET)
    assert offset_map.latest_offset == -1
    offset_map.advance(41)
    assert (offset_map.latest_offset, len(offset_map)) == (41, 0)


@pytest.mark.parametrize(
    ("memory_bytes", "load_factor"), [(0, 0.9), (SLOT_BYTES, 0.9), (1 << 20, 0.0), (1 << 20, 1.1), (100, -1)]
)
def test_a_map_without_slots_is_rejected(memory_bytes: int, load_factor: float) -> None:
    with pytest.raises(OptionError, match=r"log\.cleaner\."):
        OffsetMap(memory_bytes, load_factor, secret=SECRET)


@pytest.mark.requirement("X-11")
def test_the_table_grows_to_its_maximum_without_losing_entries() -> None:
    if native.LEVEL is None:
        pytest.skip("plain Python has a dict")
    offset_map = OffsetMap(40_000 * SLOT_BYTES, 0.9, secret=SECRET)
    sizes = [len(offset_map.slots)]
    keys = 0
    while offset_map.put(b"%d" % keys, keys):
        keys += 1
        if len(offset_map.slots) != sizes[-1]:
            sizes.append(len(offset_map.slots))
    assert keys == 36_000
    assert sizes == [4096, 8192, 16384, 40_000]
    assert all(offset_map.get(b"%d" % i) == i for i in range(keys))
    assert offset_map.utilization == 0.9
