"""Both scanners of a batch's records give the same result."""

from __future__ import annotations

import random

import pytest
from tests.fuzz import record_writing
from tests.records.building import record

from kwire import native
from kwire.records.format.faults import Fault
from kwire.records.format.section_scan import SectionScan, scan_plain, scan_section

pytestmark = pytest.mark.skipif(native.LEVEL is None, reason="both scanners are compared")


def both(section: bytes, count: int, base_timestamp: int = 1000) -> SectionScan:
    """Return the result of both scanners, which must be equal."""
    plain = scan_plain(memoryview(section), count, base_timestamp)
    assert native.scan_section(memoryview(section), count, base_timestamp) == plain
    return plain


@pytest.mark.requirement("A-22", "R-30")
def test_a_scan_returns_what_the_broker_needs() -> None:
    section = record(0, 0) + record(1, 50, key=None) + record(2, -10, headers=[(b"h", None)])
    assert both(section, 3) == SectionScan(0, 0, True, 990, 1050, 1, 0, True)
    assert not both(record(1) + record(2), 2).is_contiguous
    assert both(record(0, 7) + record(1), 2).first_delta == 7
    none = both(record(0, -1001), 1)
    assert (none.smallest_timestamp, none.largest_timestamp) == (-1, -1)
    assert both(record(0, 1), 1, 2**63 - 1).smallest_timestamp == -(2**63)  # it wraps, as in Java


ODD = {
    "length": "9000 00 00 00 02 6b 02 76 00",
    "attributes": "10 01 00 00 02 6b 02 76 00",
    "timestamp": "12 00 8000 00 02 6b 02 76 00",
    "offset": "12 00 00 8000 02 6b 02 76 00",
    "key": "12 00 00 00 8200 6b 02 76 00",
    "null key": "0e 00 00 00 03 02 76 00",
    "value": "12 00 00 00 02 6b 8200 76 00",
    "null value": "0e 00 00 00 02 6b 03 00",
    "headers": "12 00 00 00 02 6b 02 76 8000",
    "header key": "16 00 00 00 02 6b 02 76 02 8000 01",
    "header value": "16 00 00 00 02 6b 02 76 02 00 8000",
    "null header value": "14 00 00 00 02 6b 02 76 02 00 03",
}


@pytest.mark.parametrize("encoded", ODD.values(), ids=ODD)
def test_non_canonical_records_are_detected(encoded: str) -> None:
    response = both(bytes.fromhex(encoded), 1)
    assert not response.fault
    assert not response.is_canonical


@pytest.mark.requirement("R-32")
def test_errors_equal_the_readers() -> None:
    good = record()
    assert both(good + b"\0", 1)[:2] == (Fault.BYTES_LEFT, -1)
    for cut in range(1, len(good)):
        assert both(record() + good[:cut], 2)[1] == 1
    assert scan_section(memoryview(good), 2, 0).fault == Fault.RECORD_COUNT
    assert scan_section(memoryview(good), -1, 0).fault == Fault.RECORD_COUNT


def test_any_changed_byte_gives_the_same_result_in_both_scanners() -> None:
    section = record(0, 3, headers=[(b"name", b"value"), (b"n", None)]) + record(1, 300, key=None, value=b"v" * 70)
    source = random.Random(2)
    for at in range(len(section)):
        for _ in range(4):
            changed = bytearray(section)
            changed[at] = source.randrange(256)
            both(bytes(changed), 2)
    for number in range(300):
        record_writing.scan_both(random.Random(number))
