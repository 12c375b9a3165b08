"""Deprecated: use `kwire.pages.encoding_report`."""

from __future__ import annotations

import warnings
from collections.abc import Callable


def __getattr__(name: str) -> Callable[..., str]:
    if name != "render_encodings":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kwire.pages.encoding_report import render_encodings

    warnings.warn(f"{__name__} has moved to kwire.pages.encoding_report", DeprecationWarning, stacklevel=2)
    return render_encodings
