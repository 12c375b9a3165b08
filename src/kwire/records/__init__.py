"""Record batches of magic 0, 1 and 2, as objects and as Arrow columns.

read       read_batches; to_arrow, ColumnReader
write      write_batch, write_batches, BatchBuilder; from_arrow, ColumnWriter; write_control_batch
convert    down_convert, up_convert
append     validate_and_assign_offsets
"""

from kwire.records.append_error import AppendErrorCode, RejectedRecords
from kwire.records.append_settings import AppendOrigin
from kwire.records.attributes import Compression, TimestampType
from kwire.records.batch import Batch
from kwire.records.builder import BatchBuilder, write_batch, write_batches
from kwire.records.column_writer import ColumnWriter, from_arrow
from kwire.records.columns import ColumnReader, arrow_schema, to_arrow
from kwire.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.control_record import ControlRecord, ControlRecordType, parse_control_record
from kwire.records.control_writer import write_control_batch, write_transaction_marker
from kwire.records.conversion import Converted, down_convert, up_convert
from kwire.records.record import Record
from kwire.records.record_set import read_batches
from kwire.records.validation import ValidatedRecords, validate_and_assign_offsets

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "AppendErrorCode",
    "AppendOrigin",
    "Batch",
    "BatchBuilder",
    "ColumnReader",
    "ColumnWriter",
    "Compression",
    "ControlRecord",
    "ControlRecordType",
    "Converted",
    "Record",
    "RejectedRecords",
    "TimestampType",
    "ValidatedRecords",
    "arrow_schema",
    "down_convert",
    "from_arrow",
    "parse_control_record",
    "read_batches",
    "to_arrow",
    "up_convert",
    "validate_and_assign_offsets",
    "write_batch",
    "write_batches",
    "write_control_batch",
    "write_transaction_marker",
]
