"""How fast are Protobuf values decoded into Arrow and encoded from it, compared with google.protobuf?

100,000 messages of 10 fields, about 80 bytes each: int64, string, double, int32, bool, optional string, Timestamp,
enum, bytes and float. Target: 3 M rows/s with a core, and 10 times the rows of google.protobuf (its parser upb is in C)
and Arrow arrays made from the values of each field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from benchmarks.messages.timing import cpu_us, line
from kwire.schemas.protobuf import Decoder, Encoder, parse
from kwire.schemas.protobuf.reading import read_message
from kwire.schemas.protobuf.types import build_node

ROWS, PEER_ROWS = 100_000, 2_000
PREFIX = b"\0\0\0\0\1\0"
STATUSES = ["NEW", "PAID", "SENT", "DONE"]
TEXT = """
    syntax = "proto3"; import "google/protobuf/timestamp.proto";
    enum Status { NEW = 0; PAID = 1; SENT = 2; DONE = 3; }
    message Order { int64 id = 1; string customer = 2; double amount = 3; int32 quantity = 4; bool paid = 5;
        optional string note = 6; google.protobuf.Timestamp created = 7; Status status = 8; bytes token = 9;
        float weight = 10; }
"""
TYPES = (3, 9, 1, 5, 8, 9, 11, 14, 12, 2)  # of descriptor.proto, for the fields above


def google_order() -> Any:
    """Return google.protobuf's class of the message."""
    names = [field.name for field in Decoder(parse(TEXT).messages[0]).type]
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    status = file.enum_type.add(name="Status")
    for number, name in enumerate(STATUSES):
        status.value.add(name=name, number=number)
    order = file.message_type.add(name="Order")
    for number, (name, kind) in enumerate(zip(names, TYPES, strict=True), 1):
        field = order.field.add(name=name, number=number, type=kind, label=1)
        if kind in (11, 14):
            field.type_name = ".google.protobuf.Timestamp" if kind == 11 else ".Status"
        if name == "note":
            field.oneof_index, field.proto3_optional = 0, True
            order.oneof_decl.add(name="_note")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    return message_factory.GetMessageClass(pool.Add(file).message_types_by_name["Order"])


def encoded_orders(order: Any, count: int) -> list[bytes]:
    """Return messages of google.protobuf, each after a prefix."""
    found = []
    for i in range(count):
        made = order(
            id=i * 1_000_003,
            customer=f"customer {i % 5000}",
            amount=i * 1.25,
            quantity=i % 100,
            paid=i % 3 == 0,
            note=None if i % 4 else f"leave order {i} at the door",
            status=i % 4,
            token=(i * 2654435761 % 2**64).to_bytes(8, "big"),
            weight=i * 0.5,
        )
        made.created.FromMilliseconds(1_767_225_600_000 + 37 * i)
        found.append(PREFIX + made.SerializeToString())
    return found


def google_table(order: Any, values: Sequence[bytes], kind: pa.StructType) -> pa.Table:
    """Return the table that google.protobuf's objects give, column by column."""
    rows = [order.FromString(each) for each in values]
    columns: dict[str, list[Any]] = {field.name: [getattr(row, field.name) for row in rows] for field in kind}
    columns["note"] = [row.note if row.HasField("note") else None for row in rows]
    columns["created"] = [each.ToMicroseconds() for each in columns["created"]]
    columns["status"] = [STATUSES[each] for each in columns["status"]]
    return pa.table(columns, pa.schema(kind))


def google_values(order: Any, array: pa.StructArray) -> list[bytes]:
    """Return messages that google.protobuf writes of an array, whose times and enums are numbers."""
    found = []
    for row in array.to_pylist():
        created = row.pop("created")
        made = order(**row)
        made.created.FromMicroseconds(created)
        found.append(made.SerializeToString())
    return found


def main() -> None:
    """Print the figures."""
    order, message = google_order(), parse(TEXT).messages[0]
    values = encoded_orders(order, ROWS)
    column = pa.array(values, pa.binary())
    few = [each[len(PREFIX) :] for each in values[:PEER_ROWS]]
    skip, writer = np.full(ROWS, len(PREFIX), np.int64), np.zeros(ROWS, np.int32)
    jobs = {"10_columns": Decoder(message), "2_of_10_columns": Decoder(message, ["id", "created"])}
    kind, node = jobs["10_columns"].type, build_node(message)
    decoded = jobs["10_columns"].decode(column, skip, writer).array
    assert pa.Table.from_struct_array(decoded[:PEER_ROWS]).equals(google_table(order, few, kind))
    encoder, made = Encoder(message, kind), [order.FromString(each) for each in few]
    assert encoder.encode(decoded, PREFIX).array == column
    table = pa.Table.from_struct_array(decoded[:PEER_ROWS])
    numbers = pa.array([STATUSES.index(each) for each in table["status"].to_pylist()], pa.int32())
    table = table.set_column(table.schema.get_field_index("status"), "status", numbers)
    table = table.set_column(table.schema.get_field_index("created"), "created", table["created"].cast(pa.int64()))
    plain = table.to_struct_array().combine_chunks()
    assert google_values(order, plain) == few
    few_rows = decoded[:PEER_ROWS].cast(encoder._plain)
    best = cpu_us(
        {name: lambda each=each: each.decode(column, skip, writer) for name, each in jobs.items()}
        | {"encode": lambda: encoder.encode(decoded, PREFIX)}
        | {"google_encode": lambda: google_values(order, plain)}
        | {"serialize": lambda: [each.SerializeToString() for each in made]}
        | {"plain_encode": lambda: list(encoder._write(few_rows))}
        | {"google": lambda: google_table(order, few, kind)}
        | {"plain": lambda: pa.array([read_message(node, each) for each in few], kind)}
    )
    peer = PEER_ROWS / best["google"]
    rates = {name: ROWS / best[name] for name in jobs} | {"plain_python": PEER_ROWS / best["plain"]}
    for name, rate in rates.items():
        name = f"schemas.protobuf.decode.{name}"
        print(line(name, rate, "M_rows/s", peer, "google.protobuf-then-Arrow"))
        print(line(f"{name}.cpu", 1000 / rate, "ns/row", 1000 / peer, "google.protobuf-then-Arrow"))
    peer = PEER_ROWS / best["google_encode"]
    rates = {"10_columns": ROWS / best["encode"], "plain_python": PEER_ROWS / best["plain_encode"]}
    rates["of_10_columns_as_objects"] = PEER_ROWS / best["serialize"]  # google.protobuf alone, without Arrow
    for name, rate in rates.items():
        print(line(f"schemas.protobuf.encode.{name}", rate, "M_rows/s", peer, "to_pylist-then-google.protobuf"))
        print(line(f"schemas.protobuf.encode.{name}.cpu", 1000 / rate, "ns/row", 1000 / peer, "the_same"))


if __name__ == "__main__":
    main()
