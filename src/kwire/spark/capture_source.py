"""The former place of `KafkaCaptureSource`; use `from kwire.spark import KafkaCaptureSource`."""

import warnings

from kwire.spark.capture.source import KafkaCaptureSource as KafkaCaptureSource

warnings.warn(
    f"{__name__} is deprecated; use 'from kwire.spark import KafkaCaptureSource'", DeprecationWarning, stacklevel=2
)
