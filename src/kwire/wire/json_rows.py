"""The rows of plans that decode JSON into Arrow columns.

A row is one value in one place of a schema, and has the words VALUE; null may stand for every value. The kernel
`native/json_reading.c` follows them. What it does not read it leaves to plain Python
(`kwire.schemas.json_schema.columns`): rows with a fault, which is named there; names that an object has twice, or that
have escape sequences; integers written with a fraction or an exponent; numbers that need more than 19 digits or a large
exponent; and in JSON text whatever would be written in another way.

    operation      a          the value, and what is appended to the column
    OBJECT         members    a struct; other properties are skipped
    ARRAY          value      a list
    MAP            value      an object as a list of names and values
    INTEGER                   8 bytes
    NUMBER                    8 bytes, a float
    BOOLEAN                   one bit
    STRING                    UTF-8
    TEXT                      any value as JSON text, without spaces
    STRING_OR_TEXT            UTF-8 of a string; any other value as JSON text
    DECIMAL                   a number as it is written, or UTF-8 of a string

value       a row
members     a place in the operands: a count, and for each property the place and size of its name in the constants, and
            its row; by size, then by name

Encoding has rows of its own with the words TEXT, run by `native/json_writing.c`. They write what `msgspec.json` writes
of the same values, and check what the schema says of them. Plain Python writes what the kernel leaves: values that the
schema does not allow, maps with more than 64 names or one twice, and schemas with keywords that have no row:

    operation      a         b          the source, and what is written
    TEXT_OBJECT    members   count      a struct
    TEXT_ARRAY     value                a list of LEAST to GREATEST values
    TEXT_MAP       value     names      a list of names, of this source, and values
    TEXT_INTEGER                        8 bytes, from LEAST to GREATEST
    TEXT_NUMBER                         8 bytes, a float; LEAST and GREATEST have the bits of floats
    TEXT_BOOLEAN                        one bit
    TEXT_STRING    table     count      UTF-8 of LEAST to GREATEST characters, one of a table unless that is -1
    TEXT_LEFT                           a value that is not null is left to plain Python

members     a place in the operands: for each property the place and size of `"name":` in the constants, its row, and
            whether it is required
table       a place in the operands: for each string its place and size in the constants
"""

from __future__ import annotations

__all__ = ["OPERATIONS", "TEXT", "TEXT_OPERATIONS", "VALUE"]

OPERATIONS = ("OBJECT", "ARRAY", "MAP", "INTEGER", "NUMBER", "BOOLEAN", "STRING", "TEXT", "STRING_OR_TEXT", "DECIMAL")

VALUE = ("OPERATION", "COLUMN", "A")
"""The words of a row that have a meaning."""

TEXT_OPERATIONS = (
    *("TEXT_OBJECT", "TEXT_ARRAY", "TEXT_MAP", "TEXT_INTEGER", "TEXT_NUMBER", "TEXT_BOOLEAN", "TEXT_STRING"),
    "TEXT_LEFT",
)

TEXT = ("TEXT_OPERATION", "TEXT_SOURCE", "TEXT_A", "TEXT_B", "TEXT_LEAST", "TEXT_GREATEST", "TEXT_TAKES_NULL")
"""The words of a row that encodes. TAKES_NULL: what becomes of a null: 0, a property is left out, elsewhere the row is
left to plain Python; 1, it is written; 2, the row is left."""
