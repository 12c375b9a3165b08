"""How fast are JSON values decoded into Arrow, compared with pyarrow's reader of JSON lines, and encoded from it?

100,000 objects of 10 properties, about 190 bytes each: integers, strings, numbers, a boolean and nulls. pyarrow.json
gets the same bytes as lines, and the schema. Peers in Python: msgspec with a class, and Arrow arrays made from the
values of each attribute. Encoding is compared with msgspec and json, which get the rows of to_pylist; neither checks
the schema.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json

from benchmarks.messages.timing import cpu_us, line
from kwire.schemas.json_schema import Decoder, Encoder, parse

ROWS = 100_000
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


def encoded_orders(count: int) -> list[bytes]:
    """Return JSON as Python's own module writes it."""
    return [
        json.dumps(
            {
                "id": i * 1_000_003,
                "customer": f"customer {i % 5000}",
                "amount": i / 7,
                "quantity": i % 100,
                "paid": i % 3 == 0,
                "note": None if i % 4 else f"leave order {i} at the door",
                "created": f"2026-01-01T00:{i // 60 % 60:02}:{i % 60:02}Z",
                "status": ("NEW", "PAID", "SENT", "DONE")[i % 4],
                "token": f"{i * 2654435761 % 2**64:016x}",
                "weight": i * 0.5,
            }
        ).encode()
        for i in range(count)
    ]


def main() -> None:
    """Print the figures."""
    values = encoded_orders(ROWS)
    column = pa.array([PREFIX + each for each in values], pa.binary())
    lines = pa.py_buffer(b"\n".join(values))
    schema = parse(json.dumps({"type": "object", "properties": {name: {"type": kind} for name, kind in TYPES.items()}}))
    skip, writer = np.full(ROWS, len(PREFIX), np.int64), np.zeros(ROWS, np.int32)
    jobs = {"10_columns": Decoder(schema), "2_of_10_columns": Decoder(schema, ["id", "created"])}
    fields = pa.schema(list(jobs["10_columns"].type))
    kinds = {name: PYTHON[kind if isinstance(kind, str) else kind[0]] for name, kind in TYPES.items()}
    row = msgspec.defstruct("Row", [(name, kind | None, None) for name, kind in kinds.items()], gc=False)
    parse_row, few = msgspec.json.Decoder(row).decode, values[:2_000]

    def with_pyarrow() -> pa.Table:
        return pyarrow.json.read_json(
            pa.BufferReader(lines),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=lines.size + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
        )

    def with_msgspec() -> list[pa.Array]:
        rows = [parse_row(each) for each in few]
        return [pa.array([getattr(each, field.name) for each in rows], field.type) for field in fields]

    decoded = jobs["10_columns"].decode(column, skip, writer).array
    assert pa.Table.from_struct_array(decoded).equals(with_pyarrow().combine_chunks())
    encoder, part = Encoder(schema, decoded.type), decoded[: len(few)]
    assert encoder.encode(decoded, b"").array[: len(few)].to_pylist() == list(
        map(msgspec.json.encode, part.to_pylist())
    )
    best = cpu_us(
        {name: lambda each=each: each.decode(column, skip, writer) for name, each in jobs.items()}
        | {"pyarrow": with_pyarrow, "msgspec": with_msgspec}
        | {"encode": lambda: encoder.encode(decoded, PREFIX)}
        | {"msgspec_encode": lambda: [msgspec.json.encode(each) for each in part.to_pylist()]}
        | {"json_encode": lambda: [json.dumps(each).encode() for each in part.to_pylist()]}
        | {"plain_encode": lambda: list(encoder._write(part))}
        | {"plain": lambda: pa.array([jobs["10_columns"].read(each) for each in few], decoded.type)}
    )
    peer = ROWS / best["pyarrow"]
    rates = {name: ROWS / best[name] for name in jobs}
    rates |= {"plain_python": len(few) / best["plain"], "msgspec-then-Arrow": len(few) / best["msgspec"]}
    for name, rate in rates.items():
        name = f"schemas.json.decode.{name}"
        print(line(name, rate, "M_rows/s", peer, "pyarrow.json"))
        print(line(f"{name}.cpu", 1000 / rate, "ns/row", 1000 / peer, "pyarrow.json"))
    peer = len(few) / best["msgspec_encode"]
    rates = {"10_columns": ROWS / best["encode"], "plain_python": len(few) / best["plain_encode"]}
    rates["json"] = len(few) / best["json_encode"]
    for name, rate in rates.items():
        print(line(f"schemas.json.encode.{name}", rate, "M_rows/s", peer, "to_pylist-then-msgspec"))
        print(line(f"schemas.json.encode.{name}.cpu", 1000 / rate, "ns/row", 1000 / peer, "the_same"))


if __name__ == "__main__":
    main()
