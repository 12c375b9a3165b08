"""Decoding of Avro values, many at a time, into Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, OptionError
from kwire.schemas.avro.faults import fault_error
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.plan import Plan, compile_plan
from kwire.schemas.avro.resolution import Names, check_names
from kwire.schemas.avro.walker import Walker
from kwire.schemas.buffers import assemble, binary_bounds
from kwire.schemas.decoder import Int64Array
from kwire.schemas.kernel import KernelPlan

__all__ = ["Decoded", "Decoder", "Errors"]


class Errors:
    """The values that cannot be decoded. rows: their indexes. positions: of the fault, from the start of the value."""

    def __init__(self, plan: Plan, table: Int64Array) -> None:
        self._plan = plan
        self._table = table
        self.rows: Int64Array = table[:, 0]
        self.positions: Int64Array = table[:, 2]

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[DecodeError]:
        return (self.error(index) for index in range(len(self)))

    def error(self, index: int) -> DecodeError:
        """Return the error of rows[index], with the path of the field."""
        _, fault, position, row = map(int, self._table[index])
        return fault_error(fault, position, self._plan.paths[row], str(self._plan.types[row]))

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
    strict compares the full names of records, enums and fixed types.
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
    ) -> None:
        check_names(names)
        self._plan = compile_plan(writers, reader, columns, names)
        self._kernel_plan = KernelPlan(self._plan)
        self._allow_trailing = allow_trailing
        self._roots = np.array([*self._plan.roots, -1], np.int64)  # the last one for writer -1

    @property
    def type(self) -> pa.DataType:
        """The type of decoded arrays."""
        return self._plan.columns[0].type

    def decode(self, values: pa.Array, *, skip: npt.ArrayLike = 0, writer: npt.ArrayLike | None = None) -> Decoded:
        """Decode an array of binary.

        skip: number of bytes before each value, or one number for all. writer: for each value the index of its writer's
        schema, by default the first one; -1 makes it null.
        """
        data, starts, ends = binary_bounds(values)
        roots = self._row_roots(values, writer)
        before = np.asarray(skip, np.int64)
        if before.shape not in ((), (len(values),)) or (before < 0).any():
            raise OptionError("skip: expected a number of bytes, or one for each value")
        return self.decode_bounds(data, starts + np.minimum(before, ends - starts), ends, roots)

    def _row_roots(self, values: pa.Array, writer: npt.ArrayLike | None) -> Int64Array:
        """Return the first row of the plan for each value, -1 for nulls."""
        if writer is None:
            roots = np.full(len(values), self._roots[0], np.int64)
        else:
            index = np.asarray(writer, np.int64)
            count = len(self._plan.roots)
            if index.shape != (len(values),) or ((index < -1) | (index >= count)).any():
                raise OptionError(f"writer: expected an index below {count} for each value")
            roots = self._roots[index]
        if values.null_count:
            roots[values.is_null().to_numpy(zero_copy_only=False)] = -1
        return roots

    def decode_bounds(self, data: pa.Buffer, starts: Int64Array, ends: Int64Array, roots: Int64Array) -> Decoded:
        """Decode data[starts[i]:ends[i]] for each i with the plan's row roots[i]; -1 is a null."""
        if native.LEVEL is None:
            walker = Walker(self._plan, allow_trailing=self._allow_trailing)
            table = walker.run(data, starts, ends, roots)
            array = assemble(self._plan.columns[0], [walker.finished(each) for each in self._plan.columns])
        else:
            array, table = self._kernel_plan.decode(
                native.decode_avro, data, starts, ends, roots, allow_trailing=self._allow_trailing
            )
        return Decoded(array, Errors(self._plan, table))
