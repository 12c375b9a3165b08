"""The former place of `KafkaLiveSource`; use `from kwire.spark import KafkaLiveSource`."""

import warnings

from kwire.spark.live.source import KafkaLiveSource

__all__ = ["KafkaLiveSource"]

warnings.warn(
    "kwire.spark.live_source is deprecated; use 'from kwire.spark import KafkaLiveSource'",
    DeprecationWarning,
    stacklevel=2,
)
