"""How fast are Protobuf values decoded into Arrow and encoded from it, compared with google.protobuf?

20,000 even and varied messages of 10 fields (`orders.py`): int64, string, double, int32, bool, optional string,
Timestamp, enum, bytes and float. google.protobuf (its parser upb is in C) gets the same messages, and is measured with
Arrow arrays made from the values of each field and without them. Target: 3 M even rows/s with a core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from benchmarks.messages.timing import cpu_us, line
from benchmarks.schemas.orders import ORDERS, STATUSES, Order
from kwire.schemas.protobuf import Decoder, Encoder, parse
from kwire.schemas.protobuf.reading import read_message
from kwire.schemas.protobuf.types import build_node

PREFIX = b"\0\0\0\0\1\0"
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


def encoded_orders(order: Any, orders: list[Order]) -> list[bytes]:
    """Return messages of google.protobuf, each after a prefix."""
    found = []
    for each in orders:
        fields = asdict(each)
        created = fields.pop("created")
        made = order(**fields)
        made.created.FromDatetime(created)
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
    for shape, orders in ORDERS.items():
        measure(shape, order, message, encoded_orders(order, orders()))


def measure(shape: str, order: Any, message: Any, values: list[bytes]) -> None:
    """Print the figures of rows of one shape. order: google.protobuf's class; message: kwire's parsed definition."""
    rows = len(values)
    column = pa.array(values, pa.binary())
    messages = [each[len(PREFIX) :] for each in values]
    skip, writer = np.full(rows, len(PREFIX), np.int64), np.zeros(rows, np.int32)
    jobs = {"10_columns": Decoder(message), "2_of_10_columns": Decoder(message, ["id", "created"])}
    kind, node = jobs["10_columns"].type, build_node(message)
    decoded = jobs["10_columns"].decode(column, skip, writer).array
    assert pa.Table.from_struct_array(decoded).equals(google_table(order, messages, kind))
    encoder, made = Encoder(message, kind), [order.FromString(each) for each in messages]
    assert encoder.encode(decoded, PREFIX).array == column
    table = pa.Table.from_struct_array(decoded)
    numbers = pa.array([STATUSES.index(each) for each in table["status"].to_pylist()], pa.int32())
    table = table.set_column(table.schema.get_field_index("status"), "status", numbers)
    table = table.set_column(table.schema.get_field_index("created"), "created", table["created"].cast(pa.int64()))
    plain = table.to_struct_array().combine_chunks()
    assert google_values(order, plain) == messages
    best = cpu_us(
        {name: lambda each=each: each.decode(column, skip, writer) for name, each in jobs.items()}
        | {"encode": lambda: encoder.encode(decoded, PREFIX)}
        | {"google_encode": lambda: google_values(order, plain)}
        | {"serialize": lambda: [each.SerializeToString() for each in made]}
        | {"google": lambda: google_table(order, messages, kind)}
        | {"parse": lambda: [order.FromString(each) for each in messages]}
        | {"plain": lambda: pa.array([read_message(node, each) for each in messages[:1000]], kind)}
        | {"plain_encode": lambda: list(encoder._write(decoded[:1000].cast(encoder._plain)))}
    )
    ns = {name: each * 1000 / (1000 if name.startswith("plain") else rows) for name, each in best.items()}
    for name in (*jobs, "plain"):
        label = f"schemas.protobuf.decode.{shape}.{'plain_python' if name == 'plain' else name}"
        print(line(label, ns[name], "ns/row", ns["google"], "google.protobuf-then-Arrow"))
        print(line(label, ns[name], "ns/row", ns["parse"], "google.protobuf-to-objects"))
    for name in ("encode", "plain_encode"):
        label = f"schemas.protobuf.encode.{shape}.{'10_columns' if name == 'encode' else 'plain_python'}"
        print(line(label, ns[name], "ns/row", ns["google_encode"], "to_pylist-then-google.protobuf"))
        print(line(label, ns[name], "ns/row", ns["serialize"], "google.protobuf-from-objects"))


if __name__ == "__main__":
    main()
