"""What a Spark task does: splits in, Arrow batches out."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kwire.errors import LogError, Malformed
from kwire.spark.log.options import LogOptions
from kwire.spark.worker import prepare_worker
from kwire.storage.checkpoints import PARTITION_METADATA, parse_partition_metadata
from kwire.storage.open_store import open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.log.splits import Split

logger = logging.getLogger("kwire.spark")

NO_IDS: Mapping[str, uuid.UUID] = {}


def read_task(
    splits: Sequence[Split], columns: tuple[str, ...], options: LogOptions, topic_ids: Mapping[str, uuid.UUID] = NO_IDS
) -> Iterator[pa.RecordBatch]:
    """The rows of some splits, in their order.

    topic_ids: that the topics must have. A file that is gone since the query was planned, and a topic that was created
    again, are data loss: LogError, or a warning where the options say so. Raises CorruptBatch in mode FAILFAST.
    """
    prepare_worker()
    from kwire.log import read_split

    found_ids: dict[tuple[str, str], uuid.UUID | None] = {}
    for split in splits:
        known, directory = topic_ids.get(split.topic), (split.store_url, split.log_directory)
        if known is not None and directory not in found_ids:
            found_ids[directory] = topic_id_of(split)
        if known is not None and found_ids[directory] not in (None, known):
            lost = f"topic '{split.topic}' was deleted and created again after this task was planned"
            if options.fail_on_data_loss:
                raise LogError(
                    f"{lost}; to skip the deleted records, set the option failOnDataLoss to false", split.url
                )
            logger.warning("%s; skipping offsets [%d, %d)", lost, split.start_offset, split.end_offset)
            continue
        try:
            yield from read_split(split, columns, mode=options.mode, check_crc=options.check_crc)
        except LogError as error:
            if options.fail_on_data_loss or not isinstance(error.__cause__, FileNotFoundError):
                raise
            end = split.end_offset if split.next_base is None else min(split.end_offset, split.next_base)
            logger.warning("%s; offsets [%d, %d) are not read", error, split.start_offset, end)


def topic_id_of(split: Split) -> uuid.UUID | None:
    """The topic id in the partition's directory now; None where it cannot be read."""
    path = f"{split.log_directory}/{PARTITION_METADATA}" if split.log_directory else PARTITION_METADATA
    try:
        return parse_partition_metadata(open_store(split.store_url, split.storage_options).read_all(path))
    except (LogError, Malformed):
        return None
