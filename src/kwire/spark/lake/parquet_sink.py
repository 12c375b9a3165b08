"""The sink `parquet` of copy_stream: Parquet files with the log of Spark's own file sink. docs/table-streams.md.

driver   ParquetStreamWriter()    creates the directory and reads its log
tasks    write()                  write files with unique names
driver   commit()                 adds the files of the micro-batch to the log
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from kwire.errors import OptionError
from kwire.lake import Mark, TaskFiles, WrittenFile, write_files
from kwire.lake.parquet.directory import ParquetDirectory
from kwire.lake.parquet.plan import ParquetPlan
from kwire.spark.lake.sink import TaskWritten
from kwire.spark.options.option import Option, check_names, choice, text_option, user_options
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers, warm_up
from kwire.spark.sail import struct_type
from kwire.spark.streaming.micro_batch_ids import micro_batch_of_task, task_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["PARQUET_OPTIONS", "ParquetSink", "ParquetStreamWriter"]

PAGE = "docs/table-streams.md"

PATH = text_option(
    name="path",
    value="string",
    shown_default="required",
    meaning="The directory: a path that driver and executors share. It is empty before the first query.",
)
COMPRESSION = Option[str](
    name="compression",
    parse=choice("none", "snappy", "gzip", "lz4", "zstd"),
    default="snappy",
    value="`none`, `snappy`, `gzip`, `lz4` or `zstd`",
    meaning="The compression codec of the files.",
)
PARQUET_OPTIONS: tuple[Option[object], ...] = (PATH, COMPRESSION)
UNSUPPORTED = {
    "partitionBy": "files are not divided by columns; use kwire-delta or kwire-iceberg",
    "mergeSchema": "a directory has the columns of its first query",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """The options of a query."""

    path: str
    compression: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ParquetOptions:
        """Parse the options. Raises OptionError."""
        given = user_options(options)
        check_names(given, PARQUET_OPTIONS, UNSUPPORTED, source="parquet", page=PAGE, passed_on=lambda _: False)
        path = (PATH.of(given) or "").removeprefix("file://")
        if not path:
            raise OptionError("Option 'path' must be specified: a local directory")
        if "://" in path:
            raise OptionError(
                f"Option 'path': expected a local path, got '{path}'; for an object store, use kwire-delta or "
                "kwire-iceberg"
            )
        return cls(path=path, compression=COMPRESSION.of(given))


Messages = Sequence[WriterCommitMessage | None]


@plain_errors
class ParquetStreamWriter(SentToWorkers, DataSourceStreamArrowWriter):
    """Writes one micro-batch of a streaming query."""

    def __init__(self, options: ParquetOptions, schema: pa.Schema) -> None:
        directory = ParquetDirectory(options.path)
        directory.prepare()
        self.plan = ParquetPlan(table=directory.path, table_id="", arrow=schema, compression=options.compression)
        self.columns = ", ".join(f"{field.name}: {field.type}" for field in schema)
        self.state = directory.state()
        self.state.check_columns(self.columns, directory.path)
        warm_up()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task, unless its batch is committed; called in a worker. Raises TableError."""
        warm_up()
        micro_batch = micro_batch_of_task()
        if micro_batch is None:
            raise OptionError("this task belongs to no micro-batch, so its rows cannot be written once; use Spark")
        mark = Mark(query=micro_batch[0], batch=micro_batch[1])
        if self.state.is_done(mark, self.plan.table):
            return TaskWritten(TaskFiles(), mark)
        plan = replace(self.plan, name=f"{mark.query}-{mark.batch}")
        return TaskWritten(write_files(iterator, plan, task=task_number()), mark)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Commit the files of a micro-batch. Raises TableError."""
        written = [each for each in messages if isinstance(each, TaskWritten)]
        mark = next((each.mark for each in written if each.mark is not None), None)
        if mark is None:
            raise OptionError(f"no task has written micro-batch {batchId}, so its query is not known")
        ParquetDirectory(self.plan.table).commit(_files_of(messages), mark, self.columns)
        warm_up()

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Delete the files of a micro-batch if a task has failed; after a failed commit, the log may have them."""
        if None in messages:
            ParquetDirectory(self.plan.table).discard(_files_of(messages))


def _files_of(messages: Messages) -> list[WrittenFile]:
    tasks = (each.files for each in messages if isinstance(each, TaskWritten))
    return [file for each in tasks if isinstance(each, TaskFiles) for file in each.files]


@plain_errors
class ParquetSink(DataSource):
    """The sink `parquet` of copy_stream; Spark's format of that name is for other queries."""

    def schema(self) -> NoReturn:
        """Raise OptionError: the sink is for writing."""
        raise OptionError("the sink is for writing; read the directory with spark.read.parquet")

    def streamWriter(self, schema: StructType | pa.Schema, overwrite: bool) -> ParquetStreamWriter:  # noqa: N802
        """Create the writer of a micro-batch. schema: of Arrow. Raises OptionError, TableError."""
        assert not overwrite
        options = ParquetOptions.parse(self.options)
        try:
            struct_type(schema)
        except Exception as error:  # PySpark's own, without a common base class in all versions
            raise OptionError(f"a column has a type that Spark does not read: {error}; cast it in function") from error
        return ParquetStreamWriter(options, schema)
