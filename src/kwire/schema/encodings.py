"""Integer encodings in definitions (KIP-625), in both notations.

    "type": "int32", "encoding": "packed32"                                 one encoding in all versions of the field
    "type": "int32", "encoding": {"0-9": "fixed32", "10+": "upacked32"}     one for each range of versions
    "type": "varint32"                                                      equals the first
    "type": {"0-9": "int32", "10+": "unsigned_varint32"}                    equals the second

The second notation is translated into the first: the logical type is the widest of the types (I-32), and int32,
varint32 and unsigned_varint32 stand for fixed32, packed32 and upacked32 (I-33). Of an array it is the elements that
are encoded, in either notation: `"type": "[]int32", "encoding": "packed32"` and `"type": "[]varint32"` (I-46).
Rules I-10 to I-15 and I-30 to I-34 of docs/spec/messages.md; I-23, the default, is checked when that is read.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from kwire.schema.attributes import Attributes, Dialect
from kwire.schema.model import ENCODABLE, PRIMITIVES, Field, normal_encodings
from kwire.schema.versions import Versions
from kwire.wire.integer_encoding import ENCODINGS, WIDTHS

__all__ = ["VARINTS", "Ranges", "read_encodings", "read_ranges", "widest_type"]

Ranges = list[tuple[Versions, str]]

VARINTS: Final = {f"{word}{bits}": f"int{bits}" for word in ("varint", "unsigned_varint") for bits in WIDTHS}
"""The new type names with the types that they are in memory (I-31)."""
ENCODING_OF: Final = {
    f"{word}{bits}": f"{form}{bits}"
    for word, form in (("int", "fixed"), ("varint", "packed"), ("unsigned_varint", "upacked"))
    for bits in WIDTHS
}
KIP_NAMES: Final = {f"unsigned{bits}": f"upacked{bits}" for bits in WIDTHS}
"""Names in the KIP's example, which violate its own naming rule (I-40)."""


def _split(text: str) -> tuple[str, str]:
    """("[]", element type) of an array, ("", type) of anything else."""
    text = text.strip()
    return ("[]", text[2:].strip()) if text.startswith("[]") else ("", text)


def read_ranges(o: Attributes, attribute: str) -> Ranges:
    """Read an object {range: name}, sorted by range. Returns an empty list after an error (I-14, I-12)."""
    node = o.members[attribute]
    assert isinstance(node.value, dict)
    if not node.value:
        o.problem("I-14", f"{attribute} must not be an empty object", node.line)
    ranges: Ranges = []
    for text, name in node.value.items():
        try:
            versions = Versions.parse(text)
        except ValueError as error:
            o.problem("I-14", f"{attribute}: {error}", name.line)
            continue
        if not versions:
            o.problem("I-14", f"{attribute}: empty range {text!r}", name.line)
        elif not isinstance(name.value, str):
            o.problem("I-14", f"{attribute}: the value for {versions} must be a string", name.line)
        else:
            ranges.append((versions, name.value))
    if len(ranges) < len(node.value):
        return []
    ranges.sort(key=lambda pair: (pair[0].lowest, pair[0].highest))
    reach = ranges[0][0] if ranges else None
    for versions, _ in ranges[1:]:
        assert reach is not None
        if versions.lowest <= reach.highest:
            o.problem("I-12", f"{attribute}: {reach} and {versions} overlap", node.line)
            return []
        reach = versions
    return ranges


