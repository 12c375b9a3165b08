"""Spark's Python daemon, with the modules of tasks preloaded.

    spark.python.daemon.module    kwire.spark.process.daemon

Spark terminates the Python worker of a task that is not read to its end (`limit`, `isEmpty()`), and the next task on
that core gets a new worker, which imports Arrow and kwire in a quarter of a second of CPU. Workers are forked from the
daemon and share its modules.
Source: Spark's PythonRunner (spark.python.daemon.module), pyspark.daemon.
"""

from __future__ import annotations

import gc
import logging
import runpy

from kwire.errors import KwireError

__all__ = ["load"]

logger = logging.getLogger("kwire.spark")


def load() -> None:
    """Import the modules of reading tasks.

    No thread may be started here, since threads do not survive a fork. jemalloc and OpenBLAS stop their threads before
    a fork and restart them.
    """
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401

    import kwire.records.columns.decoder
    import kwire.spark.live.reading
    import kwire.spark.log.reading
    import kwire.spark.log.source  # noqa: F401

    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    try:
        load()
    except (ImportError, OSError, RuntimeError, KwireError) as error:  # workers load them, or report the error
        logger.warning("Python workers start cold: %s", error)
    runpy.run_module("pyspark.daemon", run_name="__main__")
