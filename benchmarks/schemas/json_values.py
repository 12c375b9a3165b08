"""How fast are JSON values decoded into Arrow, compared with pyarrow's reader of JSON lines, and encoded from it?

20,000 even and varied objects of 10 properties (`orders.py`): integers, strings, numbers, a boolean and nulls.
pyarrow.json gets the same bytes as lines, and the schema. Peers in Python: msgspec with a class, and Arrow arrays made
from the values of each attribute. Encoding is compared with msgspec and json, which get the rows of to_pylist, and with
msgspec that has them; neither checks the schema.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json

from benchmarks.messages.timing import cpu_us, line
from benchmarks.schemas.orders import ORDERS, STATUSES, Order
from kwire.schemas.json_schema import Decoder, Encoder, parse

PREFIX = b"\0\0\0\0\1"
TYPES: dict[str, Any] = {
    "id": "integer",
    "customer": "string",
    "amount": "number",
    "quantity": "integer",
    "paid": "boolean",
    "note": ["string", "null"],
    "created": "string",
    "status": "string",
    "token": "string",
    "weight": "number",
}
PYTHON = {"integer": int, "string": str, "number": float, "boolean": bool}


def encoded_orders(orders: list[Order]) -> list[bytes]:
    """Return JSON as Python's own module writes it."""
    found = []
    for each in orders:
        fields = asdict(each) | {"status": STATUSES[each.status], "token": each.token.hex()}
        fields["created"] = each.created.isoformat().replace("+00:00", "Z")
        found.append(json.dumps(fields).encode())
    return found


def main() -> None:
    """Print the figures."""
    for shape, orders in ORDERS.items():
        measure(shape, encoded_orders(orders()))


def measure(shape: str, values: list[bytes]) -> None:
    """Print the figures of rows of one shape."""
    count = len(values)
    column = pa.array([PREFIX + each for each in values], pa.binary())
    lines = pa.py_buffer(b"\n".join(values))
    schema = parse(json.dumps({"type": "object", "properties": {name: {"type": kind} for name, kind in TYPES.items()}}))
    skip, writer = np.full(count, len(PREFIX), np.int64), np.zeros(count, np.int32)
    jobs = {"10_columns": Decoder(schema), "2_of_10_columns": Decoder(schema, ["id", "created"])}
    fields = pa.schema(list(jobs["10_columns"].type))
    kinds = {name: PYTHON[kind if isinstance(kind, str) else kind[0]] for name, kind in TYPES.items()}
    row = msgspec.defstruct("Row", [(name, kind | None, None) for name, kind in kinds.items()], gc=False)
    parse_row = msgspec.json.Decoder(row).decode

    def with_pyarrow() -> pa.Table:
        return pyarrow.json.read_json(
            pa.BufferReader(lines),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=lines.size + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
        )

    def with_msgspec() -> list[pa.Array]:
        rows = [parse_row(each) for each in values]
        return [pa.array([getattr(each, field.name) for each in rows], field.type) for field in fields]

    decoded = jobs["10_columns"].decode(column, skip, writer).array
    assert pa.Table.from_struct_array(decoded).equals(with_pyarrow().combine_chunks())
    encoder, rows = Encoder(schema, decoded.type), decoded.to_pylist()
    assert encoder.encode(decoded, b"").array.to_pylist() == list(map(msgspec.json.encode, rows))
    best = cpu_us(
        {name: lambda each=each: each.decode(column, skip, writer) for name, each in jobs.items()}
        | {"pyarrow": with_pyarrow, "msgspec": with_msgspec}
        | {"encode": lambda: encoder.encode(decoded, PREFIX)}
        | {"msgspec_encode": lambda: [msgspec.json.encode(each) for each in decoded.to_pylist()]}
        | {"msgspec_rows": lambda: [msgspec.json.encode(each) for each in rows]}
        | {"json_encode": lambda: [json.dumps(each).encode() for each in decoded.to_pylist()]}
        | {"plain": lambda: pa.array([jobs["10_columns"].read(each) for each in values[:1000]], decoded.type)}
        | {"plain_encode": lambda: list(encoder._write(decoded[:1000]))}
    )
    ns = {name: each * 1000 / (1000 if name.startswith("plain") else count) for name, each in best.items()}
    for name in (*jobs, "plain"):
        label = f"schemas.json.decode.{shape}.{'plain_python' if name == 'plain' else name}"
        print(line(label, ns[name], "ns/row", ns["pyarrow"], "pyarrow.json"))
        print(line(label, ns[name], "ns/row", ns["msgspec"], "msgspec-then-Arrow"))
    for name in ("encode", "plain_encode"):
        label = f"schemas.json.encode.{shape}.{'10_columns' if name == 'encode' else 'plain_python'}"
        for peer, key in (
            ("to_pylist-then-msgspec", "msgspec_encode"),
            ("msgspec-from-rows", "msgspec_rows"),
            ("to_pylist-then-json", "json_encode"),
        ):
            print(line(label, ns[name], "ns/row", ns[key], peer))


if __name__ == "__main__":
    main()
