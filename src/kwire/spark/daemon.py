"""Spark's Python daemon, with what tasks need loaded before it starts the first one.

    spark.python.daemon.module    kwire.spark.daemon

Spark ends the Python worker of a task that is not read to its end (`limit`, `isEmpty()`), and the next task on that
core gets a new one, which loads Arrow, numba and the kernels: half a second of CPU. Workers are forked from the daemon:
what that has loaded, all of them have.
Source: Spark's PythonRunner (spark.python.daemon.module), pyspark.daemon.
"""

from __future__ import annotations

import gc
import logging
import runpy

from kwire.errors import KwireError
from kwire.spark.worker import prepare_worker

__all__ = ["load"]

logger = logging.getLogger("kwire.spark")


def load() -> None:
    """Import what reading tasks use, and load their kernels.

    The threads that come with it, of jemalloc and OpenBLAS, are stopped and started again around a fork by those
    libraries; nothing else may start one, since threads do not survive a fork.
    """
    prepare_worker()
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401

    import kwire.log
    import kwire.spark.live.reading
    import kwire.spark.log.reading
    import kwire.spark.log.source  # noqa: F401
    from kwire.records.columns import warm

    warm()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    try:
        load()
    except (ImportError, OSError, RuntimeError, KwireError) as error:  # workers then load it, or say what is missing
        logger.warning("Python workers start cold: %s", error)
    runpy.run_module("pyspark.daemon", run_name="__main__")
