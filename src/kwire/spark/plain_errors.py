"""Errors of kwire in Spark's exceptions: the sentence alone, where Spark would show a Python traceback before it.

    KWIRE_TRACEBACK=1    environment variable: keep tracebacks, on the driver and, for tasks, on the executors

Spark's exception has the text that PySpark's worker makes of a Python exception. Its own switch for that text, the
variable SPARK_HIDE_TRACEBACK, is read when the worker reports the exception, after which the process ends; so it is set
in the moment in which an error of kwire leaves a method or function that Spark has called. Other exceptions keep their
tracebacks.
Source: pyspark.util.handle_worker_exception; PythonWorkerFactory (the names of its variables).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kwire.errors import KwireError

__all__ = ["SPARK_METHODS", "plain_errors", "without_traceback"]

DEBUG = "KWIRE_TRACEBACK"
SPARK_METHODS = (
    *("schema", "reader", "streamReader", "writer", "streamWriter"),
    *("partitions", "read", "initialOffset", "latestOffset", "reportLatestOffset", "prepareForTriggerAvailableNow"),
    *("write", "commit", "abort"),
)
"""Methods of data sources, readers and writers that Spark calls and that can raise errors of kwire."""

T = TypeVar("T")


def plain_errors(cls: type[T]) -> type[T]:
    """Decorate a data source, reader or writer: errors of kwire that its methods raise have no traceback in Spark."""
    for name in SPARK_METHODS:
        method = vars(cls).get(name)
        if method is not None:
            setattr(cls, name, _plain(method))
    return cls


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with without_traceback():
            result = method(*args, **kwargs)
        return _iterate(result) if isinstance(result, Iterator) else result

    return call


def _iterate(rows: Iterator[T]) -> Iterator[T]:
    with without_traceback():
        yield from rows


@contextmanager
def without_traceback() -> Iterator[None]:
    """Report an error of kwire that leaves the block without traceback, if this is a process that Spark has started."""
    try:
        yield
    except KwireError:
        if any(name.startswith("PYTHON_WORKER_FACTORY_") for name in os.environ) and not os.environ.get(DEBUG):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
