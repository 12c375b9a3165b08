"""An Arrow array of structs -> the bytes of each message: the reverse of `kwire.plan.nested_columns`.

Columns are converted to Python lists, the lists to rows in class order, and the codec writes the rows. No message
objects are created. Writing costs a few times as much as reading.

Fields that the struct lacks have their default, as have nulls in fields that the version lacks, so structs with the
fields of all versions can be written. Integers of any Arrow type are accepted if the value fits, a uuid as text or as
16 bytes. Imports pyarrow.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa

from kwire.errors import EncodeError, OptionError
from kwire.identifiers import decode_base64url
from kwire.plan.message_codec import codec
from kwire.schema.model import Field, Message, Struct, default_value

__all__ = ["NestedWriter"]


class NestedWriter:
    """Writes one version of one message from columns.

    cls: the message's class. Raises UnsupportedVersion for an unknown version.
    """

    def __init__(self, spec: Message, version: int, cls: type) -> None:
        self.spec, self.version = spec, version
        self._encode = codec(spec, version, cls).encode

    def write(self, structs: pa.StructArray) -> pa.BinaryArray:
        """Encode each struct; null for null.

        Raises OptionError for a column without a field, or of an unsuitable type; EncodeError, with the row and the
        path, for a value that does not fit.
        """
        if not pa.types.is_struct(structs.type):
            raise OptionError(f"{self.spec.name}: a column of {structs.type} is not a struct")
        made: list[bytes | None] = []
        for row, values in enumerate(self._structs(structs, self.spec.struct, self.spec.name)):
            try:
                made.append(None if values is None else self._encode(values))
            except EncodeError as error:
                raise EncodeError(f"{error.what}, in row {row}", error.path) from None
        return pa.array(made, pa.binary())

    def _structs(self, array: pa.StructArray, struct: Struct, where: str) -> list[object]:
        """Convert structs to tuples in class order, the unknown tagged fields last."""
        names = {f.attr for f in struct.fields}
        for given in array.type.names:
            if given not in names:
                raise OptionError(f"{where}: unknown field {given}")
        columns = []
        for f in struct.class_fields:
            if array.type.get_field_index(f.attr) < 0:
                columns.append([default_value(f)] * len(array))
                continue
            values = self._values(array.field(f.attr), f, f"{where}.{f.attr}")
            if self.version not in f.versions:
                values = [default_value(f) if value is None else value for value in values]
            columns.append(values)
        columns.append([()] * len(array))
        rows: list[Any] = list(zip(*columns, strict=True))
        if array.null_count:
            rows = [row if present else None for row, present in zip(rows, array.is_valid().to_pylist(), strict=True)]
        return rows

    def _values(self, array: pa.Array, f: Field, where: str) -> list[object]:
        """Convert a column to a list of Python values."""
        if not f.is_array:
            return self._elements(array, f, where)
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            raise OptionError(f"{where}: {array.type} is not a list")
        edges = array.offsets.to_pylist()
        first, last = edges[0], edges[-1]
        elements = self._elements(array.values.slice(first, last - first), f, where)
        lists: list[Any] = [elements[start - first : end - first] for start, end in pairwise(edges)]
        if array.null_count:
            lists = [
                each if present else None for each, present in zip(lists, array.is_valid().to_pylist(), strict=True)
            ]
        return lists

    def _elements(self, array: pa.Array, f: Field, where: str) -> list[object]:
        if f.struct is not None:
            if not pa.types.is_struct(array.type):
                raise OptionError(f"{where}: {array.type} is not a struct")
            return self._structs(array, f.struct, where)
        if pa.types.is_nested(array.type):
            raise OptionError(f"{where}: {array.type} cannot hold {f.type}")
        values: list[Any]
        if array.null_count and pa.types.is_primitive(array.type):
            values = array.to_pylist()
        else:
            values = array.to_numpy(zero_copy_only=False).tolist()
        return [_uuid(value) for value in values] if f.type == "uuid" else values


def _uuid(value: object) -> object:
    """Decode Kafka's text form of a uuid to its 16 bytes; other values are left to the codec, which reports errors."""
    if isinstance(value, str) and len(value) == 22:
        try:
            return decode_base64url(value)
        except ValueError:
            return value
    return value
