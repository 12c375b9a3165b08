"""from_registry, to_registry and decoding of JSON and CSV in workers, and the types that Spark takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from kwire.schemas.choice import ChosenSchema
from kwire.schemas.csv_values import CsvColumn, CsvDecoder
from kwire.schemas.encoding import ValueEncoder
from kwire.schemas.typed_json import JsonColumn, JsonDecoder
from kwire.schemas.value_decoder import ValueDecoder

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = [
    "Chosen",
    "decoded_type",
    "decoder_of",
    "encoder_of",
    "read_registry",
    "spark_type",
    "to_data_type",
    "write_registry",
]


Chosen = ChosenSchema | JsonColumn | CsvColumn
"""How a column is decoded."""


@lru_cache(maxsize=64)
def decoder_of(chosen: Chosen) -> ValueDecoder | JsonDecoder | CsvDecoder:
    """Return the decoder of this process, which keeps the schemas of ids between tasks."""
    match chosen:
        case JsonColumn():
            return JsonDecoder(chosen)
        case CsvColumn():
            return CsvDecoder(chosen)
    return ValueDecoder(chosen)


def decoded_type(chosen: Chosen) -> pa.DataType:
    """Return the type of what read_registry returns. Raises OptionError, InvalidSchema."""
    return spark_type(decoder_of(chosen).result_type)


def read_registry(columns: Sequence[pa.Array], chosen: Chosen, has_headers: bool) -> pa.Array:
    """Decode a batch: values, perhaps headers, perhaps topic, partition and offset."""
    values, *rest = columns
    headers = rest.pop(0) if has_headers else None
    decoded = decoder_of(chosen).decode(values, headers, rest)
    kind = spark_type(decoded.type)
    return decoded if decoded.type == kind else decoded.cast(kind, safe=False)


@lru_cache(maxsize=64)
def encoder_of(chosen: ChosenSchema) -> ValueEncoder:
    """Return the encoder of this process."""
    return ValueEncoder(chosen)


def write_registry(values: pa.Array, chosen: ChosenSchema) -> pa.Array:
    """Encode a batch. Raises EncodeError with row and path for the first bad value."""
    return encoder_of(chosen).encode(values)


def spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with times as Spark has them: timestamps of microseconds, times of nanoseconds."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, spark_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", spark_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, spark_type(kind.item_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("ns") if pa.types.is_time64(kind) else kind


def to_data_type(kind: pa.DataType) -> DataType:
    """Return Spark's type of an Arrow type."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind, prefer_timestamp_ntz=True)
