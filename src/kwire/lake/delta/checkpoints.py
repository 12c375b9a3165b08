"""Transaction identifiers in the last checkpoint of a Delta table, which delta-rs looks up but does not list.

A checkpoint has the identifiers of all commits, also of commits that a clean-up has deleted from the log. It is one
Parquet file, several (`N.checkpoint.0001.0002.parquet`), or for version 2 a Parquet or JSON file
(`N.checkpoint.UUID.json`).
Source: Delta protocol, "Checkpoints" and "Transaction Identifiers".
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import fs

__all__ = ["transaction_ids"]

LOG = "_delta_log"
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.[^/]+)?\.(?:parquet|json)")


def transaction_ids(files: fs.FileSystem) -> set[str]:
    """Return the appIds in the last checkpoint, none without a checkpoint. files: the table's directory."""
    from pyarrow.fs import FileSelector

    paths_by_version: dict[int, list[str]] = {}
    for info in files.get_file_info(FileSelector(LOG, allow_not_found=True)):
        match = CHECKPOINT.fullmatch(info.base_name)
        if match is not None:
            paths_by_version.setdefault(int(match[1]), []).append(f"{LOG}/{info.base_name}")
    paths = paths_by_version[max(paths_by_version)] if paths_by_version else []
    return {name for path in paths for name in _ids_of(files, path)}


def _ids_of(files: fs.FileSystem, path: str) -> list[str]:
    """Return the appIds in one file of a checkpoint."""
    from pyarrow import parquet

    with files.open_input_file(path) as file:
        if path.endswith(".json"):
            actions = [json.loads(line) for line in file.read().splitlines() if line.strip()]
            return [action["txn"]["appId"] for action in actions if "txn" in action]
        content = parquet.ParquetFile(file)
        if "txn" not in content.schema_arrow.names:
            return []
        column = content.read(columns=["txn.appId"]).column("txn").drop_null()
        return [txn["appId"] for txn in column.to_pylist() if txn["appId"] is not None]
