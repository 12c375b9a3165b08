"""What a Spark task does: splits in, Arrow batches out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kwire.errors import LogError
from kwire.spark.options import LogOptions
from kwire.spark.worker import prepare_worker

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.log.splits import Split

logger = logging.getLogger("kwire.spark")


def read_task(splits: Sequence[Split], columns: tuple[str, ...], options: LogOptions) -> Iterator[pa.RecordBatch]:
    """The rows of some splits, in their order.

    A file that is gone since the query was planned is data loss: LogError, or a warning where the options say so.
    Raises CorruptBatch in mode FAILFAST.
    """
    prepare_worker()
    from kwire.log import read_split

    for split in splits:
        try:
            yield from read_split(split, columns, mode=options.mode, check_crc=options.check_crc)
        except LogError as error:
            if options.fail_on_data_loss or not isinstance(error.__cause__, FileNotFoundError):
                raise
            end = split.end_offset if split.next_base is None else min(split.end_offset, split.next_base)
            logger.warning("%s; offsets [%d, %d) are not read", error, split.start_offset, end)
