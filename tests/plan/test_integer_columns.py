"""The integers of many bodies by field, and the bytes of one body by field."""

from __future__ import annotations

from typing import Any

from tests.plan.definitions import compiled, field

from kwire import plan
from kwire.plan.integer_columns import count_fields, integer_fields
from kwire.plan.notes import bytes_by_field
from kwire.schema.encoding_costs import count_integers

Order: Any = compiled(
    field("Id", "varint64"),
    field("Note", "string"),
    field("Small", "int8"),
    field("Lines", "[]Line", fields=[
        field("Count", "int16"),
        field("Days", "[]int32", nullableVersions="0+"),
        field("Extra", "int32", tag=0, taggedVersions="1+", default=5),
    ]),
    field("Maybe", "Outer", nullableVersions="0+", fields=[
        field("Inner", "Inner", nullableVersions="0+", fields=[field("Deep", "int32")]),
        field("Flat", "int32"),
    ]),
    field("Later", "int32", "2+"),
    field("Sent", "int64", "1+", tag=0, taggedVersions="1+", default=-1),
)  # fmt: skip


def orders() -> list[Any]:
    line = Order.Line
    return [
        Order(id=7, lines=[line(count=1, days=[1, -2], extra=5), line(count=-300, days=None, extra=9)], sent=2**40),
        Order(id=-1, lines=[line(count=2, days=[])], maybe=Order.Outer(inner=None, flat=3)),
        Order(id=2**50, maybe=None, sent=0),
    ]


def test_each_integer_field_is_counted_over_all_bodies() -> None:
    fields = integer_fields(Order.SPEC, 1)
    assert [each.path for each in fields] == [
        *("id", "lines[].count", "lines[].days", "lines[].extra"),
        *("maybe.inner.deep", "maybe.flat", "sent"),
    ]
    counts = count_fields(Order.SPEC, 1, fields, [order.encode(version=1) for order in orders()])
    assert counts == {
        "id": count_integers([7, -1, 2**50]),
        "lines[].count": count_integers([1, -300, 2]),
        "lines[].days": count_integers([1, -2]),
        "lines[].extra": count_integers([9]),  # 5 is the default, and not on the wire
        "maybe.inner.deep": count_integers([0]),
        "maybe.flat": count_integers([0, 3]),
        "sent": count_integers([2**40, 0]),
    }
    assert count_fields(Order.SPEC, 1, fields, []).keys() == counts.keys()


def test_the_bytes_of_a_message_by_field_are_all_its_bytes() -> None:
    for version in (0, 1):
        for order in orders():
            order.sent, order.lines = (-1, []) if version == 0 else (order.sent, order.lines)
            data = order.encode(version=version)
            parts = bytes_by_field(plan.codec(Order.SPEC, version, Order).annotate(data).notes)
            assert sum(part.bytes for part in parts) == len(data)
    data = orders()[0].encode(version=1)
    parts = bytes_by_field(plan.codec(Order.SPEC, 1, Order).annotate(data).notes)
    assert [(part.path, part.type, part.times, part.bytes) for part in parts] == [
        ("id", "packed64", 1, 1),
        ("note", "string", 1, 1),
        ("small", "int8", 1, 1),
        ("lines", "count", 1, 1),
        ("lines[].count", "int16", 2, 4),
        ("lines[].days", "count", 2, 2),
        ("lines[].days[]", "int32", 2, 8),
        ("lines[]", "count of tagged fields", 2, 2),
        ("lines[]", "tag and size", 1, 2),
        ("lines[].extra", "int32", 1, 4),
        ("maybe", "presence", 1, 1),
        ("maybe.inner", "presence", 1, 1),
        ("maybe.inner.deep", "int32", 1, 4),
        ("maybe.inner", "count of tagged fields", 1, 1),
        ("maybe.flat", "int32", 1, 4),
        ("maybe", "count of tagged fields", 1, 1),
        ("", "count of tagged fields", 1, 1),
        ("", "tag and size", 1, 2),
        ("sent", "int64", 1, 8),
    ]
    assert next(part.values for part in parts if part.path == "lines[].count") == [1, -300]
