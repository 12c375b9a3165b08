"""Spark data sources on Kafka's formats; found by name through the packages pyspark_kwire_*.

Importing this, before Spark starts, lets Spark run the Python of this program (kwire.spark.python_choice).

lag, LagListener: how far streaming queries are behind. They need PySpark, which planners and workers of Spark load in
their own order, so they are imported when they are used.
"""

from typing import TYPE_CHECKING

from kwire.spark.python_choice import choose_python

if TYPE_CHECKING:
    from kwire.spark.streaming.lag import LagListener, lag

__all__ = ["LagListener", "lag"]

choose_python()


def __getattr__(name: str) -> object:
    if name in __all__:
        from kwire.spark import progress

        return getattr(progress, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
