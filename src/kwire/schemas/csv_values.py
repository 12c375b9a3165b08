"""CSV values, one record each, as Arrow arrays of a given type.

    CsvDecoder(CsvColumn(type=parse_ddl("id BIGINT, at TIMESTAMP"))).decode(values)

Fields are separated by commas; one in double quotes may have commas, line ends, and double quotes that are doubled
(RFC 4180). Arrow splits values without quotes; a regular expression splits the others, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import OptionError, did_you_mean
from kwire.schemas.choice import Mode, check_mode
from kwire.schemas.ddl import parse_ddl
from kwire.schemas.schema_codec import Decoded, RowError
from kwire.schemas.text_values import shown, typed_texts
from kwire.schemas.value_decoder import finished, finished_type

__all__ = ["CsvColumn", "CsvDecoder", "decode_csv", "infer_csv"]

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
TIMES = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
INTEGER = r"^[+-]?\d{1,19}$"
FLOAT = r"^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?|NaN|[+-]?Inf(?:inity)?)$"
FIELD = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"|(?!")([^,\r\n]*))(,|\Z)')


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvColumn:
    """How CSV values are decoded. Picklable; equal ones have equal hashes.

    type: of the values, a struct with a field for each one of a value. columns: the fields to decode, in this order;
    all by default.
    """

    type: pa.DataType
    mode: Mode = "failfast"
    columns: tuple[str, ...] | None = None


class CsvDecoder:
    """Decodes CSV values to one type. type: of decoded values."""

    def __init__(self, column: CsvColumn) -> None:
        """Check the type. Raises OptionError for a type that is not supported, and for unknown columns."""
        check_mode(column.mode)
        kind, self._mode = column.type, column.mode
        for field in kind:
            if field.type not in (pa.bool_(), pa.string(), *INTEGERS, *FLOATS, *TIMES) and not pa.types.is_decimal128(
                field.type
            ):
                raise OptionError(
                    f"'{field.name}': {field.type} cannot be decoded from CSV; supported: boolean, tinyint, smallint, "
                    "int, bigint, float, double, decimal, string, date, timestamp, timestamp_ntz"
                )
        names = [field.name for field in kind]
        for name in column.columns or ():
            if name not in names:
                raise OptionError(f"columns: no field '{name}'{did_you_mean(name, names)}")
        self._count = len(names)
        self._places = [names.index(name) for name in column.columns or names]
        self.type = pa.struct([kind[place] for place in self._places])

    @property
    def result_type(self) -> pa.DataType:
        """The type of decode's result: with mode deadletter, that of values and their errors."""
        return finished_type(self.type, self._mode)

    def decode(self, values: pa.Array, headers: pa.Array | None = None, source: Sequence[pa.Array] = ()) -> pa.Array:
        """Decode an array of binary; null to null. headers: ignored. source: arrays that say where each record is.

        A value is bad if it is not one record of CSV in UTF-8, has more or fewer fields than the type, or one of
        another type. An empty field is null. Raises DecodeError for the first bad value with mode failfast.
        """
        texts, faults = _as_texts(values)
        fields, more = self._split(texts)
        faults |= more
        children = []
        for place, field in zip(self._places, self.type, strict=True):
            child, found = _converted(fields[place], field)
            children.append(child)
            for row, what in found.items():
                faults.setdefault(row, what)
        is_null = pc.is_null(values)
        if faults:
            is_null = pc.or_(is_null, pa.array(np.isin(np.arange(len(values)), list(faults))))
        array = pa.StructArray.from_arrays(children, fields=list(self.type), mask=is_null)
        errors = [RowError(row, 0, what) for row, what in sorted(faults.items())]
        return finished(Decoded(array, errors), self._mode, source)

    def _split(self, texts: pa.Array) -> tuple[list[pa.Array], dict[int, str]]:
        """Return an array for each field, and the rows that do not have them."""
        has_specials = pc.fill_null(pc.match_substring_regex(texts, '["\r\n]'), False)
        pieces = pc.split_pattern(pc.if_else(has_specials, None, texts), ",")
        counts = pc.fill_null(pc.list_value_length(pieces), self._count).to_numpy(zero_copy_only=False)
        faults = {int(row): self._count_fault(int(counts[row])) for row in np.flatnonzero(counts != self._count)}
        if faults:
            pieces = pc.if_else(pa.array(counts == self._count), pieces, None)
        arrays = [pc.list_element(pieces, place) if len(pieces) else texts for place in range(self._count)]
        special = np.flatnonzero(has_specials.to_numpy(zero_copy_only=False))
        if len(special):
            rows = [self._fields(text) for text in texts.take(pa.array(special)).to_pylist()]
            faults |= {int(row): found for row, found in zip(special, rows, strict=True) if isinstance(found, str)}
            empty = [None] * self._count
            for place in range(self._count):
                found = [(empty if isinstance(row, str) else row)[place] for row in rows]
                arrays[place] = pc.replace_with_mask(arrays[place], has_specials, pa.array(found, pa.string()))
        return [pc.if_else(pc.equal(each, ""), None, each) for each in arrays], faults

    def _fields(self, text: str) -> list[str] | str:
        """Return the fields of a value, or what is wrong with it."""
        text = text.removesuffix("\n").removesuffix("\r")
        fields, at = list[str](), 0
        while True:
            found = FIELD.match(text, at)
            if found is None:
                what = "a quoted field that does not end with a quote and a comma" if text[at] == '"' else "two lines"
                return f"not a record of CSV: {what}: {shown(text[at:])}"
            quoted, plain, end = found.groups()
            fields.append(plain if quoted is None else quoted.replace('""', '"'))
            at = found.end()
            if not end:
                return fields if len(fields) == self._count else self._count_fault(len(fields))

    def _count_fault(self, count: int) -> str:
        return f"expected {self._count} fields, got {count}"


