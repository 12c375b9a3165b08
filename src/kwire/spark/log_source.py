"""The former place of `KafkaLogSource`; use `from kwire.spark import KafkaLogSource`."""

import warnings

from kwire.spark.log.source import KafkaLogSource as KafkaLogSource

warnings.warn(
    f"{__name__} is deprecated; use 'from kwire.spark import KafkaLogSource'", DeprecationWarning, stacklevel=2
)
