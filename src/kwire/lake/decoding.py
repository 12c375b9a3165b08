"""Values of a schema registry as columns of a table: the choice of `kwire lake append --registry` and jobs.table.

mode          value                   value_error, value_bytes
failfast      the decoded value       not in the rows; a bad value is an error
permissive    null for a bad value    not in the rows
deadletter    null for a bad value    what is wrong with a bad value, and its bytes; null for others
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.errors import OptionError

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from kwire.schemas import RegisteredSchema, Registry
    from kwire.schemas.avro.resolution import Names
    from kwire.schemas.columns import Mode, Target

__all__ = ["ValueDecoding"]

VALUE, ERROR, BYTES = "value", "value_error", "value_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDecoding:
    """Decodes the column `value`. type: of decoded values, as the registry had it when this was resolved. Picklable."""

    registry: Registry
    target: Target
    mode: Mode
    type: pa.DataType

    @classmethod
    def choose(
        cls,
        registry: str | os.PathLike[str] | Registry | None,
        topics: Iterable[str],
        options: Mapping[str, Any],
        *,
        is_merged: bool = False,
    ) -> ValueDecoding | None:
        """Return resolve() with the options that are not None, or None without a registry. Raises as resolve()."""
        given = {name: value for name, value in options.items() if value is not None}
        if registry is None:
            if given:
                raise OptionError(f"{next(iter(given))}: requires registry, whose schemas values are decoded with")
            return None
        return cls.resolve(registry, topics, is_merged=is_merged, **given)

    @classmethod
    def resolve(
        cls,
        registry: str | os.PathLike[str] | Registry,
        topics: Iterable[str],
        *,
        subject: str | None = None,
        schema: str | int | RegisteredSchema | None = None,
        mode: Mode = "failfast",
        message: str | None = None,
        names: Names = "any",
        is_merged: bool = False,
    ) -> ValueDecoding:
        """Ask a registry for the type of the values of topics.

        The arguments are those of kwire.schemas.decode_arrow. Without subject there must be one topic, whose subject is
        used. is_merged: whether rows replace others by key.
        Raises OptionError, RegistryError, InvalidSchema.
        """
        from kwire.schemas import subject_name
        from kwire.schemas.columns import ColumnDecoder, Target, open_registry

        if is_merged and mode == "permissive":
            raise OptionError(
                "mode: with permissive, values that cannot be decoded are null, which deletes their keys from a table "
                "with a merge key; use deadletter or failfast"
            )
        if subject is None:
            found_topics = sorted(set(topics))
            if len(found_topics) != 1:
                found = ", ".join(found_topics)[:500] or "none"
                raise OptionError(
                    "registry: requires one topic or a subject, since all values are one column; select one of the "
                    f"topics: {found}"
                )
            subject = subject_name(found_topics[0])
        opened = open_registry(registry)
        target = Target.resolve(
            opened, subject=subject, schema=schema, topic=None, key=False, message=message, names=names
        )
        kind = ColumnDecoder(opened, target, mode=mode).type
        assert kind is not None  # a union has a subject
        return cls(registry=opened, target=target, mode=mode, type=kind)

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of decoded rows."""
        import pyarrow as pa

        decoded = schema.set(schema.get_field_index(VALUE), pa.field(VALUE, self.type))
        if self.mode == "deadletter":
            decoded = decoded.append(pa.field(ERROR, pa.string())).append(pa.field(BYTES, pa.binary()))
        return decoded

    def decode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode rows. Raises DecodeError with topic, partition, offset and schema id; RegistryError."""
        import pyarrow as pa

        from kwire.schemas.columns import ColumnDecoder

        decoder = ColumnDecoder(self.registry, self.target, mode=self.mode, type=self.type)
        for batch in batches:
            values = batch.column(VALUE)
            headers = batch.column("headers") if "headers" in batch.schema.names else None
            source = [batch.column(name) for name in ("topic", "partition", "offset")]
            decoded = decoder.decode(values, headers, source)
            columns = batch.columns
            index = batch.schema.get_field_index(VALUE)
            if self.mode == "deadletter":
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
