"""The former place of `KafkaLiveSource`; use `from kwire.spark import KafkaLiveSource`."""

import warnings

from kwire.spark.live.source import KafkaLiveSource as KafkaLiveSource

warnings.warn(
    f"{__name__} is deprecated; use 'from kwire.spark import KafkaLiveSource'", DeprecationWarning, stacklevel=2
)
