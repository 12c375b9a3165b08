"""The rows of a plan: operations and their operands.

A plan describes the bytes of one version of one message. It is a list of rows of eight int64: the operation and seven
operands. The same rows drive compiled code (`native/messages.c`, `messages_writing.c`), the plain-Python walker
(`reading`, `writing`) and the column readers (`nested_columns`, `native/message_columns.c`). Each direction ignores the
operands that only the other one needs.

Interpreters read and write objects in *class order*: a struct is an array of its class's attributes. It differs from
the wire order in three cases, which have their own rows: fields missing in this version (ABSENT), tagged fields (TAGS),
and fields that are positional here and tagged in other versions (MARK, SEEK, BACK, SKIP, PERMUTE).

    operation  a          b      c          d
    END                                                the message is complete
    LENGTH                                             int32: bytes after it (frames)
    STRUCT     flexible   count                        a struct of `count` values
    FIXED      codes      count  bytes                 values of fixed width
    STRING     flags                                   length, UTF-8
    BYTES      flags                                   length, bytes
    LIST       flags      code   width                 array of values of fixed width
    ARRAY      flags      end    min_bytes             array; elements up to its NEXT
    NEXT       target                                  the end of an element; target: the first row of an element
    NULLABLE   tagged     end                          a marker: null, or what follows
    ABSENT                rows   trailing   ignorable  a field this version lacks
    TAGS       entries    end    trimmed               the tag section
    TAG_STEP   entries    end                          the next tagged field
    ENTRY      tag        state  sub        ignorable
    TAG_END    target                                  the end of a tagged value; target: TAG_STEP
    MARK                                               a struct out of class order
    SEEK       index                                   to the value with that index
    BACK                                               to where the SEEK left
    SKIP                                               that value has been written
    PERMUTE                                            the end of that struct
    VARINTS    codes      count                        integers packed as in KIP-625
    VARLIST    flags      code                         array of such integers

The other operands are for those who run the rows: `nested_columns` writes `column` and `level`, `layouts` `layout`.

codes       one nibble a value, first value lowest: a code of WIDTHS, in a row of VARINTS of PACKED; at most 15 a row.
            A fixed encoding that is narrower than its field is FIXED with the narrower code: values have no width.
            The same goes for the one code of LIST and of VARLIST
flags       COMPACT: the length is an unsigned varint of n + 1; else int16 for strings and int32 for the rest.
            MAY_BE_NULL: in this version
end, target, sub    row numbers
rows        of the first row of a run of ABSENT rows: how many it has
trailing    the run ends the struct (or its positional part, when a TAGS row follows): the walker leaves these values
            out, because the class has the same defaults
trimmed     how many such values are before the section; -1: the walker writes all values, because they get permuted
state       LIVE: may be in the section; ELSEWHERE: positional in this version; LACKING: not in this version
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from kwire.schema.model import Field, default_value, own_encoding
from kwire.wire.tagged_fields import MAX_TAG as MAX_TAG

_pack = msgspec.msgpack.Encoder(uuid_format="bytes").encode

END, LENGTH, STRUCT, FIXED, STRING, BYTES, LIST, ARRAY, NEXT, NULLABLE = range(10)
ABSENT, TAGS, TAG_STEP, ENTRY, TAG_END, MARK, SEEK, BACK, SKIP, PERMUTE = range(10, 20)
VARINTS, VARLIST = 20, 21
OPERATIONS = (
    *("END", "LENGTH", "STRUCT", "FIXED", "STRING", "BYTES", "LIST", "ARRAY", "NEXT", "NULLABLE"),
    *("ABSENT", "TAGS", "TAG_STEP", "ENTRY", "TAG_END", "MARK", "SEEK", "BACK", "SKIP", "PERMUTE"),
    *("VARINTS", "VARLIST"),
)

BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID = range(1, 10)
CODES = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "uint32": UINT32,
    "int64": INT64,
    "float64": FLOAT64,
    "uuid": UUID,
}
CODE_NAMES = {code: name for name, code in CODES.items()}
WIDTHS = {BOOL: 1, INT8: 1, INT16: 2, UINT16: 2, INT32: 4, UINT32: 4, INT64: 8, FLOAT64: 8, UUID: 16}
FORMATS = {
    BOOL: "?",
    INT8: "b",
    INT16: "h",
    UINT16: "H",
    INT32: "i",
    UINT32: "I",
    INT64: "q",
    FLOAT64: "d",
    UUID: "16s",
}
"""Codes in the notation of the module struct."""
MAX_CODES = 15

PACKED16, PACKED32, PACKED64, UPACKED16, UPACKED32, UPACKED64 = range(10, 16)
PACKED = {
    "packed16": PACKED16,
    "packed32": PACKED32,
    "packed64": PACKED64,
    "upacked16": UPACKED16,
    "upacked32": UPACKED32,
    "upacked64": UPACKED64,
}
PACKED_NAMES = {code: name for name, code in PACKED.items()}
FIXED_ENCODINGS = {"fixed16": INT16, "fixed32": INT32, "fixed64": INT64}
"""Codes of KIP-625's encodings: of varints, and of the fixed ones."""

