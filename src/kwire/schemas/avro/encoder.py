"""Encoding of Arrow arrays as Avro values, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kwire.errors import EncodeError, OptionError
from kwire.schemas.avro.columns import arrow_type
from kwire.schemas.avro.encode_plan import bind, compile_encode_plan
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.writing import ValueWriter
from kwire.schemas.plan_encoder import PlanEncoder
from kwire.schemas.schema_codec import Int64Array

__all__ = ["EncodeErrors", "Encoded", "Encoder"]


class EncodeErrors:
    """The values that cannot be encoded. rows: their indexes."""

    def __init__(self, by_row: list[tuple[int, EncodeError]]) -> None:
        self.by_row = by_row
        self.rows: Int64Array = np.array([row for row, _ in by_row], np.int64)

    def __len__(self) -> int:
        return len(self.by_row)

    def __iter__(self) -> Iterator[EncodeError]:
        return (error for _, error in self.by_row)

    def error(self, index: int) -> EncodeError:
        """Return the error of rows[index], with the path of the field."""
        return self.by_row[index][1]

    def message(self, index: int) -> str:
        """Return the error of rows[index] as text."""
        return str(self.error(index))


@dataclass(frozen=True, slots=True)
class Encoded:
    """The values as binary, null where the value is null or has an error, and the errors."""

    array: pa.Array
    errors: EncodeErrors


class Encoder:
    """Encodes Arrow values with a schema.

    type: of the values; by default what a Decoder of the schema makes. Columns are matched to fields by name; fields
    without a column have their default. Raises InvalidSchema for columns that do not fit.
    """

    def __init__(self, schema: Schema, type: pa.DataType | None = None) -> None:
        self.type = arrow_type(schema) if type is None else type
        self._plan = compile_encode_plan(schema, self.type)
        self._encoder = PlanEncoder(self._plan, self._plan.root, "encode_avro", self._write)

    def encode(self, values: pa.Array, *, prefix: bytes = b"") -> Encoded:
        """Encode an array; prefix: bytes before each value.

        Raises OptionError for an array of another type or above 2 GiB of output, EncodeError if a column cannot be
        converted to the schema's type, such as a number above 32 bits for an int.
        """
        if values.type != self.type:
            raise OptionError(f"values are {values.type}, expected {self.type}")
        array, errors = self._encoder.encode(values, self._bound(values), prefix)
        return Encoded(array, EncodeErrors(errors))

    def _bound(self, values: pa.Array) -> dict[int, pa.Array]:
        bound: dict[int, pa.Array] = {}
        bind(values, self._plan.columns[0], bound)
        return bound

    def _write(self, values: pa.Array) -> Iterator[bytes | EncodeError]:
        writer = ValueWriter(self._plan, self._bound(values))
        for at in range(len(values)):
            try:
                yield writer.write(at)
            except EncodeError as error:
                error.__traceback__ = error.__context__ = None  # and all that their frames refer to
                yield error
