"""Spark data sources on Kafka's formats; found by name through the packages pyspark_kwire_*.

lag, LagListener: how far streaming queries are behind. They need PySpark, which planners and workers of Spark load in
their own order, so they are imported when they are used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.spark.progress import LagListener, lag

__all__ = ["LagListener", "lag"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from kwire.spark import progress

        return getattr(progress, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
