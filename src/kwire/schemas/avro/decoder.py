"""Decoding of Avro values, many at a time, into Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import DecodeError, OptionError
from kwire.schemas.avro.columns import check_depth
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.plan import compile_plan
from kwire.schemas.avro.reading import ValueReader
from kwire.schemas.avro.resolution import Names, check_names
from kwire.schemas.plan_decoder import PlanDecoder
from kwire.schemas.schema_codec import Int64Array

__all__ = ["Decoded", "Decoder", "Errors"]


class Errors:
    """The values that cannot be decoded. rows: their indexes. positions: of the fault, from the start of the value."""

    def __init__(self, by_row: list[tuple[int, DecodeError]]) -> None:
        self.by_row = by_row
        self.rows: Int64Array = np.array([row for row, _ in by_row], np.int64)
        self.positions: Int64Array = np.array([error.position for _, error in by_row], np.int64)

    def __len__(self) -> int:
        return len(self.by_row)

    def __iter__(self) -> Iterator[DecodeError]:
        return (error for _, error in self.by_row)

    def error(self, index: int) -> DecodeError:
        """Return the error of rows[index], with the path of the field."""
        return self.by_row[index][1]

    def message(self, index: int) -> str:
        """Return the error of rows[index] as text."""
        return str(self.error(index))


@dataclass(frozen=True, slots=True)
class Decoded:
    """The array, null where the value is null or has an error, and the errors."""

    array: pa.Array
    errors: Errors


class Decoder:
    """Decodes values of one or more writers' schemas into the Arrow type of the reader's schema.

    columns: dotted paths of the fields to decode, such as "id" and "items.price"; None for all. Values of others are
    skipped: their lengths are checked, their contents are not. allow_trailing: ignore bytes after a value. names:
    strict compares the full names of records, enums and fixed types. depth: how many times a record that contains
    itself is decoded, up to 15; fields that are deeper are skipped. 0: such a record is an error.
    Raises InvalidSchema if a writer's values cannot be read as the reader's, OptionError for an unknown column.
    """

    def __init__(
        self,
        writers: Sequence[Schema],
        reader: Schema,
        *,
        columns: Sequence[str] | None = None,
        allow_trailing: bool = False,
        names: Names = "any",
        depth: int | None = 0,
    ) -> None:
        check_names(names)
        plan = compile_plan(writers, reader, columns, names, check_depth(depth))
        read = ValueReader(plan, allow_trailing=allow_trailing).read
        self._decoder = PlanDecoder(plan, "decode_avro", read, allow_trailing=allow_trailing)
        self._roots = np.array([*plan.roots, -1], np.int64)  # the last one for writer -1

    @property
    def type(self) -> pa.DataType:
        """The type of decoded arrays."""
        return self._decoder.type

    def decode(self, values: pa.Array, *, skip: npt.ArrayLike = 0, writer: npt.ArrayLike | None = None) -> Decoded:
        """Decode an array of binary.

        skip: number of bytes before each value, or one number for all. writer: for each value the index of its writer's
        schema, by default the first one; -1 makes it null.
        """
        before = np.asarray(skip, np.int64)
        if before.shape not in ((), (len(values),)) or (before.size and before.min() < 0):
            raise OptionError("skip: expected a number of bytes, or one for each value")
        array, errors = self._decoder.decode(values, before, self._row_roots(len(values), writer))
        return Decoded(array, Errors(errors))

    def _row_roots(self, count: int, writer: npt.ArrayLike | None) -> Int64Array | int:
        """Return the first row of the plan for each value, -1 for nulls; one number for all."""
        if writer is None:
            return int(self._roots[0])
        index, writers = np.asarray(writer, np.int64), len(self._roots) - 1
        if index.shape != (count,) or ((index < -1) | (index >= writers)).any():
            raise OptionError(f"writer: expected an index below {writers} for each value")
        roots: Int64Array = self._roots[index]
        return roots
