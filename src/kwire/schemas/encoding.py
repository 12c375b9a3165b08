"""Arrow arrays as values with schema ids."""

from __future__ import annotations

import pyarrow as pa

from kwire.errors import EncodeError
from kwire.schemas.choice import ChosenSchema
from kwire.schemas.formats import make_encoder
from kwire.schemas.parsed_schemas import ParsedSchemas
from kwire.schemas.wire_format import encode_path

__all__ = ["ValueEncoder"]


class ValueEncoder:
    """Encodes values with a chosen schema, which is registered."""

    def __init__(self, chosen: ChosenSchema) -> None:
        """Parse the schema. chosen: of SchemaChoice.resolve_for_encoding. Raises InvalidSchema, RegistryError."""
        assert chosen.reader is not None
        assert chosen.reader.id is not None
        self._schema = ParsedSchemas(chosen.registry).parse(chosen.reader).named(chosen.message)
        self._prefix = b"\0" + chosen.reader.id.to_bytes(4, "big", signed=True)
        if self._schema.type == "PROTOBUF":
            self._prefix += encode_path(self._schema.path)

    @property
    def type(self) -> pa.DataType:
        """The type that values are decoded to, as which Python objects are encoded."""
        return self._schema.arrow_type()

    def encode(self, values: pa.Array) -> pa.Array:
        """Encode values, each after its prefix. Raises EncodeError with row and path for the first bad one."""
        encoded = make_encoder(self._schema, values.type).encode(values, self._prefix)
        if encoded.errors:
            row, _, what = encoded.errors[0]
            raise EncodeError(f"row {row}: {what}")
        return encoded.array
