"""from_registry and to_registry in workers, and the types that Spark takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from kwire.schemas import Registry
from kwire.schemas.columns import ColumnDecoder, ColumnEncoder, Mode, Target

__all__ = ["RegistryConfig", "decoder_of", "encoder_of", "read_registry", "spark_type", "write_registry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig:
    """The arguments of from_registry. union: the type of several schemas, None for that of the target's.

    columns: the fields to decode, None for all.
    """

    registry: Registry
    target: Target
    mode: Mode
    union: pa.DataType | None
    has_headers: bool
    columns: tuple[str, ...] | None = None


@lru_cache(maxsize=64)
def decoder_of(config: RegistryConfig) -> ColumnDecoder:
    """Return the decoder of this process, which keeps the schemas of ids between tasks."""
    return ColumnDecoder(config.registry, config.target, mode=config.mode, type=config.union, columns=config.columns)


def read_registry(columns: Sequence[pa.Array], config: RegistryConfig) -> pa.Array:
    """Decode a batch: values, perhaps headers, perhaps topic, partition and offset."""
    values, *rest = columns
    headers = rest.pop(0) if config.has_headers else None
    decoded = decoder_of(config).decode(values, headers, rest)
    kind = spark_type(decoded.type)
    return decoded if decoded.type == kind else decoded.cast(kind, safe=False)


@lru_cache(maxsize=64)
def encoder_of(registry: Registry, target: Target) -> ColumnEncoder:
    """Return the encoder of this process."""
    return ColumnEncoder(registry, target)


def write_registry(values: pa.Array, registry: Registry, target: Target) -> pa.Array:
    """Encode a batch. Raises EncodeError with row and path for the first bad value."""
    return encoder_of(registry, target).encode(values)


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
