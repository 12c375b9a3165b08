"""Compile or load the kernels of the plan; see `python -m kwire.warm`."""

from __future__ import annotations

from importlib import import_module


def warm() -> None:
    """Compile the kernels into numba's cache, or load them from it. Raises ImportError when that cannot be done."""
    from kwire.plan import engine

    engine.load()
    import_module("kwire.plan.kernels.columns_entry")
    import_module("kwire.plan.kernels.nested_entry")
