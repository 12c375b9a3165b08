"""The functions that Python calls: bytes in, bytes out, None when the walker has to say what is wrong.

    decode(data, job) -> MessagePack | None
    decode_at(data, start, job, flags) -> MessagePack | None
    encode(packed, job) -> bytes | None

job is the address of four int64: rows, constants, and how many bytes of output to reserve for eight of input
when decoding and encoding; the last two grow when that was not enough.

They take their input's buffer, reserve the output (on the stack while it is small, else as the very bytes object that
is returned) and run the kernel, again with more room if it was not enough. They keep nothing between calls and hold
the GIL throughout, as letting go of it costs more than most messages take: safe in every thread and on re-entry.

Called through numba's compiled entry point, past its dispatcher: 0.1 us a call instead of 0.6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit, types

from kwire.plan import rows
from kwire.plan.kernels import decode as decoding
from kwire.plan.kernels import encode as encoding
from kwire.plan.kernels import memory
from kwire.plan.kernels.decode import FULL
from kwire.plan.kernels.encode import SLACK
from kwire.plan.kernels.memory import (
    HANDLE,
    bytes_data,
    close_buffer,
    drop,
    handle,
    ldw,
    new_bytes,
    none,
    open_buffer,
    resize_bytes,
    stw,
)
from kwire.plan.kernels.operands import FRAME
from kwire.wire import kernels as wire_kernels

PythonObject = Any
"""A HANDLE to numba, an object to Python."""
Signature = Any

MAX_DEPTH = 32
"""Frames that the kernels have; a plan that needs more is left to the walker (Kafka's deepest needs 10)."""
SMALL_BYTES = 2048
EIGHTHS, MAX_RATIO = 8, 2048

frames_on_stack = memory.stack(MAX_DEPTH * FRAME)
output_on_stack = memory.stack(SMALL_BYTES)


def fingerprint() -> str:
    """Hash the sources of all kernels: numba's cache watches only the file of the function that it keeps.

    A cached function has the fingerprint as the only variable of its closure, which makes it part of the key.
    """
    folders = Path(__file__).parent, Path(wire_kernels.__file__).parent
    sources = [Path(rows.__file__), *(path for folder in folders for path in sorted(folder.glob("*.py")))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


@memory.kernel
def decode_buffer(view: int, start: int, job: int, flags: int, frames: int, small: int) -> PythonObject:
    """Decode what an open buffer holds from start on, and close it. frames, small: room on the caller's stack."""
    size = ldw(view + 16)
    if start < 0 or start > size:
        close_buffer(view)
        return none()
    capacity = max(ldw(job + 16) * (size - start) // EIGHTHS, SMALL_BYTES - SLACK) + SLACK
    if flags & decoding.LARGE:  # what is large stays outside
        capacity //= 4
    while True:
        made = 0
        out = small
        if capacity > SMALL_BYTES:
            made = new_bytes(0, capacity)
            if made == 0:
                close_buffer(view)
                return handle(0)
            out = bytes_data(made)
        n = decoding.decode(ldw(view), size, start, out, capacity, ldw(job), ldw(job + 8), frames, flags)
        if n != FULL:
            break
        if made:
            drop(made)
        capacity *= 4
        stw(job + 16, min(ldw(job + 16) * 2, MAX_RATIO))
    close_buffer(view)
    return finished(made, out, n)


@memory.kernel
def finished(made: int, out: int, n: int) -> PythonObject:
    """The n bytes at out as a bytes object: `made`, if that is what they are in; None if n says that there are none."""
    if n < 0:
        if made:
            drop(made)
        return none()
    return handle(resize_bytes(made, n) if made else new_bytes(out, n))


def _make_decode(sources: str) -> Callable[..., object]:
    def decode_entry(data: PythonObject, job: int) -> PythonObject:
        sources  # noqa: B018  # the only variable of the closure, and so part of the key of numba's cache
        view = open_buffer(data)
        if view == 0:
            return handle(0)
        return decode_buffer(view, 0, job, 0, frames_on_stack(), output_on_stack())

    return decode_entry


def _make_decode_at(sources: str) -> Callable[..., object]:
    def decode_at_entry(data: PythonObject, start: int, job: int, flags: int) -> PythonObject:
        sources  # noqa: B018  # as above
        view = open_buffer(data)
        if view == 0:
            return handle(0)
        return decode_buffer(view, start, job, flags, frames_on_stack(), output_on_stack())

    return decode_at_entry


def _make_encode(sources: str) -> Callable[..., object]:
    def encode_entry(packed: PythonObject, job: int) -> PythonObject:
        sources  # noqa: B018  # as above
        view = open_buffer(packed)
        if view == 0:
            return handle(0)
        size = ldw(view + 16)
        capacity = max(ldw(job + 24) * size // EIGHTHS, SMALL_BYTES - SLACK) + SLACK
        while True:
            made = 0
            out = output_on_stack()
            if capacity > SMALL_BYTES:
                made = new_bytes(0, capacity)
                if made == 0:
                    close_buffer(view)
                    return handle(0)
                out = bytes_data(made)
            n = encoding.encode(ldw(view), size, out, capacity, ldw(job), ldw(job + 8), frames_on_stack())
            if n != FULL:
                break
            if made:
                drop(made)
            capacity *= 4
            stw(job + 24, min(ldw(job + 24) * 2, MAX_RATIO))
        close_buffer(view)
        return finished(made, out, n)

    return encode_entry


def _entry_point(function: Callable[..., object], signature: Signature) -> Callable[..., object]:
    compiled = njit(signature, cache=True, error_model="numpy")(function)
    overloads: Any = compiled.overloads
    entry: Callable[..., object] = overloads[signature.args].entry_point
    return entry


_SOURCES = fingerprint()
decode = _entry_point(_make_decode(_SOURCES), HANDLE(HANDLE, types.int64))
decode_at = _entry_point(_make_decode_at(_SOURCES), HANDLE(HANDLE, types.int64, types.int64, types.int64))
encode = _entry_point(_make_encode(_SOURCES), HANDLE(HANDLE, types.int64))
