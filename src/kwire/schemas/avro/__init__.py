"""Avro values as Arrow columns, and back."""

from kwire.schemas.avro.columns import arrow_type
from kwire.schemas.avro.decoder import Decoded, Decoder, Errors
from kwire.schemas.avro.model import Field, Logical, Schema
from kwire.schemas.avro.parsing import parse

__all__ = ["Decoded", "Decoder", "Errors", "Field", "Logical", "Schema", "arrow_type", "parse"]
