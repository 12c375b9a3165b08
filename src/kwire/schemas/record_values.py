"""The column `value` of records, decoded with a schema registry: for tables, jobs and sources of Spark.

mode          value                   value_error, value_bytes
failfast      the decoded value       not in the rows; a bad value is an error
permissive    null for a bad value    not in the rows
deadletter    null for a bad value    what is wrong with a bad value, and its bytes; null for others

Rows whose dead letters go to another table have one column instead of three, struct<value, error, bytes>.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.schemas.choice import ChosenSchema, SchemaChoice
    from kwire.schemas.value_decoder import ValueDecoder

__all__ = ["ValueDecoding"]

VALUE, ERROR, BYTES = "value", "value_error", "value_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDecoding:
    """Decodes the column `value`. type: of decoded values, as the registry had it when this was resolved. Picklable.

    is_wrapped: whether rows have struct<value, error, bytes>, the bytes of all values.
    """

    chosen: ChosenSchema
    type: pa.DataType
    is_wrapped: bool = False

    @classmethod
    def resolve(cls, choice: SchemaChoice, topics: Iterable[str], *, is_wrapped: bool = False) -> ValueDecoding:
        """Ask the registry for the type of the values of topics: one topic, unless the choice has a subject.

        is_wrapped: for dead letters in another table; requires mode deadletter.
        Raises OptionError, RegistryError, InvalidSchema, LogError.
        """
        from kwire.schemas.value_decoder import ValueDecoder

        chosen = choice.of_topics(topics).resolve()
        kind = ValueDecoder(chosen).type
        assert kind is not None  # a union has a subject
        return cls(chosen=chosen, type=kind, is_wrapped=is_wrapped)

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of decoded rows."""
        import pyarrow as pa

        kind = self.type
        if self.is_wrapped:
            kind = pa.struct([("value", kind), ("error", pa.string()), ("bytes", pa.binary())])
        decoded = schema.set(schema.get_field_index(VALUE), pa.field(VALUE, kind))
        if self.is_wrapped:
            return decoded
        if self.chosen.mode == "deadletter":
            decoded = decoded.append(pa.field(ERROR, pa.string())).append(pa.field(BYTES, pa.binary()))
        return decoded

    def decode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode rows. Raises DecodeError with topic, partition, offset and schema id; RegistryError."""
        return map(self.decoder(), batches)

    def decoder(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return a function that decodes a batch of rows and keeps compiled decoders; raises the errors of decode()."""
        from kwire.schemas.value_decoder import ValueDecoder

        return partial(self._decoded, ValueDecoder(self.chosen))

    def _decoded(self, decoder: ValueDecoder, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        values = batch.column(VALUE)
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        source = [batch.column(name) for name in ("topic", "partition", "offset")]
        decoded = decoder.decode(values, headers, source)
        columns = batch.columns
        index = batch.schema.get_field_index(VALUE)
        schema = self.schema_of(batch.schema)
        if self.is_wrapped:
            parts = [*decoded.flatten(), values.cast(pa.binary())]
            columns[index] = pa.StructArray.from_arrays(parts, fields=list(schema.field(index).type))
        elif self.chosen.mode == "deadletter":
            columns[index], errors = decoded.flatten()
            columns += [errors, _only(values, errors)]
        else:
            columns[index] = decoded
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _only(values: pa.Array, errors: pa.Array) -> pa.Array:
    """Return the values that have an error, and null for the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(errors.is_valid(), values.cast(pa.binary()), pa.scalar(None, pa.binary()))
