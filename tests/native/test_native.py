"""The extension module: what it was built from, its levels, its arguments, and what happens without it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.waiting import HANG_S

from kwire import native
from kwire.native.build import sources_digest
from kwire.records.kernels import table as t

LEVELS = [level for level in ("x86-64-v2", "x86-64-v3") if native.LEVEL and level <= native.LEVEL]


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


def test_the_module_was_built_from_these_sources() -> None:
    from kwire.native import _kernels

    assert sources_digest() == _kernels.SOURCES, "the kernels have changed: python -m kwire.native.build"


def test_every_export_is_compiled() -> None:
    assert native.LEVEL is not None
    for name in native.EXPORTS:
        assert type(getattr(native, name)).__name__ == "builtin_function_or_method", name


@pytest.mark.parametrize("level", LEVELS)
def test_the_environment_selects_a_level(level: str) -> None:
    assert output("from kwire import native; print(native.LEVEL)", KWIRE_KERNEL=level) == level


def test_the_environment_disables_compiled_code() -> None:
    program = "from kwire import native; print(native.LEVEL, native.HAS_CRC32C, native.find_header.__module__)"
    assert output(program, KWIRE_KERNEL="0") == "None False kwire.records.kernels.find_batch"


def test_an_unknown_level_is_an_error() -> None:
    program = """
from kwire.errors import OptionError
try:
    import kwire.native
except OptionError as error:
    print(error)
"""
    expected = "KWIRE_KERNEL=x86-64-v9: no such level, or not one of this processor"
    assert output(program, KWIRE_KERNEL="x86-64-v9") == expected


def test_arguments_are_checked() -> None:
    table = np.zeros((4, t.COLUMN_COUNT), np.int64)
    assert native.scan_batches(0, 0, 0, table) == (0, 0, t.WHOLE)
    with pytest.raises(TypeError, match=r"scan_batches\(\) takes 4 arguments, got 1"):
        native.scan_batches(0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        native.scan_batches("0", 0, 0, table)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"argument 4 of scan_batches\(\): expected 2 dimension\(s\) of 8 bytes"):
        native.scan_batches(0, 0, 0, table[0])
    with pytest.raises(ValueError, match="got 2 of 4"):
        native.scan_batches(0, 0, 0, table.astype(np.int32))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not C-contiguous"):
        native.scan_batches(0, 0, 0, table[::2])
    with pytest.raises(OverflowError):
        native.scan_batches(2**64, 0, 0, table)
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        native.encode(b"")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 3 arguments, got 1"):
        native.decoders(0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 1 argument, got 0"):
        native.slots()  # type: ignore[call-arg]


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


def test_former_names_warn_and_do_nothing() -> None:
    from kwire.plan.engine import load_in_background

    with pytest.warns(DeprecationWarning, match="kernels are compiled in the wheel"):
        load_in_background()
    assert output("import runpy; runpy.run_module('kwire.warm', run_name='__main__')").startswith(
        "kwire.warm: nothing to do"
    )
