"""The former place of `KafkaCaptureSource`; use `from kwire.spark import KafkaCaptureSource`."""

import warnings

from kwire.spark.capture.source import KafkaCaptureSource

__all__ = ["KafkaCaptureSource"]

warnings.warn(
    "kwire.spark.capture_source is deprecated; use 'from kwire.spark import KafkaCaptureSource'",
    DeprecationWarning,
    stacklevel=2,
)
