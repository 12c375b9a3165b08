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
    from kwire.records.append.settings import AppendOrigin as AppendOrigin
    from kwire.records.append.validation import ValidatedRecords as ValidatedRecords
    from kwire.records.append.validation import validate_and_assign_offsets as validate_and_assign_offsets
    from kwire.records.attributes import Compression as Compression
    from kwire.records.attributes import TimestampType as TimestampType
    from kwire.records.columns.reader import ColumnReader as ColumnReader
    from kwire.records.columns.reader import arrow_schema as arrow_schema
    from kwire.records.columns.reader import to_arrow as to_arrow
    from kwire.records.columns.writer import ColumnWriter as ColumnWriter
    from kwire.records.columns.writer import from_arrow as from_arrow
    from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES as DEFAULT_MAX_DECOMPRESSED_BYTES
    from kwire.records.convert.conversion import Converted as Converted
    from kwire.records.convert.conversion import down_convert as down_convert
    from kwire.records.convert.conversion import up_convert as up_convert
    from kwire.records.format.append_error import AppendErrorCode as AppendErrorCode
    from kwire.records.format.append_error import RejectedRecords as RejectedRecords
    from kwire.records.format.batch import Batch as Batch
    from kwire.records.format.builder import BatchBuilder as BatchBuilder
    from kwire.records.format.builder import write_batch as write_batch
    from kwire.records.format.builder import write_batches as write_batches
    from kwire.records.format.control_record import ControlRecord as ControlRecord
    from kwire.records.format.control_record import ControlRecordType as ControlRecordType
    from kwire.records.format.control_record import parse_control_record as parse_control_record
    from kwire.records.format.control_writer import write_control_batch as write_control_batch
    from kwire.records.format.control_writer import write_transaction_marker as write_transaction_marker
    from kwire.records.format.record import Record as Record
    from kwire.records.format.record_set import read_batches as read_batches

_HOMES = {
    "DEFAULT_MAX_DECOMPRESSED_BYTES": "kwire.records.compression.codecs",
    "AppendErrorCode": "kwire.records.format.append_error",
    "AppendOrigin": "kwire.records.append.settings",
    "Batch": "kwire.records.format.batch",
    "BatchBuilder": "kwire.records.format.builder",
    "ColumnReader": "kwire.records.columns.reader",
    "ColumnWriter": "kwire.records.columns.writer",
    "Compression": "kwire.records.attributes",
    "ControlRecord": "kwire.records.format.control_record",
    "ControlRecordType": "kwire.records.format.control_record",
    "Converted": "kwire.records.convert.conversion",
    "Record": "kwire.records.format.record",
    "RejectedRecords": "kwire.records.format.append_error",
    "TimestampType": "kwire.records.attributes",
    "ValidatedRecords": "kwire.records.append.validation",
    "arrow_schema": "kwire.records.columns.reader",
    "down_convert": "kwire.records.convert.conversion",
    "from_arrow": "kwire.records.columns.writer",
    "parse_control_record": "kwire.records.format.control_record",
    "read_batches": "kwire.records.format.record_set",
    "to_arrow": "kwire.records.columns.reader",
    "up_convert": "kwire.records.convert.conversion",
    "validate_and_assign_offsets": "kwire.records.append.validation",
    "write_batch": "kwire.records.format.builder",
    "write_batches": "kwire.records.format.builder",
    "write_control_batch": "kwire.records.format.control_writer",
    "write_transaction_marker": "kwire.records.format.control_writer",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
