"""Values described by JSON Schema as Arrow columns, and back."""

from kwire.schemas.json_schema.columns import Decoder, Encoder
from kwire.schemas.json_schema.parsing import JsonSchema, parse

__all__ = ["Decoder", "Encoder", "JsonSchema", "parse"]
