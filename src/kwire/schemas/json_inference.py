"""The type of JSON values from a sample of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa

from kwire.errors import OptionError

__all__ = ["infer_json"]

MAX_DEPTH = 20
MAX_NAMES = 1000
INT64 = range(-(2**63), 2**63)
LEAF = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def infer_json(sample: pa.Array | pa.ChunkedArray) -> pa.StructType:
    """Return the struct that has the properties of all objects in a sample of values, in order of first occurrence.

    sample: binary or text; values that are not JSON objects are ignored. Integers become int64, integers beside
    fractions, or outside of 64 bits, float64. Values of several kinds, null alone, objects without properties, with
    more than 1,000 names in all or nested more than 20 deep become strings, which have the JSON text of what is not a
    string. Of names that differ in case only, the first is taken, since SQL does not distinguish them.
    Raises OptionError if the sample has no object with properties.
    """
    seen = _Seen()
    for value in sample.to_pylist():
        if value is None:
            continue
        try:
            decoded = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if type(decoded) is dict and decoded:
            seen.add(decoded, 0)
    if not seen.members:
        raise OptionError(f"no JSON object with properties among {len(sample)} values")
    if seen.is_too_large:
        raise OptionError(f"the JSON objects have more than {MAX_NAMES} names: give a schema of those that you need")
    kind: pa.StructType = seen.type()
    return kind


class _Seen:
    """What values of one place were. kinds: of LEAF, dict, list. members: of objects. element: of arrays."""

    __slots__ = ("element", "is_too_large", "kinds", "members")

    def __init__(self) -> None:
        self.kinds = set[type]()
        self.members = dict[str, tuple[str, _Seen]]()  # by the name in lower case
        self.element: _Seen | None = None
        self.is_too_large = False

    def add(self, value: Any, depth: int) -> None:
        """Add a value."""
        kind = type(value)
        if value is None:
            return
        self.kinds.add(float if kind is int and value not in INT64 else kind)
        if kind not in (dict, list):
            return
        self.is_too_large |= depth == MAX_DEPTH
        if self.is_too_large:
            return
        if kind is list:
            self.element = self.element or _Seen()
            self._add_items(value, depth)
            return
        for name, each in value.items():
            _, member = self.members.setdefault(name.lower(), (name, _Seen()))
            if self.members[name.lower()][0] == name:
                member.add(each, depth + 1)
        if len(self.members) > MAX_NAMES:
            self.is_too_large = True

    def _add_items(self, items: Iterable[Any], depth: int) -> None:
        assert self.element is not None
        for each in items:
            self.element.add(each, depth + 1)

    def type(self) -> pa.DataType:
        """Return the type that all values have."""
        if self.kinds == {int, float}:
            return pa.float64()
        if len(self.kinds) != 1 or self.is_too_large:
            return pa.string()
        (kind,) = self.kinds
        if kind is list:
            assert self.element is not None
            return pa.list_(pa.field("element", self.element.type()))
        if kind is dict:
            members = [pa.field(name, member.type()) for name, member in self.members.values()]
            return pa.struct(members) if members else pa.string()
        return LEAF[kind]
