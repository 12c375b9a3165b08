"""The data source of copy_stream: its reader returns tasks instead of rows, and its writer writes the rows of tasks.

Each run of a query starts a Python process that plans its micro-batches, and rows wait for that process. So the writer,
with the sink, the decoders and the user's function, is unpickled where rows are written only, and nothing of it is
imported here.
Source: Spark's PythonStreamingSourceRunner.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource

from kwire.spark.plain_errors import plain_errors
from kwire.spark.streaming.reader import TASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter
    from pyspark.sql.types import StructType


__all__ = ["CopySource"]


@plain_errors
class CopySource(DataSource):
    """Source and sink of one query: a subclass for each has its copy, since Spark's options are text and are shown.

    planner: of micro-batches. make_writer: a function without arguments, pickled.
    """

    format_name: ClassVar[str]
    planner: ClassVar[DataSourceStreamReader]
    make_writer: ClassVar[bytes]

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return cls.format_name

    def schema(self) -> str:
        """Return the column of tasks."""
        return f"{TASK} binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """Return the reader, which plans micro-batches."""
        return self.planner

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Create the writer of a micro-batch. Raises the errors of the sink."""
        make_writer: Callable[[], DataSourceStreamWriter] = pickle.loads(self.make_writer)
        return make_writer()
