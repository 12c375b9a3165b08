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

value       a row
members     a place in the operands: a count, and for each property the place and size of its name in the constants, and
            its row; by size, then by name
"""

from __future__ import annotations

__all__ = ["OPERATIONS", "VALUE"]

OPERATIONS = ("OBJECT", "ARRAY", "MAP", "INTEGER", "NUMBER", "BOOLEAN", "STRING", "TEXT")

VALUE = ("OPERATION", "COLUMN", "A")
"""The words of a row that have a meaning."""
