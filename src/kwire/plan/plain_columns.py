"""Messages as an Arrow array of structs without compiled code: the walker's values as dicts, and `pa.array`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from kwire.errors import OptionError
from kwire.identifiers import render_uuid
from kwire.schema.model import Field, Struct, default_value

__all__ = ["struct_array"]


def struct_array(messages: Sequence[list[Any] | None], struct: Struct, kind: pa.StructType) -> pa.StructArray:
    """Convert messages as `kwire.plan.reading` reads them, in class order and without trailing defaults.

    kind: has the fields to convert. Raises OptionError for more than an Arrow array can hold.
    """
    try:
        return pa.array([_struct(each, struct, kind) for each in messages], kind)
    except pa.ArrowCapacityError as error:
        raise OptionError(f"{error}; read fewer messages per call") from None


def _struct(values: Sequence[Any] | None, struct: Struct, kind: pa.StructType) -> dict[str, Any] | None:
    if values is None:
        return None
    attributes = {}
    for i, f in enumerate(struct.class_fields):
        at = kind.get_field_index(f.attr)
        if at >= 0:
            value = values[i] if i < len(values) else default_value(f)
            attributes[f.attr] = _value(value, f, kind.field(at).type)
    return attributes


def _value(value: Any, f: Field, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if f.is_array:
        return [_element(each, f, kind.value_type) for each in value]
    return _element(value, f, kind)


def _element(value: Any, f: Field, kind: pa.DataType) -> Any:
    if f.struct is not None:
        return _struct(value, f.struct, kind)
    if f.type == "uuid":
        number = value if isinstance(value, UUID) else UUID(bytes=value)
        return render_uuid(number) if pa.types.is_string(kind) else number.bytes
    return value