def decode_csv(
    values: pa.Array | pa.ChunkedArray,
    schema: pa.DataType | str,
    *,
    mode: Mode = "failfast",
    columns: Sequence[str] | None = None,
) -> pa.Array:
    """Decode CSV values, one record each; null to null.

    values: binary. schema: a struct, or Spark's DDL, with a field for each one of a value: "id BIGINT, name STRING".
    mode: failfast raises DecodeError for the first bad value, permissive makes it null, deadletter returns
    struct<value, error>. columns: the fields to decode.
    Raises OptionError for types that are not supported, such as arrays.
    """
    kind = parse_ddl(schema) if isinstance(schema, str) else schema
    decoder = CsvDecoder(CsvColumn(type=kind, mode=mode, columns=None if columns is None else tuple(columns)))
    return decoder.decode(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)


def infer_csv(sample: pa.Array | pa.ChunkedArray) -> pa.StructType:
    """Return the struct of a sample of CSV values, with the fields _c0, _c1 ... of the first one.

    sample: binary; values with another number of fields are ignored. Fields are int64, float64 or bool if all values
    fit, otherwise strings. Raises OptionError if the sample has no value.
    """
    values = (sample.combine_chunks() if isinstance(sample, pa.ChunkedArray) else sample).drop_null()
    if not len(values):
        raise OptionError("no CSV values to infer a schema from")
    first = _as_texts(values[:1])[0][0].as_py() or ""
    count, at = 0, 0
    while (found := FIELD.match(first, at)) is not None:
        count, at = count + 1, found.end()
        if not found[3]:
            break
    kind = pa.struct([pa.field(f"_c{place}", pa.string()) for place in range(max(count, 1))])
    texts = CsvDecoder(CsvColumn(type=kind, mode="permissive")).decode(values).drop_null()
    return pa.struct([pa.field(field.name, _inferred(texts.field(place))) for place, field in enumerate(kind)])


def _inferred(texts: pa.Array) -> pa.DataType:
    if texts.null_count < len(texts):
        for kind in (pa.int64(), pa.float64(), pa.bool_()):
            if not _converted(texts, pa.field("", kind))[1]:
                return kind
    return pa.string()


def _as_texts(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Return values as strings, and the rows that are not UTF-8, which are null."""
    if not pa.types.is_binary(values.type):
        raise OptionError(f"values: expected binary, got {values.type}")
    try:
        return values.cast(pa.string()), {}
    except pa.ArrowInvalid:
        faults, texts = dict[int, str](), list[str | None]()
        for row, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                texts.append(None)
                faults[row] = f"not UTF-8: {shown(value)}"
        return pa.array(texts, pa.string()), faults


def _converted(texts: pa.Array, field: pa.Field) -> tuple[pa.Array, dict[int, str]]:
    """Return texts as the type of a field, null for bad ones, and the rows of these."""
    kind = field.type
    if pa.types.is_string(kind):
        return texts, {}
    if pa.types.is_boolean(kind):
        lower, what = pc.utf8_lower(texts), "not a boolean (true or false)"
        made = pc.if_else(pc.is_in(lower, pa.array(["true", "false"])), pc.equal(lower, "true"), None)
    elif pa.types.is_integer(kind):
        made, what = _integers(texts, kind)
    elif pa.types.is_floating(kind):
        made, what = _floats(texts, kind), f"not a number in the range of {kind}"
    else:
        made, what = typed_texts(texts, kind)
    bad = np.flatnonzero(pc.and_(pc.is_null(made), pc.is_valid(texts)).to_numpy(zero_copy_only=False))
    return made, {int(row): f"{field.name}: {what}: {shown(texts[int(row)].as_py())}" for row in bad}


def _integers(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, str]:
    info = np.iinfo(kind.to_pandas_dtype())
    digits = pc.if_else(pc.match_substring_regex(texts, INTEGER), texts, None)
    made = pc.utf8_ltrim(digits, "+").cast(pa.decimal128(38, 0))
    fits = pc.and_(
        pc.greater_equal(made, pa.scalar(int(info.min), pa.decimal128(38, 0))),
        pc.less_equal(made, pa.scalar(int(info.max), pa.decimal128(38, 0))),
    )
    return pc.if_else(fits, made, None).cast(kind), f"not an integer of {info.bits} bits"


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    matched = pc.if_else(pc.match_substring_regex(texts, FLOAT), texts, None)
    made = pc.if_else(pc.equal(matched, "NaN"), "nan", matched).cast(pa.float64()).cast(kind, safe=False)
    is_too_large = pc.and_(pc.is_inf(made), pc.invert(pc.match_substring(matched, "Inf")))
    return pc.if_else(is_too_large, None, made)