COMPACT, MAY_BE_NULL = 1, 2
LIVE, ELSEWHERE, LACKING = 0, 1, 2

ROW = (
    ("op",),
    ("codes", "flags", "flexible", "tagged", "entries", "tag", "index", "target"),
    ("count", "code", "rows", "end", "state"),
    ("bytes", "width", "min_bytes", "trailing", "trimmed", "sub"),
    *(("ignorable",), ("column",), ("level",), ("layout",)),
)
"""The names of each int64 of a row."""
WORD = {name: i for i, names in enumerate(ROW) for name in names}
MAX_STRING_BYTES = 32767
MAX_ELEMENTS, MAX_TAGGED_FIELDS = 1_000_000, 10_000
"""Maximum size of an array, and of a tag section, that is read: those of the readers that Kafka 4.4.0 generates."""
UUID_BYTES = 16
MAX_FRAMES = 224
"""Open structs and arrays of a message in compiled code: 2 for each level. Kafka's deepest message needs 13."""

DEFAULT_SLICE = -2
"""Of a string or list in a column: it has the field's default (`nested_columns`)."""
LEVEL_FIELDS = ("rows", "room", "before")
"""State of a level of columns in compiled code; before: the rows before the message that it reads."""
UNKNOWN = "unknown_tagged_fields"

Row = tuple[int, int, int, int, int, int, int, int]


@dataclass(slots=True, kw_only=True)
class Plan:
    """The rows of one (message, version), or of a frame (header and body).

    fields: for each row, its fields (several of FIXED and VARINTS, none of rows for structure).
    paths: for each row, the attributes down to its struct, with `[]` after arrays.
    structs: struct names by STRUCT row.
    orders: by PERMUTE row, for each value in class order: its place in the order of reading.
    depth: maximum number of frames of an interpreter.
    has_empty_elements: whether the elements of an array take no bytes.
    """

    message: str
    version: int
    rows: list[Row] = field(default_factory=list)
    fields: list[tuple[Field, ...]] = field(default_factory=list)
    paths: list[tuple[str, ...]] = field(default_factory=list)
    structs: dict[int, str] = field(default_factory=dict)
    orders: dict[int, tuple[int, ...]] = field(default_factory=dict)
    depth: int = 0
    has_empty_elements: bool = False

    def row_after(self, number: int) -> int:
        """Return the number of the row after the value that starts at this row; of a struct, after its STRUCT row."""
        operation, _, end, *_ = self.rows[number]
        return end if operation in (ARRAY, TAGS, NULLABLE) else number + 1

    def default(self, number: int) -> bytes:
        """Return the default of a row's field as msgspec encodes it; without one, that of unknown tagged fields."""
        fields = self.fields[number]
        return _pack(default_value(fields[0]) if fields else [])

    def attribute(self, number: int) -> str:
        """Return the attribute that a row reads or writes; "" for elements of arrays, which have an index instead."""
        fields = self.fields[number]
        if not fields or (self.rows[number - 1][0] == ARRAY and self.fields[number - 1] == fields):
            return ""
        return fields[0].attr


def fixed_words(codes: Sequence[int], fields: Sequence[Field]) -> list[str]:
    """Return the names of the values of a FIXED row for errors and notes: types, or narrower encodings."""
    types = zip((CODE_NAMES[code] for code in codes), fields, strict=True)
    return [name if name == field.type else own_encoding(name) for name, field in types]


def disassemble(plan: Plan) -> str:
    """Render the plan as text: one line per row, with the fields it represents."""
    lines = []
    for number, (row, fields, path) in enumerate(zip(plan.rows, plan.fields, plan.paths, strict=True)):
        where = ".".join((*path, " ".join(f.attr for f in fields))) if fields else ".".join(path)
        if number in plan.structs:
            where = f"{'.'.join(path)} {plan.structs[number]}".strip()
        shown = " ".join(f"{x:#x}" if row[0] in (FIXED, VARINTS) and i == 0 else str(x) for i, x in enumerate(row[1:]))
        while shown.endswith(" 0"):
            shown = shown[:-2]
        lines.append(f"{number:4d}  {OPERATIONS[row[0]]:<8s} {shown:<28s} {where}".rstrip())
    return "\n".join(lines)
