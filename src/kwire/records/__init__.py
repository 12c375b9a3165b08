"""Record batches of magic 0, 1 and 2, read as objects (read_batches) or as Arrow columns (to_arrow, ColumnReader)."""

from kwire.records.attributes import Compression, TimestampType
from kwire.records.batch import Batch
from kwire.records.columns import ColumnReader, arrow_schema, to_arrow
from kwire.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.control_record import ControlRecord, ControlRecordType, parse_control_record
from kwire.records.record import Record
from kwire.records.record_set import read_batches

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "Batch",
    "ColumnReader",
    "Compression",
    "ControlRecord",
    "ControlRecordType",
    "Record",
    "TimestampType",
    "arrow_schema",
    "parse_control_record",
    "read_batches",
    "to_arrow",
]
