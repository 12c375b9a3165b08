"""Deprecated: import `open_tiered` from `kwire.log` and `TieredStore` from `kwire.storage.tiered`."""

import warnings

from kwire.log.log_directory import open_tiered
from kwire.storage.tiered import TieredStore

__all__ = ["TieredStore", "open_tiered"]

warnings.warn("kwire.log.tiered has moved to kwire.log and kwire.storage.tiered", DeprecationWarning, stacklevel=2)
