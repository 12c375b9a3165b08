"""The headers that the C sources include and the build writes: what Python's modules and C have to agree about."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping

from kwire.native.checksum_tables import checksum_tables
from kwire.native.number_tables import powers_of_ten

__all__ = ["headers"]


def headers() -> dict[str, str]:
    """Return the text of each header by its name."""
    made = {
        "array_layout.h": array_layout_header,
        "plan.h": plan_header,
        "record_layout.h": record_layout_header,
        "values.h": values_header,
        "checksum_tables.h": checksum_tables,
        "powers_of_ten.h": powers_of_ten,
        "encoder_layout.h": encoder_layout_header,
        "cleaner_layout.h": cleaner_layout_header,
    }
    return {name: "#pragma once\n#include <stdint.h>\n" + make() for name, make in made.items()}


PLAN_NAMES = (
    *("COMPACT", "MAY_BE_NULL", "LIVE", "ELSEWHERE", "LACKING", "DEFAULT_SLICE"),
    *("MAX_CODES", "MAX_ELEMENTS", "MAX_FRAMES", "MAX_STRING_BYTES", "MAX_TAG", "MAX_TAGGED_FIELDS", "UUID_BYTES"),
)
RECORD_NAMES = {
    "kwire.records.format.faults": ("MAX_HEADERS",),
    "kwire.records.attributes": (
        *("CODEC_MASK", "CONTROL_FLAG", "DELETE_HORIZON_FLAG", "HIGHEST_CODEC", "LOG_APPEND_TIME_FLAG"),
        *("NO_PRODUCER_ID", "NO_SEQUENCE", "NO_TIMESTAMP"),
    ),
    "kwire.records.format.batch_table": ("BAD_CODEC", "BAD_CRC"),
    "kwire.records.format.default_batch": ("SMALLEST_RECORD_BYTES",),
    "kwire.records.format.batch_header": (
        *("FRAME_BYTES", "PREFIX_BYTES", "SIZE_POSITION", "MAGIC_POSITION", "DEFAULT_HEADER_BYTES", "CRC_POSITION"),
        *("LEADER_EPOCH_POSITION", "ATTRIBUTES_POSITION", "LAST_OFFSET_DELTA_POSITION", "BASE_TIMESTAMP_POSITION"),
        *("MAX_TIMESTAMP_POSITION", "PRODUCER_ID_POSITION", "PRODUCER_EPOCH_POSITION", "BASE_SEQUENCE_POSITION"),
        *("COUNT_POSITION", "LEGACY_CRC_POSITION", "LEGACY_ATTRIBUTES_POSITION", "LEGACY_TIMESTAMP_POSITION"),
        *("SMALLEST_SIZE", "SMALLEST_DEFAULT_SIZE", "LARGEST_SIZE", "LARGEST_RECORD"),
    ),
}


def enums(constants: Mapping[str, int]) -> str:
    """Return constants in C."""
    return "".join(f"enum {{ {name} = {value} }};\n" for name, value in constants.items())


def struct(name: str, fields: Iterable[str], word: str = "int64_t") -> str:
    """Return the struct of a row of words of 8 bytes."""
    return f"typedef struct {{\n    {word} {', '.join(field.lower() for field in fields)};\n}} {name};\n"


def array_layout_header() -> str:
    """Return array_layout.h for cursor.h: the room that copies need beyond the end of their output."""
    return enums({"WIDE": importlib.import_module("kwire.native.arrays").WIDE})


def plan_header() -> str:
    """Return plan.h for what reads and writes messages: operations, codes, flags and limits of plans."""
    rows = importlib.import_module("kwire.plan.rows")
    constants = {name: i for i, name in enumerate(rows.OPERATIONS)}
    constants |= {name.upper(): code for name, code in (rows.CODES | rows.PACKED).items()}
    constants |= {name: getattr(rows, name) for name in PLAN_NAMES}
    words = "".join(f"    union {{ int64_t {', '.join(names)}; }};\n" for names in rows.ROW)
    return enums(constants) + struct("Level", rows.LEVEL_FIELDS) + f"typedef struct {{\n{words}}} Row;\n"


def record_layout_header() -> str:
    """Return record_layout.h for the C code of records: faults, limits, positions of fields, rows of tables."""
    faults = importlib.import_module("kwire.records.format.faults")
    constants = {f"FAULT_{fault.name}": int(fault) for fault in faults.Fault}
    for module, names in RECORD_NAMES.items():
        constants |= {name: getattr(importlib.import_module(module), name) for name in names}
    table = importlib.import_module("kwire.records.format.batch_table")
    constants |= {f"SCAN_{name}": getattr(table, name) for name in ("WHOLE", "CUT", "UNBELIEVABLE", "FULL")}
    columns = importlib.import_module("kwire.records.columns.layout")
    structs = {"Batch": table.TABLE, "ColumnAddresses": columns.ADDRESSES, "ColumnState": columns.STATE}
    structs |= {"BuilderState": importlib.import_module("kwire.records.format.builder").STATE}
    return enums(constants) + "".join(struct(name, fields) for name, fields in structs.items())


def encoder_layout_header() -> str:
    """Return encoder_layout.h for encoding.c."""
    layout = importlib.import_module("kwire.records.columns.encoder_layout")
    constants = {f"COLUMN_{column.name}": int(column) for column in layout.Column}
    constants |= {f"STOP_{stop.name}": int(stop) for stop in layout.Stop}
    constants["COLUMN_COUNT"] = len(layout.Column)
    rows = "".join(struct(row.__name__, row.__members__) for row in (layout.NewBatch, layout.State))
    return enums(constants) + rows


def cleaner_layout_header() -> str:
    """Return cleaner_layout.h for cleaning.c."""
    layout = importlib.import_module("kwire.log.cleaner.layout")
    constants = {f"PUT_{put.name}": int(put) for put in layout.Put}
    constants |= {f"VERDICT_{verdict.name}": int(verdict) for verdict in layout.Verdict}
    constants["KNOWN_FLAGS"] = layout.KNOWN_FLAGS
    unsigned = [struct(row.__name__, row.__members__, "uint64_t") for row in (layout.Slot, layout.Mark)]
    signed = [struct(row.__name__, row.__members__) for row in (layout.MapState, layout.Outcome, layout.Weights)]
    return enums(constants) + "".join(unsigned + signed)


def values_header() -> str:
    """Return values.h for columns.h: operations of plans, the layout of columns and of jobs."""
    rows = importlib.import_module("kwire.wire.value_rows")
    lists = {"OP_": rows.OPERATIONS, "NUMBER_": rows.NUMBERS, "KIND_": rows.KINDS, "COLUMN_": rows.COLUMN}
    messages = importlib.import_module("kwire.wire.protobuf_rows")
    json = importlib.import_module("kwire.wire.json_rows")
    lists |= {"PB_": messages.OPERATIONS, "FIELD_": messages.FIELD, "JSON_": json.OPERATIONS, "VALUE_": json.VALUE}
    lists |= {"JOB_": rows.JOB, "STATUS_": rows.STATUSES}
    constants = {f"{prefix}{name}": index for prefix, names in lists.items() for index, name in enumerate(names)}
    for listed in (rows.WRITE_OPERATIONS, rows.SOURCE, rows.WRITE_JOB, messages.PUT_OPERATIONS, messages.PUT):
        constants |= {name: index for index, name in enumerate(listed)}
    for listed in (json.TEXT_OPERATIONS, json.TEXT):
        constants |= {name: index for index, name in enumerate(listed)}
    limits = ("ROW_WORDS", "COLUMN_WORDS", "MAX_DEPTH", "SPARE_ITEMS", "MAX_OFFSET", "NO_COLUMN", "LEFT", "ROW_IS_LEFT")
    constants |= {name: getattr(rows, name) for name in limits}
    constants |= {"JOB_WORDS": len(rows.JOB), "WRITE_JOB_WORDS": len(rows.WRITE_JOB), "SOURCE_WORDS": len(rows.SOURCE)}
    constants["MAX_NESTED"] = messages.MAX_NESTED
    return enums(constants)
