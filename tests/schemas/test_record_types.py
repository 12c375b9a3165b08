"""Record types of values by the branch of a union that they begin with."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from kwire.schemas import Registry
from kwire.schemas.record_types import RecordSplitter

NAMES = [f"R{number}" for number in range(65)]


def test_the_number_of_a_branch_is_inside_the_value(tmp_path: Path) -> None:
    """Bytes of the next value are not taken for the rest of a number: it would be that of the first branch."""
    schema = json.dumps([{"type": "record", "name": name, "fields": []} for name in NAMES])
    entry = {"id": 5, "subject": "t-value", "version": 1, "schemaType": "AVRO", "schema": schema}
    (tmp_path / "5.json").write_text(json.dumps(entry))
    values = [b"\0\0\0\0\5" + number for number in (b"\0", b"\2", b"", b"\x80", b"\x80\1", b"\x82\1", b"\0")]
    rows = RecordSplitter(Registry(tmp_path)).split(pa.record_batch({"value": pa.array(values, pa.binary())}))
    assert {name: each.to_pylist() for name, each in rows.by_record.items()} == {"R0": [0, 6], "R1": [1], "R64": [4]}
    assert sorted(rows.errors) == [2, 3, 5]
