"""The extension module: what it was built from, its arguments, and what happens without it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.compiled import needs_compiled_code
from tests.waiting import HANG_S

from kwire import native
from kwire.native.build import kernels, sources_digest
from kwire.records.attributes import TimestampType
from kwire.records.format import batch_table as t


def output(program: str, **environment: str) -> str:
    """Return what a program prints in a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_compiled_code
def test_the_module_was_built_from_these_sources() -> None:
    from kwire.native import _kernels

    assert sources_digest() == _kernels.SOURCES, "the kernels have changed: python -m kwire.native.build"


@needs_compiled_code
def test_every_kernel_is_compiled() -> None:
    assert native.LEVEL is not None
    names = [each.name for each in kernels()]
    assert len(names) > 20
    for name in names:
        assert type(getattr(native, name)).__name__ == "builtin_function_or_method", name


def test_the_environment_disables_compiled_code() -> None:
    program = "from kwire import native; print(native.LEVEL, native.HAS_CRC32C)"
    assert output(program, KWIRE_KERNEL="0") == "None False"


def test_an_unknown_setting_is_an_error() -> None:
    program = """
from kwire.errors import OptionError
try:
    import kwire.native
except OptionError as error:
    print(error)
"""
    expected = "KWIRE_KERNEL=x86-64-v2: expected 0, for no compiled code, or 1"
    assert output(program, KWIRE_KERNEL="x86-64-v2") == expected


@needs_compiled_code
def test_arguments_are_checked() -> None:
    table = np.zeros((4, t.COLUMN_COUNT), np.int64)
    assert native.scan_batches(b"", 0, table) == (0, 0, t.WHOLE)
    with pytest.raises(TypeError, match=r"scan_batches\(\) takes 3 arguments, got 1"):
        native.scan_batches(b"")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        native.scan_batches(b"", "0", table)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"argument 3 of scan_batches\(\): expected 2 dimension\(s\) of 8 bytes"):
        native.scan_batches(b"", 0, table[0])
    with pytest.raises(ValueError, match="got 2 of 4"):
        native.scan_batches(b"", 0, table.astype(np.int32))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not C-contiguous"):
        native.scan_batches(b"", 0, table[::2])
    with pytest.raises(OverflowError):
        native.scan_batches(b"", 2**64, table)
    for function in (native.decoders, native.encoder):
        with pytest.raises(TypeError, match="takes 3 arguments, got 1"):
            function(0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 1 argument, got 0"):
        native.slots()  # type: ignore[call-arg]
    for value in (5, "text", (int,)):
        with pytest.raises(TypeError, match="not a class"):
            native.slots(value)  # type: ignore[arg-type]


READ_ONLY = """
import numpy as np
from kwire import native
from kwire.records.format import batch_table as t

table = np.zeros((4, t.COLUMN_COUNT), np.int64)
hashes, ends = np.zeros(1, np.uint32), np.array([0, 1], np.int32)
native.scan_batches(b"", 0, table)
native.hash_keys(ends, b"k", hashes)
table.flags.writeable = ends.flags.writeable = hashes.flags.writeable = False
native.sum_batches(np.zeros(0, np.uint8), table[:0])
for kernel, arguments in (
    (native.scan_batches, (b"", 0, table)), (native.check_legacy_crcs, (b"", table)),
    (native.hash_keys, (ends, b"k", hashes)), (native.hash_keys, (ends, b"k", bytes(hashes.view(np.uint8)))),
):
    try:
        kernel(*arguments)
    except ValueError as error:
        print(error)
"""


@needs_compiled_code
def test_arrays_that_cannot_be_written_are_no_output() -> None:
    """Compiled code once wrote to them."""
    found = output(READ_ONLY).splitlines()
    why = "the kernel writes to it, but it is read-only"
    assert found[:3] == [
        f"argument 3 of scan_batches(): {why}",
        f"argument 2 of check_legacy_crcs(): {why}",
        f"argument 3 of hash_keys(): {why}",
    ]
    assert found[3].startswith("argument 3 of hash_keys(): expected 1 dimension(s) of 4 bytes")


@pytest.mark.slow
@needs_compiled_code
def test_calls_that_fail_keep_no_references() -> None:
    from kwire.records.format.record import Record, decode_header_key

    types = tuple(sorted(TimestampType))
    names: tuple[tuple[object, ...], ...] = (
        (Record, types, decode_header_key),
        (Record, types[:1], decode_header_key, *range(8)),
        (Record, types, decode_header_key, *range(7), "8"),
    )
    watched = Record, types, types[0], decode_header_key, native

    def references() -> list[int]:
        gc.collect()
        return [sys.getrefcount(each) for each in watched]

    before = references()
    for arguments in names * 100:
        with pytest.raises((TypeError, IndexError)):
            native.record_factory(*arguments)  # type: ignore[arg-type]
    assert references() == before
    for _ in range(100):
        native.record_factory(Record, types, decode_header_key, *range(8))
        with pytest.raises(TypeError):
            native.slots(native)  # type: ignore[arg-type]
    assert references() == before


@pytest.mark.slow
@needs_compiled_code
def test_plain_python_reads_what_compiled_code_reads() -> None:
    """The kernels' own source, run by Python, gives the same columns on the bytes that Kafka wrote."""
    program = """
import hashlib
from tests import golden
from kwire.errors import CorruptBatch
from kwire.records import ColumnReader
found = hashlib.sha256()
for line in golden.record_sets():
    for batch in ColumnReader().read(golden.unpack(line["b64"]) or b""):
        found.update(repr(str(batch) if isinstance(batch, CorruptBatch) else batch.to_pylist()).encode())
print(found.hexdigest())
"""
    assert output(program, KWIRE_KERNEL="0") == output(program)
