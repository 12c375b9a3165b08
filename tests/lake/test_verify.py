"""`kwire lake verify`: a table compared with its topic, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.cli.main import run
from kwire.errors import MissingOffsets, TableError
from kwire.lake import Layout, RowOptions, ValueDecoding, append_logs
from kwire.lake.verify import MAX_RANGES, Offsets, _ranges_of, compared_columns, verify_table
from kwire.log import LogDirectory
from kwire.records.columns.reader import COLUMNS
from kwire.schemas import Registry, encode
from kwire.schemas.choice import SchemaChoice
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, write
from tests.lake.test_append import arguments

LAYOUT = Layout()
WINDOWS = [1, 99, 100, 101, 1 << 20]


def values(count: int) -> list[bytes]:
    return [f"value {number}".encode() for number in range(count)]


def rows_at(rows: pa.Table, *offsets: int) -> pa.Table:
    return rows.sort_by("offset").take(pa.array(offsets))


def differences(compared: Any) -> dict[str, Any]:
    kinds = {name: getattr(compared, name) for name in ("missing", "doubled", "different", "extra", "before")}
    return {name: (kind.rows, kind.ranges) for name, kind in kinds.items() if kind.rows}


@pytest.mark.sampled
@pytest.mark.parametrize("window", WINDOWS)
def test_missing_doubled_different_and_extra_rows_are_found_by_offset(
    tables: Tables, tmp_path: Path, window: int
) -> None:
    """Whatever the order of rows in files is, and wherever windows end."""
    source = write_values(tmp_path / "logs", values(100))
    log = LogDirectory(source)["avro", 0]
    list(append_logs(tables.open("whole"), [log], layout=LAYOUT))
    whole = tables.read("whole")
    kept = [each for each in range(100) if each not in (0, 40, 41, 42, 99)]
    table = tables.open()
    write(table, rows_at(whole, *reversed(kept)))
    write(table, rows_at(whole, 7, 8, 20))
    other = rows_at(whole, 60)
    other = other.set_column(other.schema.get_field_index("value"), "value", pa.array([b"other"], pa.binary()))
    write(table, other)
    far = rows_at(whole, 5).set_column(whole.schema.get_field_index("offset"), "offset", pa.array([100], pa.int64()))
    write(table, far)
    table.refresh()
    batches = list(verify_table(table, [log], window_rows=window))
    assert len(batches) == 1
    assert not batches[0].is_same
    assert (batches[0].rows, batches[0].table_rows) == (100, 100)
    assert differences(batches[0]) == {
        "missing": (5, ((0, 1), (40, 43), (99, 100))),
        "doubled": (4, ((7, 9), (20, 21), (60, 61))),
        "different": (1, ((60, 61),)),
        "extra": (1, ((100, 101),)),
    }


@pytest.mark.sampled
@pytest.mark.parametrize("window", [1, 5000, 1 << 20])
def test_a_whole_table_is_the_same(tables: Tables, kafka_logs: dict[str, Path], window: int) -> None:
    """Logs of a broker with several batches, compaction, headers and empty partitions."""
    found = LogDirectory(kafka_logs["modern"] / "data")
    logs = [found[key] for key in (("orders", 0), ("compacted", 0), ("empty", 0), ("ids", 0), ("ids", 1))]
    table = tables.open()
    list(append_logs(table, logs, layout=LAYOUT, rows=RowOptions(columns=COLUMNS)))
    table.refresh()
    assert not compared_columns(table)[1]
    compared = list(verify_table(table, logs, window_rows=window))
    assert [(each.topic, each.partition) for each in compared] == [(log.topic, log.partition) for log in logs]
    assert [differences(each) for each in compared] == [{}] * 5
    assert sum(each.rows for each in compared) == sum(each.table_rows for each in compared) == tables.read().num_rows


def test_a_range_of_missing_rows_spans_offsets_without_a_record(tables: Tables, tmp_path: Path) -> None:
    """Compaction and markers leave gaps, which are no difference."""
    folder = write_values(tmp_path / "logs", values(10))
    later = write_values(tmp_path / "later", values(10), first=20)
    with (folder / "avro-0" / f"{0:020}.log").open("ab") as segment:
        segment.write((later / "avro-0" / f"{20:020}.log").read_bytes())
    log = LogDirectory(tmp_path / "logs")["avro", 0]
    list(append_logs(tables.open("whole"), [log], layout=LAYOUT))
    table = tables.open()
    write(table, rows_at(tables.read("whole"), 0, 1))
    table.refresh()
    assert differences(next(verify_table(table, [log]))) == {"missing": (18, ((2, 30),))}


def test_a_log_with_a_missing_segment(tables: Tables, tmp_path: Path) -> None:
    source = write_values(tmp_path / "logs", values(10))
    log = LogDirectory(write_values(source, values(10), first=20))["avro", 0]
    table = tables.open()
    list(append_logs(table, [log], layout=LAYOUT, rows=RowOptions(skip_missing=True)))
    table.refresh()
    with pytest.raises(MissingOffsets, match="offsets 10 to 19 are in no segment"):
        list(verify_table(table, [log]))
    assert next(verify_table(table, [log], skip_missing=True)).is_same


def test_rows_before_the_log_are_not_compared(tables: Tables, tmp_path: Path) -> None:
    table = tables.open()
    list(append_logs(table, [LogDirectory(write_values(tmp_path / "a", values(30)))["avro", 0]], layout=LAYOUT))
    later = write_values(tmp_path / "b", values(30)[20:], first=20)
    table.refresh()
    found = list(verify_table(table, [LogDirectory(later)["avro", 0]]))
    assert found[0].is_same
    assert differences(found[0]) == {"before": (20, ((0, 20),))}


def test_decoded_values_are_compared_with_the_registry(tables: Tables, tmp_path: Path, registry: Registry) -> None:
    rows = [{"id": number, "note": None if number % 2 else f"n{number}"} for number in range(50)]
    encoded = [encode(row, registry, schema=42) for row in rows]
    log = LogDirectory(write_values(tmp_path / "logs", encoded))["avro", 0]
    decoding = ValueDecoding.resolve(SchemaChoice(registry=registry), ["avro"])
    table = tables.open()
    list(append_logs(table, [log], layout=LAYOUT, rows=RowOptions(decoding=decoding)))
    table.refresh()
    assert differences(next(verify_table(table, [log], decoding=decoding))) == {}
    others = compared_columns(table)[1]
    assert len(others) == 1
    assert others[0].startswith("value (struct<")
    rows[3]["note"] = "changed"
    changed = [encode(row, registry, schema=42) for row in rows]
    log = LogDirectory(write_values(tmp_path / "changed", changed))["avro", 0]
    assert differences(next(verify_table(table, [log], decoding=decoding))) == {"different": (1, ((3, 4),))}


def test_a_merged_table_lacks_earlier_rows_of_a_key(tables: Tables, tmp_path: Path) -> None:
    keys = [b"k%d" % (number % 3) for number in range(9)]
    log = LogDirectory(write_values(tmp_path / "logs", values(9), keys))["avro", 0]
    list(append_logs(tables.open("rows"), [log], layout=LAYOUT))
    table = tables.open()
    write(table, tables.read("rows"), key=("key",))
    table.refresh()
    found = next(verify_table(table, [log]))
    assert found.is_same
    assert found.table_rows == 3


def test_a_table_without_offsets_cannot_be_compared(tables: Tables, tmp_path: Path) -> None:
    log = LogDirectory(write_values(tmp_path / "logs", values(3)))["avro", 0]
    table = tables.open()
    write(table, pa.table({"topic": ["avro"], "offset": [1]}))
    table.refresh()
    with pytest.raises(TableError, match="it has no column 'partition', so its rows cannot be compared"):
        list(verify_table(table, [log]))


def test_offsets_are_bounded() -> None:
    found = Offsets()
    cut = []
    for start in range(MAX_RANGES + 1):
        found.add([(2 * start, 2 * start + 1)], 1)
        cut.append(found.is_cut)
    assert cut == [False] * MAX_RANGES + [True]
    assert (found.rows, len(found.ranges)) == (MAX_RANGES + 1, MAX_RANGES)
    for count, is_cut in ((MAX_RANGES, False), (MAX_RANGES + 1, True), (MAX_RANGES + 2, True)):
        found = Offsets()
        found.add(_ranges_of(np.arange(0, 2 * count, 2)), count)
        assert (found.is_cut, found.ranges[-1]) == (is_cut, (2 * MAX_RANGES - 2, 2 * MAX_RANGES - 1))


def test_the_command(tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(write_values(tmp_path / "logs", values(10)))
    where = arguments(tables)
    assert run(["lake", "verify", *where[:1], source, *where[1:]]) == 2
    assert "no such table" in capsys.readouterr().err
    assert run(["lake", "append", source, *where]) == 0
    capsys.readouterr()
    assert run(["lake", "verify", *where[:1], source, *where[1:], "--format", "json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert same[0] | {"topic": "avro", "rows": 10, "table_rows": 10, "missing": 0, "extra": 0} == same[0]
    write(tables.open(), tables.read().slice(0, 1))
    write_values(Path(source), values(4), first=10)
    assert run(["lake", "verify", *where[:1], source, *where[1:], "--format", "json"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)[0]["missing_offsets"] == [[10, 14]]
    assert json.loads(output.out)[0]["doubled_offsets"] == [[0, 1]]
    assert "avro-0: the table lacks offsets: 10 to 13; kwire lake append --fill appends them" in output.err
