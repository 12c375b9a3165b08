"""Identifiers of transactions in the checkpoints of Delta tables."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from kwire.lake.delta.checkpoints import transaction_ids


def test_identifiers_are_those_of_the_last_checkpoint(tmp_path: Path) -> None:
    files = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    assert transaction_ids(files) == set()
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version, parts in ((9, [["a"]]), (10, [["a", "b"], ["c"]])):
        for number, names in enumerate(parts, 1):
            rows = [{"txn": None}, *({"txn": {"appId": name, "version": 1}} for name in names)]
            part = f"{number:010}.{len(parts):010}." if len(parts) > 1 else ""
            parquet.write_table(pa.Table.from_pylist(rows), log / f"{version:020}.checkpoint.{part}parquet")
    assert transaction_ids(files) == {"a", "b", "c"}
    actions = [{"txn": {"appId": "d", "version": 1}}, {"add": {}}]
    (log / f"{11:020}.checkpoint.uuid.json").write_text("\n".join(map(json.dumps, actions)))
    assert transaction_ids(files) == {"d"}
