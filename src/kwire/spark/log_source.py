"""The former place of `KafkaLogSource`; use `from kwire.spark import KafkaLogSource`."""

import warnings

from kwire.spark.log.source import KafkaLogSource

__all__ = ["KafkaLogSource"]

warnings.warn(
    "kwire.spark.log_source is deprecated; use 'from kwire.spark import KafkaLogSource'",
    DeprecationWarning,
    stacklevel=2,
)
