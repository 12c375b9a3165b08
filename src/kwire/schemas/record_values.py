"""The column `value` of records, decoded with a schema registry: for tables, jobs and sources of Spark.

mode          value                   value_error, value_bytes
failfast      the decoded value       not in the rows; a bad value is an error
permissive    null for a bad value    not in the rows
deadletter    null for a bad value    what is wrong with a bad value, and its bytes; null for others
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.schemas.choice import ChosenSchema, SchemaChoice

__all__ = ["ValueDecoding"]

VALUE, ERROR, BYTES = "value", "value_error", "value_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDecoding:
    """Decodes the column `value`. type: of decoded values, as the registry had it when this was resolved. Picklable."""

    chosen: ChosenSchema
    type: pa.DataType

    @classmethod
    def resolve(cls, choice: SchemaChoice, topics: Iterable[str]) -> ValueDecoding:
        """Ask the registry for the type of the values of topics: one topic, unless the choice has a subject.

        Raises OptionError, RegistryError, InvalidSchema, LogError.
        """
        from kwire.schemas.decoding import ValueDecoder

        chosen = choice.of_topics(topics).resolve()
        kind = ValueDecoder(chosen).type
        assert kind is not None  # a union has a subject
        return cls(chosen=chosen, type=kind)

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of decoded rows."""
        import pyarrow as pa

        decoded = schema.set(schema.get_field_index(VALUE), pa.field(VALUE, self.type))
        if self.chosen.mode == "deadletter":
            decoded = decoded.append(pa.field(ERROR, pa.string())).append(pa.field(BYTES, pa.binary()))
        return decoded

    def decode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode rows. Raises DecodeError with topic, partition, offset and schema id; RegistryError."""
        import pyarrow as pa

        from kwire.schemas.decoding import ValueDecoder

        decoder = ValueDecoder(self.chosen)
        for batch in batches:
            values = batch.column(VALUE)
            headers = batch.column("headers") if "headers" in batch.schema.names else None
            source = [batch.column(name) for name in ("topic", "partition", "offset")]
            decoded = decoder.decode(values, headers, source)
            columns = batch.columns
            index = batch.schema.get_field_index(VALUE)
            if self.chosen.mode == "deadletter":
                columns[index], errors = decoded.flatten()
                columns += [errors, _only(values, errors)]
            else:
                columns[index] = decoded
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema_of(batch.schema))


def _only(values: pa.Array, errors: pa.Array) -> pa.Array:
    """Return the values that have an error, and null for the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(errors.is_valid(), values.cast(pa.binary()), pa.scalar(None, pa.binary()))
