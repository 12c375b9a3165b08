"""One type for values of several schemas: the fields of all, the wider of two numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import InvalidSchema

__all__ = ["conform", "merge_types", "missing_field", "with_unique_keys", "without_wide_decimals"]

Path = tuple[str, ...]
NUMBERS = (pa.int32(), pa.int64(), pa.float64())


def merge_types(types: Iterable[pa.DataType]) -> pa.DataType:
    """Return the type that has the fields of all types, in the order of their first occurrence.

    Raises InvalidSchema with the path of a field that has types without a common one.
    """
    merged: pa.DataType | None = None
    for each in types:
        merged = each if merged is None else _merged(merged, each, ())
    if merged is None:
        raise InvalidSchema("no schemas")
    return merged


def _merged(one: pa.DataType, other: pa.DataType, path: Path) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            known = fields.get(field.name)
            fields[field.name] = field.type if known is None else _merged(known, field.type, (*path, field.name))
        return pa.struct([pa.field(name, kind) for name, kind in fields.items()])
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(pa.field("element", _merged(one.value_type, other.value_type, (*path, "element"))))
    if pa.types.is_map(one) and pa.types.is_map(other) and one.key_type == other.key_type:
        return pa.map_(one.key_type, _merged(one.item_type, other.item_type, (*path, "value")))
    number = _wider(one, other)
    if number is None:
        raise InvalidSchema(f"{one} in one schema and {other} in another have no common type", path=path)
    return number


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if {one, other} == {pa.float32(), pa.float64()}:
        return pa.float64()
    if one in NUMBERS and other in NUMBERS:
        return NUMBERS[max(NUMBERS.index(one), NUMBERS.index(other))]
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        return pa.decimal128(digits, scale) if digits <= 38 else None
    return None


def missing_field(given: pa.DataType, wanted: pa.DataType, path: Path = ()) -> Path | None:
    """Return the path of the first field that a type lacks, None if it has all of them."""
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        types = {field.name: field.type for field in wanted}
        for field in given:
            here = (*path, field.name)
            if field.name not in types:
                return here
            missing = missing_field(field.type, types[field.name], here)
            if missing is not None:
                return missing
    elif pa.types.is_list(given) and pa.types.is_list(wanted):
        return missing_field(given.value_type, wanted.value_type, (*path, "element"))
    elif pa.types.is_map(given) and pa.types.is_map(wanted):
        return missing_field(given.item_type, wanted.item_type, (*path, "value"))
    return None


def conform(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the array as another type: fields by name, missing ones null, numbers widened, wide decimals as text.

    Raises InvalidSchema if the types have no common one.
    """
    if array.type == wanted:
        return array
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        children = [
            conform(array.field(index), field.type) if index >= 0 else pa.nulls(len(array), field.type)
            for field in wanted
            for index in [array.type.get_field_index(field.name)]
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    if pa.types.is_list(array.type) and pa.types.is_list(wanted):
        values = conform(array.flatten(), wanted.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=wanted, mask=array.is_null())
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        lists = _as_lists(array)
        entries = lists.flatten()
        items = conform(entries.field(1), wanted.item_type)
        return pa.MapArray.from_arrays(_with_nulls(_offsets(lists), array), entries.field(0), items, type=wanted)
    is_text = pa.types.is_decimal256(array.type) and pa.types.is_string(wanted)
    if not is_text and _merged(array.type, wanted, ()) != wanted:
        raise InvalidSchema(f"{array.type} cannot be converted to {wanted}")
    return array.cast(wanted)


def without_wide_decimals(kind: pa.DataType) -> pa.DataType:
    """Return the type with text in place of decimals above 38 digits, which few engines have."""
    if pa.types.is_decimal256(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(without_wide_decimals(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_wide_decimals(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(without_wide_decimals(kind.item_type)))
    return kind


def with_unique_keys(array: pa.Array) -> pa.Array:
    """Return the array whose maps have the last entry of each key, as JSON's objects do: engines refuse others."""
    kind = array.type
    if not _has_map(kind):
        return array
    if pa.types.is_struct(kind):
        children = [with_unique_keys(array.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        values = with_unique_keys(array.flatten())
        return pa.ListArray.from_arrays(_offsets(array), values, type=kind, mask=array.is_null())
    lists = _as_lists(array)
    entries, offsets = lists.flatten(), _offsets(lists)
    keys = entries.field(0).dictionary_encode()
    of_maps = pc.list_parent_indices(lists).to_numpy() * len(keys.dictionary) + keys.indices.to_numpy()
    if pc.count_distinct(pa.array(of_maps)).as_py() < len(entries):
        _, last = np.unique(of_maps[::-1], return_index=True)
        kept = np.sort(len(entries) - 1 - last)
        offsets = pa.array(np.searchsorted(kept, offsets.to_numpy()), pa.int32())
        entries = entries.take(pa.array(kept))
    items = with_unique_keys(entries.field(1))
    return pa.MapArray.from_arrays(_with_nulls(offsets, array), entries.field(0), items, type=kind)


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(each.type) for each in kind)
    return pa.types.is_map(kind) or (pa.types.is_list(kind) and _has_map(kind.value_type))


def _as_lists(array: pa.MapArray) -> pa.ListArray:
    """Return a map as lists of struct<key, value>."""
    entry = pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
    child = pa.StructArray.from_arrays([array.keys, array.items], fields=list(entry))
    return pa.ListArray.from_buffers(
        pa.list_(entry), len(array), array.buffers()[:2], offset=array.offset, children=[child]
    )


def _offsets(array: pa.Array) -> pa.Array:
    """Return where each list begins among the values that are not below a null."""
    lengths = pc.fill_null(pc.list_value_length(array), 0) if len(array) else pa.array([], pa.int32())
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])


def _with_nulls(offsets: pa.Array, array: pa.Array) -> pa.Array:
    """Return offsets that are null where the array is."""
    if not array.null_count:
        return offsets
    is_null = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(is_null, pa.scalar(None, pa.int32()), offsets)
