"""The former place of `KafkaInternalSource`; use `from kwire.spark import KafkaInternalSource`."""

import warnings

from kwire.spark.internal.source import KafkaInternalSource

__all__ = ["KafkaInternalSource"]

warnings.warn(
    "kwire.spark.internal_source is deprecated; use 'from kwire.spark import KafkaInternalSource'",
    DeprecationWarning,
    stacklevel=2,
)
