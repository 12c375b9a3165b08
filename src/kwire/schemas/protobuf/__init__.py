"""Protobuf values as Arrow columns, and back."""

from kwire.schemas.protobuf.columns import Decoder, Encoder
from kwire.schemas.protobuf.model import Enum, Field, File, Message
from kwire.schemas.protobuf.parsing import parse

__all__ = ["Decoder", "Encoder", "Enum", "Field", "File", "Message", "parse"]
