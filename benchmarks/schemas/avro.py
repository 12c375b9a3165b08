"""How fast are Avro values decoded into Arrow and encoded from it, compared with fastavro?

20,000 even and varied records of 10 fields (`orders.py`): long, string, double, int, boolean, nullable string,
timestamp-millis, enum, bytes and float. fastavro gets the same values, and is measured with `pyarrow.Table.from_pylist`
or `to_pylist` and without them, with rows of Python. Target: 3 M even rows/s with a core.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import fastavro
import pyarrow as pa

from benchmarks.messages.timing import cpu_us, line
from benchmarks.schemas.orders import ORDERS, STATUSES, Order
from kwire.schemas.avro import Decoder, Encoder, parse

PREFIX = b"\0\0\0\0\1"
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
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": list(STATUSES)}},
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


def rows_of(orders: list[Order]) -> list[dict[str, Any]]:
    """Return rows as fastavro takes them."""
    return [{**asdict(each), "status": STATUSES[each.status]} for each in orders]


def main() -> None:
    """Print the figures."""
    for shape, orders in ORDERS.items():
        measure(shape, orders())


def measure(shape: str, orders: list[Order]) -> None:
    """Print the figures of rows of one shape."""
    known = fastavro.parse_schema(json.loads(json.dumps(ORDER)))
    values = []
    for order in rows_of(orders):
        out = io.BytesIO(PREFIX)
        out.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(out, known, order)
        values.append(out.getvalue())
    column = pa.array(values, pa.binary())
    plain = [each[len(PREFIX) :] for each in values]
    writer, reader = parse(json.dumps(ORDER)), parse(json.dumps(EVOLVED))
    all_columns = Decoder([writer], writer)
    two_columns = Decoder([writer], writer, columns=["id", "created"])
    resolved = Decoder([writer], reader)

    def fastavro_rows() -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(each), known, None) for each in plain]

    array = all_columns.decode(column, skip=len(PREFIX)).array
    assert pa.Table.from_struct_array(array).to_pylist() == pa.Table.from_pylist(fastavro_rows()).to_pylist()
    encoder, rows = Encoder(writer), array.to_pylist()
    assert encoder.encode(array, prefix=PREFIX).array == column

    def fastavro_values(rows: list[Any]) -> pa.Array:
        encoded = []
        for each in rows:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, known, each)
            encoded.append(out.getvalue())
        return pa.array(encoded, pa.binary())

    jobs = {"10_columns": all_columns, "2_of_10_columns": two_columns, "resolved": resolved}
    best = cpu_us(
        {name: lambda each=each: each.decode(column, skip=len(PREFIX)) for name, each in jobs.items()}
        | {"fastavro": lambda: pa.Table.from_pylist(fastavro_rows()), "fastavro_rows": fastavro_rows}
        | {"encode": lambda: encoder.encode(array, prefix=PREFIX)}
        | {"fastavro_encode": lambda: fastavro_values(array.to_pylist())}
        | {"fastavro_encode_rows": lambda: fastavro_values(rows)}
    )
    for way, ours, peers in (
        ("decode", list(jobs), {"fastavro-then-Arrow": "fastavro", "fastavro-to-rows": "fastavro_rows"}),
        (
            "encode",
            ["encode"],
            {"to_pylist-then-fastavro": "fastavro_encode", "fastavro-from-rows": "fastavro_encode_rows"},
        ),
    ):
        for name in ours:
            label = f"schemas.avro.{way}.{shape}.{'10_columns' if name == 'encode' else name}"
            for peer, key in peers.items():
                print(line(label, best[name] * 1000 / len(orders), "ns/row", best[key] * 1000 / len(orders), peer))


if __name__ == "__main__":
    main()
