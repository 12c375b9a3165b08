"""Write src/kwire/native/_kernels.pyi: the types of the extension module, from the annotations of the kernels."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

from kwire.native import EXPORTS

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src" / "kwire" / "native" / "_kernels.pyi"
HEAD = '''"""The extension module that `kwire.native.build` makes. Written by tools/generate.py."""

from collections.abc import Callable
from typing import Any

from kwire.records.record import Record
from kwire.wire.kernels.arrays import (
    Bytes,
    Int32s,
    Int64s,
    Int64Table,
    UInt64s,
    UInt64Table,
    WritableBytes,
    WritableInt64s,
    WritableInt64Table,
    WritableUInt32s,
    WritableUInt64Table,
)

SOURCES: str
HAS_CRC32C: bool

def use_level(name: str, /) -> None: ...
def level_in_use() -> str: ...
def decoders(
    job: int, walk: Callable[..., tuple[object, int]], kept: object, /
) -> tuple[Callable[..., Any], Callable[..., tuple[Any, int]]]: ...
def slots(cls: type, /) -> tuple[int, dict[str, int]]: ...
def encoder(job: int, write: Callable[[object], bytes], kept: object, /) -> Callable[[object], bytes]: ...
def record_factory(
    cls: type, timestamp_types: tuple[object, ...], decode_key: Callable[[bytes], str], /, *offsets: int
) -> object: ...
def append_record(
    state: int, out: bytearray, key: object, value: object, timestamp: int, headers: object, offset: int | None, /
) -> bool: ...
def append_records(
    state: int, out: bytearray, factory: object, records: list[Record], start: int, keep_offsets: bool, /
) -> int: ...
def read_records(
    factory: object, section: Bytes, leader_epoch: int | None, type: int, position: int, count: int, /, *header: int
) -> tuple[list[Record], int, int, int]: ...
def read_messages(
    factory: object, section: Bytes, leader_epoch: None, type: int, position: int, count: int, /, *header: int
) -> tuple[list[Record], int, int, int]: ...
def decode_avro(job: Int64s, /) -> int: ...
def decode_protobuf(job: Int64s, /) -> int: ...
def decode_json(job: Int64s, /) -> int: ...
def encode_avro(job: Int64s, /) -> int: ...
'''


def stub() -> str:
    """Return the text of the stub."""
    lines = []
    for name, module in EXPORTS.items():
        function = getattr(importlib.import_module(module), name)
        types = dict(function.__annotations__)
        result = types.pop("return")
        given = "".join(
            f"    {parameter}: {types[parameter]},\n" for parameter in inspect.signature(function).parameters
        )
        lines.append(f"def {name}(\n{given}    /,\n) -> {result}: ...\n")
    return HEAD + "".join(lines)


def main(*, check: bool) -> bool:
    """Write the stub, or check it: returns whether the file is up to date."""
    text = stub()
    if check:
        return TARGET.exists() and TARGET.read_text() == text
    TARGET.write_text(text)
    return True
