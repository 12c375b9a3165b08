"""Tables for tests: opened, written and read back by readers that are not kwire's."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from kwire.lake import Change, FilePlan, LakeTable, Layout, Mark, Spans, open_delta, open_iceberg, write_files

__all__ = ["FORMATS", "KAFKA", "Tables", "kafka_rows", "write"]

FORMATS = ("iceberg", "delta")
KAFKA = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
DAY_US = 86_400_000_000


@dataclass
class Tables:
    """Tables of one format in a directory. storage: settings of the object store; url: the directory."""

    format: str
    folder: Path
    url: str = ""
    storage: Mapping[str, str] = field(default_factory=dict)

    def open(self, name: str = "orders") -> LakeTable:
        """Return a table, which may not exist."""
        url = self.url or f"file://{self.folder}"
        if self.format == "delta":
            return open_delta(f"{url}/{name}" if self.url else str(self.folder / name), self.storage)
        return open_iceberg(f"sales.{name}", self.catalog(url))

    def catalog(self, url: str) -> dict[str, str]:
        """Return the properties of an SQLite catalog."""
        return {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": url, **self.storage}

    def read(self, name: str = "orders") -> pa.Table:
        """Return a table's rows as the format's own library reads them."""
        table: Any = self.open(name)
        table.refresh()
        return table.table.scan().to_arrow() if self.format == "iceberg" else table.table.to_pyarrow_table()


def kafka_rows(start: int, end: int, *, partition: int = 0, key: int | None = None) -> pa.Table:
    """Return rows as of a topic, with offsets from start to end, one an hour. key: number of different keys."""
    rows = [
        {
            "key": f"k{offset % key if key else offset}",
            "value": offset,
            "topic": "orders",
            "partition": partition,
            "offset": offset,
            "timestamp": offset * DAY_US // 24,
        }
        for offset in range(start, end)
    ]
    return pa.Table.from_pylist(rows, schema=KAFKA)


def write(
    table: LakeTable,
    rows: pa.Table | Iterable[pa.RecordBatch],
    *,
    mark: Mark | None = None,
    layout: Layout | None = None,
    key: tuple[str, ...] = (),
    overwrite: bool = False,
    schema: pa.Schema | None = None,
    spans: Spans | None = None,
    plan: FilePlan | None = None,
) -> bool:
    """Write and commit rows as one task; return whether they were committed now."""
    if isinstance(rows, pa.Table):
        schema, rows = rows.schema, rows.to_batches()
    if plan is None:
        plan = table.prepare(schema, layout or Layout(), key=key)
    written = write_files(rows, plan)
    change = Change(
        id=uuid.uuid4().hex, mark=mark, spans=written.spans if spans is None else spans, overwrite=overwrite
    )
    return table.commit(written.files, change, plan, key=key)