def widest_type(o: Attributes, types: Ranges) -> str | None:
    """Return the type in memory of a type that is an object; None after reporting an error."""
    texts = (_split(text) for _, text in types)
    names = list(dict.fromkeys(f"{array}{VARINTS.get(element, element)}" for array, element in texts))
    if len(names) == 1:
        return names[0]
    elements = [_split(name)[1] for name in names]
    for name, element in zip(names, elements, strict=True):
        if element not in PRIMITIVES and not element[:1].isupper():
            o.problem("E-10", f"type: unknown type {name!r}", o.members["type"].line)
            return None
    arrays = {_split(name)[0] for name in names}
    for name, element in zip(names, elements, strict=True):
        if element not in ENCODABLE or len(arrays) > 1:
            what = f"type: {name} cannot be mixed with other types; only int16, int32, int64 and varints can"
            o.problem("I-34", f"{what}, or arrays of them", o.members["type"].line)
            return None
    return f"{arrays.pop()}{max(elements, key=ENCODABLE.index)}" if names else None


def read_encodings(
    o: Attributes, field: Field, types: Ranges | None, dialect: Dialect
) -> tuple[tuple[Versions, str], ...]:
    """Read the encodings of a field; empty for the fixed encoding of its type in all versions, and after an error.

    field: with its type and versions. types: the ranges of a type that is an object, else None.
    dialect: "kip" accepts the name in the KIP's example, unsigned32 for upacked32 (I-40).
    """
    unfit = field.type not in ENCODABLE
    notation = "type"
    ranges: Ranges = []
    if types is not None:
        ranges = [(versions, ENCODING_OF.get(_split(text)[1], "")) for versions, text in types]
    elif (element := _split(o.text("type"))[1]) in VARINTS:
        ranges = [(field.versions, ENCODING_OF[element])]
    if "encoding" in o.members:
        if ranges:
            o.problem("I-34", "encoding is not allowed because type already names one", o.members["encoding"].line)
            return ()
        notation, ranges = "encoding", _encoding_attribute(o, field, dialect)
        if ranges and unfit:
            what = "encoding is allowed only for int16, int32, int64 and arrays of them"
            what += f", not to {field.type_text}"
            o.problem("I-10", what, o.members["encoding"].line)
            return ()
    if not ranges or not _covers(o, field, notation, ranges) or unfit:
        return ()
    return normal_encodings(field.type, ranges if field.versions else ())


def _encoding_attribute(o: Attributes, field: Field, dialect: Dialect) -> Ranges:
    """Read `encoding`: its names exist (I-13) and are not wider than the type (I-15)."""
    node = o.members["encoding"]
    if isinstance(node.value, str):
        ranges = [(field.versions, node.value)]
    elif isinstance(node.value, dict):
        ranges = read_ranges(o, "encoding")
    else:
        o.problem("I-14", "encoding must be a name or an object of names", node.line)
        return []
    if dialect == "kip":
        ranges = [(versions, KIP_NAMES.get(name, name)) for versions, name in ranges]
    wrong = [name for _, name in ranges if name not in ENCODINGS]
    for name in dict.fromkeys(wrong):
        hint = f"; did you mean {KIP_NAMES[name]!r}?" if name in KIP_NAMES else ""
        o.problem(
            "I-13",
            f"unknown encoding {name[:40]!r}; expected fixed, packed or upacked with 16, 32 or 64{hint}",
            node.line,
        )
    if wrong:
        return []
    if field.type in ENCODABLE:
        for name in dict.fromkeys(name for _, name in ranges):
            if ENCODINGS[name].bits > int(field.type.removeprefix("int")):
                o.problem("I-15", f"encoding {name} is wider than {field.type}", node.line)
                return []
    return ranges


def _covers(o: Attributes, field: Field, notation: str, ranges: Ranges) -> bool:
    """Check I-11: sorted ranges without overlap cover exactly the field's versions as written (I-44)."""
    whole = Versions(ranges[0][0].lowest, ranges[-1][0].highest)
    gaps = [f"{a.highest + 1}" for (a, _), (b, _) in pairwise(ranges) if a.highest + 1 != b.lowest]
    if not field.versions or (whole == field.versions and not gaps):
        return True
    where = f"version {gaps[0]} is missing" if gaps else f"it covers {whole}"
    o.problem(
        "I-11", f"{notation} must cover the versions of the field, {field.versions}: {where}", o.members[notation].line
    )
    return False
