"""Deprecated: import from `kwire.maintenance.convert`."""

import importlib
import warnings


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    warnings.warn("kwire.log.convert has moved to kwire.maintenance.convert", DeprecationWarning, stacklevel=2)
    # by name: the log itself does not know the packages above it
    return getattr(importlib.import_module("kwire.maintenance.convert"), name)
