"""Formerly the loading of kernels. Wheels contain compiled code, so nothing is loaded; will be removed in 0.3."""

from __future__ import annotations

import warnings

__all__ = ["load_in_background"]


def load_in_background() -> None:
    """Do nothing but warn."""
    warnings.warn(
        "kwire.plan.engine.load_in_background() does nothing: kernels are compiled in the wheel",
        DeprecationWarning,
        stacklevel=2,
    )
