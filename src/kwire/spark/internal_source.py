"""The former place of `KafkaInternalSource`; use `from kwire.spark import KafkaInternalSource`."""

import warnings

from kwire.spark.internal.source import KafkaInternalSource as KafkaInternalSource

warnings.warn(
    f"{__name__} is deprecated; use 'from kwire.spark import KafkaInternalSource'", DeprecationWarning, stacklevel=2
)
