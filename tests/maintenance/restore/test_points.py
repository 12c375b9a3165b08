"""Files of offsets, in the forms that Kafka's tools read and write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import OptionError
from kwire.log import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.maintenance.restore import RestoreOptions, parse_offsets_file, restore_directory, run
from kwire.maintenance.restore.points import AtTime
from kwire.maintenance.restore.survey import survey_log
from tests.log.test_missing_segments import make
from tests.log.writing import NOW, with_times

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


@pytest.mark.parametrize(("time", "expected"), [(0, True), (-1, False)])
def test_records_of_1970_have_timestamps(time: int, expected: bool, tmp_path: Path) -> None:
    log = LogDirectory(with_times(tmp_path / "data", [time, 1]))["t", 0]
    assert isinstance(log, PartitionLog)
    assert survey_log(log, AtTime(time_ms=5)).has_timestamps is expected


@pytest.mark.parametrize(("after_ms", "is_said"), [(290, True), (289, False)])
def test_a_time_that_cuts_nothing_is_reported(after_ms: int, is_said: bool, tmp_path: Path) -> None:
    """The last of the batches has timestamps from 290 to 299 ms after the first."""
    point = AtTime(time_ms=NOW + after_ms + 9)
    source = make(tmp_path / "data")
    result = restore_directory(str(source), str(tmp_path / "new"), point, RestoreOptions(), now_ms=NOW)
    assert any("nothing was cut" in each for each in result.warnings) is is_said


def test_numbers_may_be_the_largest_of_their_types() -> None:
    partition, offset = 2**31 - 1, 2**63 - 1
    assert parse_offsets_file(f"orders,{partition},{offset}".encode(), "f").offsets == {("orders", partition): offset}


@pytest.mark.parametrize(("nodes", "is_accepted"), [(0, False), (1, True), (2, True), (3, False)])
def test_clusters_have_a_limited_number_of_nodes(
    nodes: int, is_accepted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MOST_NODES", 2)
    source, point = make(tmp_path / "data"), AtTime(time_ms=NOW + 150)
    if is_accepted:
        restore_directory(str(source), str(tmp_path / "new"), point, RestoreOptions(nodes=nodes), now_ms=NOW)
    else:
        with pytest.raises(OptionError, match=f"{nodes} nodes: expected 1 to 2"):
            restore_directory(str(source), str(tmp_path / "new"), point, RestoreOptions(nodes=nodes), now_ms=NOW)
