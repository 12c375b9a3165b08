"""Avro values as Arrow columns, and back."""

from kwire.extras import needing

with needing("Avro values", "registry"):
    from kwire.schemas.avro.columns import arrow_type
    from kwire.schemas.avro.decoder import Decoded, Decoder, Errors
    from kwire.schemas.avro.encoder import Encoded, EncodeErrors, Encoder
    from kwire.schemas.avro.model import Field, Logical, Schema
    from kwire.schemas.avro.parsing import parse
    from kwire.schemas.avro.schema_of import schema_of, schema_text

__all__ = [
    "Decoded",
    "Decoder",
    "EncodeErrors",
    "Encoded",
    "Encoder",
    "Errors",
    "Field",
    "Logical",
    "Schema",
    "arrow_type",
    "parse",
    "schema_of",
    "schema_text",
]
