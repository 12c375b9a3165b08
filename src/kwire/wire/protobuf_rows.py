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

Encoding has rows of its own with the words PUT, run by `native/protobuf_writing.c`. Their source is an array of the
type that decoding makes, times as microseconds. Plain Python (`kwire.schemas.protobuf.writing`) writes what the kernel
leaves:

    operation      a         b          the source, and what is written
    PUT_MESSAGE    fields    count      a struct: the fields that are not null; all values but the root have a length
    PUT_GROUP      fields    count      the same between two tags
    PUT_TIME       duration  presence   8 bytes: seconds (presence 1) and nanoseconds (2), also if they are 0
    PUT_BOXED      value                a value: a message with one field, whose row has the same source
    PUT_LIST       item                 a list, a tag before each item
    PUT_PACKED     item                 a list as one value
    PUT_MAP        key       value      a list of keys and values, a message for each
    PUT_BYTES      text                 binary, or a string if text is 1
    PUT_ENUM       names                a string, the name of a number
    PUT_BOOL                            one bit
    PUT_INT32, PUT_SINT32               4 bytes
    PUT_INT64, PUT_SINT64               8 bytes
    PUT_UINT32, PUT_FIXED32             8 bytes of 32 bits at most
    PUT_UINT64, PUT_FIXED64             16 bytes of 64 bits at most
    PUT_COPY4, PUT_COPY8                4 or 8 bytes as they are

fields                  a place in the operands: rows in the order of their numbers
names                   a place in the operands: a count, and for each name its size, place in the constants and number,
                        by size, then by name
"""

from __future__ import annotations

from kwire.wire.value_rows import ROW_WORDS

__all__ = ["FIELD", "MAX_NESTED", "MAX_ONEOFS", "OPERATIONS", "PUT", "PUT_OPERATIONS"]

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

PUT_OPERATIONS = (
    *(
        "PUT_MESSAGE",
        "PUT_GROUP",
        "PUT_TIME",
        "PUT_BOXED",
        "PUT_LIST",
        "PUT_PACKED",
        "PUT_MAP",
        "PUT_BYTES",
        "PUT_ENUM",
    ),
    *("PUT_BOOL", "PUT_INT32", "PUT_INT64", "PUT_UINT32", "PUT_UINT64", "PUT_SINT32", "PUT_SINT64"),
    *("PUT_FIXED32", "PUT_FIXED64", "PUT_COPY4", "PUT_COPY8"),
)

PUT = ("PUT_OPERATION", "PUT_SOURCE", "PUT_TAG", "PUT_A", "PUT_B", "PUT_WIDTH", "PUT_IS_IMPLICIT", "PUT_ONEOF")
"""The words of a row that encodes. WIDTH: bytes of a number, 0 for a varint. IS_IMPLICIT: 1 if a default is not sent.
ONEOF: a number below MAX_ONEOFS for the oneof of a member, -1 for other fields."""
assert len(PUT) == ROW_WORDS

MAX_ONEOFS = 64
"""Of one message: the kernel leaves messages with more to plain Python."""
