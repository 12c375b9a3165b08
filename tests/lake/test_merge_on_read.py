"""What PyIceberg and delta-rs do when rows are deleted: they rewrite files, for which docs/table-changes.md says that
kwire does so too. When these tests fail, the libraries have merge on read, and the page is to be written anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.lake import Layout
from tests.lake.tables import Tables, kafka_rows, write


def test_pyiceberg_falls_back_to_copy_on_write(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    write(table, kafka_rows(0, 100), layout=Layout(properties={"write.delete.mode": "merge-on-read"}))
    table.refresh()
    with pytest.warns(UserWarning, match="Merge on read is not yet supported, falling back to copy-on-write"):
        table.table.delete("value = 5")
    summary = table.table.current_snapshot().summary.additional_properties
    assert (summary["added-data-files"], summary.get("added-delete-files")) == ("1", None)


@pytest.mark.parametrize("how", ["delete", "merge"])
def test_delta_rs_writes_no_deletion_vectors(tmp_path: Path, how: str) -> None:
    from deltalake import DeltaTable, write_deltalake

    rows = pa.table({"id": list(range(100))})
    write_deltalake(str(tmp_path), rows, configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(str(tmp_path))
    if how == "delete":
        table.delete("id = 5")
    else:
        merge = table.merge(rows.slice(5, 1), "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_delete().execute()
    lines = (tmp_path / "_delta_log" / f"{1:020}.json").read_text().splitlines()
    (added,) = [action["add"] for action in map(json.loads, lines) if "add" in action]
    assert (added.get("deletionVector"), json.loads(added["stats"])["numRecords"]) == (None, 99)
