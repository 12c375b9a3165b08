"""Files of offsets, in the forms that Kafka's tools read and write."""

from __future__ import annotations

import pytest

from kwire.errors import OptionError
from kwire.maintenance.restore import parse_offsets_file

EXPECTED = {("orders", 0): 42, ("orders", 1): 7}
FORMS = {
    "kafka-delete-records": '{"partitions": [{"topic": "orders", "partition": 0, "offset": 42}, '
    '{"topic": "orders", "partition": 1, "offset": 7}], "version": 1}',
    "array": '[{"topic": "orders", "partition": 0, "offset": 42}, {"topic": "orders", "partition": 1, "offset": 7}]',
    "kafka-consumer-groups": '"orders",0,42\norders,1,7\n',
    "header": "topic,partition,offset\r\norders, 0, 42\r\n\r\n# more\r\norders,1,7",
    "kafka-get-offsets": "orders:0:42\norders:1:7\n",
    "byte order mark": "\ufefforders,0,42\norders,1,7\norders,1,7",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_kafkas_tools_are_read(form: str) -> None:
    assert parse_offsets_file(FORMS[form].encode(), "offsets").offsets == EXPECTED


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f: no offsets"),
        (b"\xff", "f: byte 0: not UTF-8"),
        (b"{", "f: not JSON"),
        (b'{"offsets": []}', "f: no array 'partitions'"),
        (b'{"partitions": [1]}', r"f: partitions\[0\]: topic is None"),
        (b'{"partitions": [{"topic": "a", "partition": true, "offset": 1}]}', "partition is True"),
        (b"orders,0", "f: line 1: 2 fields"),
        (b"orders,0,1\norders,0,-1", "f: line 2: offset is '-1', expected a number from 0 to 9223372036854775807"),
        (b"orders,2147483648,1", "partition is 2147483648"),
        (b"orders,0,1\norders,0,2", "f: line 2: another offset of orders-0"),
        (b"[" * 100_000, "f: not JSON"),
    ],
)
def test_errors_name_the_line_and_the_field(data: bytes, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse_offsets_file(data, "f")
