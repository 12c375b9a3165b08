"""The rows of plans that decode Protobuf messages into Arrow columns.

A row is one field in one place of a schema, and has the words FIELD. The kernel `native/protobuf_reading.c` follows
them. What it does not read it leaves to plain Python (`kwire.schemas.protobuf.reading`): rows with a fault, which is
named there, and maps with a key twice.

    operation      a         b          the value, and what is appended to the column
    MESSAGE        numbers   fields     a struct
    RAW                                 binary: a message as it is encoded
    TIME           is_duration          seconds and nanoseconds, as 8 bytes of microseconds
    BOXED          value                a message with one field
    LIST           item                 values, packed or not
    MAP            entry                messages with a key and a value, as a list of structs
    SKIP                                nothing: a member of a oneof, so that the others become null
    BOOL                                one bit
    INT32, SINT32                       4 bytes
    INT64, SINT64                       8 bytes
    UINT32, FIXED32                     8 bytes
    UINT64, FIXED64                     16 bytes, a decimal
    ENUM           names                a name, or the number as text
    COPY4, COPY8                        4 or 8 bytes as they are
    STRING, BYTES                       UTF-8; bytes

value, item, entry      rows
numbers                 a place in the operands: a count, and for each number below it the row of the field, -1 if none
fields                  a place in the operands: a count, and all rows in the order of their numbers
is_duration             1 rounds negative values towards zero, 0 down
names                   a place in the operands: a count, and for each name its number, and place and size in the
                        constants, in the order of the numbers
"""

from __future__ import annotations

from kwire.wire.value_rows import ROW_WORDS

__all__ = ["FIELD", "MAX_NESTED", "OPERATIONS"]

OPERATIONS = (
    *("MESSAGE", "RAW", "TIME", "BOXED", "LIST", "MAP", "SKIP"),
    *("BOOL", "INT32", "INT64", "UINT32", "UINT64", "SINT32", "SINT64", "ENUM"),
    *("FIXED32", "FIXED64", "COPY4", "COPY8", "STRING", "BYTES"),
)

FIELD = ("OPERATION", "COLUMN", "A", "B", "WIRE_TYPE", "NUMBER", "IS_NULLABLE", "OTHERS")
"""The words of a row. WIRE_TYPE: of a value that is not packed. IS_NULLABLE: 1 if the column has a null where the field
is absent, else it has the default. OTHERS: of a member of a oneof, a place in the operands: a count, and the columns of
the other members; -1 for other fields."""
assert len(FIELD) == ROW_WORDS

MAX_NESTED = 100
"""Messages and groups inside each other."""
