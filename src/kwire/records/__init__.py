"""Record batches of magic 0, 1 and 2, as objects and as Arrow columns.

read       read_batches; to_arrow, ColumnReader
write      write_batch, write_batches, BatchBuilder; from_arrow, ColumnWriter; write_control_batch
convert    down_convert, up_convert
append     validate_and_assign_offsets

Names import their modules on first access: reading batches needs neither the writers nor validation.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.records.append_error import AppendErrorCode as AppendErrorCode
    from kwire.records.append_error import RejectedRecords as RejectedRecords
    from kwire.records.append_settings import AppendOrigin as AppendOrigin
    from kwire.records.attributes import Compression as Compression
    from kwire.records.attributes import TimestampType as TimestampType
    from kwire.records.batch import Batch as Batch
    from kwire.records.builder import BatchBuilder as BatchBuilder
    from kwire.records.builder import write_batch as write_batch
    from kwire.records.builder import write_batches as write_batches
    from kwire.records.column_writer import ColumnWriter as ColumnWriter
    from kwire.records.column_writer import from_arrow as from_arrow
    from kwire.records.columns import ColumnReader as ColumnReader
    from kwire.records.columns import arrow_schema as arrow_schema
    from kwire.records.columns import to_arrow as to_arrow
    from kwire.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES as DEFAULT_MAX_DECOMPRESSED_BYTES
    from kwire.records.control_record import ControlRecord as ControlRecord
    from kwire.records.control_record import ControlRecordType as ControlRecordType
    from kwire.records.control_record import parse_control_record as parse_control_record
    from kwire.records.control_writer import write_control_batch as write_control_batch
    from kwire.records.control_writer import write_transaction_marker as write_transaction_marker
    from kwire.records.conversion import Converted as Converted
    from kwire.records.conversion import down_convert as down_convert
    from kwire.records.conversion import up_convert as up_convert
    from kwire.records.record import Record as Record
    from kwire.records.record_set import read_batches as read_batches
    from kwire.records.validation import ValidatedRecords as ValidatedRecords
    from kwire.records.validation import validate_and_assign_offsets as validate_and_assign_offsets

_HOMES = {
    "DEFAULT_MAX_DECOMPRESSED_BYTES": "kwire.records.compression",
    "AppendErrorCode": "kwire.records.append_error",
    "AppendOrigin": "kwire.records.append_settings",
    "Batch": "kwire.records.batch",
    "BatchBuilder": "kwire.records.builder",
    "ColumnReader": "kwire.records.columns",
    "ColumnWriter": "kwire.records.column_writer",
    "Compression": "kwire.records.attributes",
    "ControlRecord": "kwire.records.control_record",
    "ControlRecordType": "kwire.records.control_record",
    "Converted": "kwire.records.conversion",
    "Record": "kwire.records.record",
    "RejectedRecords": "kwire.records.append_error",
    "TimestampType": "kwire.records.attributes",
    "ValidatedRecords": "kwire.records.validation",
    "arrow_schema": "kwire.records.columns",
    "down_convert": "kwire.records.conversion",
    "from_arrow": "kwire.records.column_writer",
    "parse_control_record": "kwire.records.control_record",
    "read_batches": "kwire.records.record_set",
    "to_arrow": "kwire.records.columns",
    "up_convert": "kwire.records.conversion",
    "validate_and_assign_offsets": "kwire.records.validation",
    "write_batch": "kwire.records.builder",
    "write_batches": "kwire.records.builder",
    "write_control_batch": "kwire.records.control_writer",
    "write_transaction_marker": "kwire.records.control_writer",
}

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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
