"""How fast are Avro values decoded into Arrow and encoded from it, compared with fastavro?

100,000 records of 10 fields, about 75 bytes each: long, string, double, int, boolean, nullable string,
timestamp-millis, enum, bytes and float. Target: 3 M rows/s with a core, and 10 times the rows of fastavro and
`pyarrow.Table.from_pylist`.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pyarrow as pa

from benchmarks.messages.timing import cpu_us, line
from kwire.schemas.avro import Decoder, Encoder, parse

ROWS, PEER_ROWS = 100_000, 2_000
PREFIX = b"\0\0\0\0\1"
STATUSES = ["NEW", "PAID", "SENT", "DONE"]
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": STATUSES}},
        {"name": "token", "type": "bytes"},
        {"name": "weight", "type": "float"},
    ],
}
EVOLVED = {
    **ORDER,
    "fields": [
        *({**each, "type": "long"} if each["name"] == "quantity" else each for each in ORDER["fields"][1:]),
        {"name": "currency", "type": "string", "default": "EUR"},
    ],
}


def orders(count: int) -> list[dict[str, Any]]:
    """Return records as fastavro takes them."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        {
            "id": i * 1_000_003,
            "customer": f"customer {i % 5000}",
            "amount": i * 1.25,
            "quantity": i % 100,
            "paid": i % 3 == 0,
            "note": None if i % 4 else f"leave order {i} at the door",
            "created": start + timedelta(milliseconds=37 * i),
            "status": STATUSES[i % 4],
            "token": (i * 2654435761 % 2**64).to_bytes(8, "big"),
            "weight": i * 0.5,
        }
        for i in range(count)
    ]


def main() -> None:
    """Print the figures."""
    known = fastavro.parse_schema(json.loads(json.dumps(ORDER)))
    values = []
    for order in orders(ROWS):
        out = io.BytesIO(PREFIX)
        out.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(out, known, order)
        values.append(out.getvalue())
    column = pa.array(values, pa.binary())
    few = [each[len(PREFIX) :] for each in values[:PEER_ROWS]]
    writer, reader = parse(json.dumps(ORDER)), parse(json.dumps(EVOLVED))
    all_columns = Decoder([writer], writer)
    two_columns = Decoder([writer], writer, columns=["id", "created"])
    resolved = Decoder([writer], reader)

    def fastavro_table() -> pa.Table:
        return pa.Table.from_pylist([fastavro.schemaless_reader(io.BytesIO(each), known, None) for each in few])

    assert pa.Table.from_struct_array(all_columns.decode(column, skip=5).array)[:PEER_ROWS].to_pylist() == (
        fastavro_table().to_pylist()
    )
    array = all_columns.decode(column, skip=5).array
    encoder = Encoder(writer)
    assert encoder.encode(array, prefix=PREFIX).array == column

    def fastavro_values() -> pa.Array:
        encoded = []
        for each in array[:PEER_ROWS].to_pylist():
            out = io.BytesIO()
            fastavro.schemaless_writer(out, known, each)
            encoded.append(out.getvalue())
        return pa.array(encoded, pa.binary())

    jobs = {"10_columns": all_columns, "2_of_10_columns": two_columns, "resolved": resolved}
    best = cpu_us(
        {name: lambda each=each: each.decode(column, skip=5) for name, each in jobs.items()}
        | {"fastavro": fastavro_table}
        | {"encode": lambda: encoder.encode(array, prefix=PREFIX), "fastavro_encode": fastavro_values}
    )
    peer = PEER_ROWS / best["fastavro"]
    for name in jobs:
        print(line(f"schemas.avro.decode.{name}", ROWS / best[name], "M_rows/s", peer, "fastavro-then-Arrow"))
    peer = PEER_ROWS / best["fastavro_encode"]
    print(line("schemas.avro.encode.10_columns", ROWS / best["encode"], "M_rows/s", peer, "to_pylist-then-fastavro"))


if __name__ == "__main__":
    main()
