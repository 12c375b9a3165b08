"""Evidence byte by byte: each range of a message with its field, type and value."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from kwire import plan
from kwire.conformance.report import Evidence
from kwire.errors import KwireError, render_path
from kwire.messages import RequestHeader, ResponseHeader, registry

__all__ = ["Line", "annotated"]

MAX_VALUE = 60
MAX_BYTES_A_LINE = 16


class Line(NamedTuple):
    """A range of bytes. field, type and value are empty for bytes that are not part of a message."""

    position: int
    data: bytes
    field: str
    type: str
    value: str


def annotated(evidence: Evidence, max_lines: int = 200) -> list[Line]:
    """Return the bytes of a message with their fields; plain rows of bytes for anything else."""
    data = evidence.data
    lines: list[Line] = []
    error = None
    try:
        codec = _codec(evidence)
    except KwireError:
        codec = None
    if codec is not None:
        annotation = codec.annotate(data)
        lines += (
            Line(note.start, data[note.start : note.end], render_path(note.path), note.type, _shown(note.value))
            for note in annotation.notes
        )
        error = annotation.error if len(data) == evidence.size_bytes else None
    read = lines[-1].position + len(lines[-1].data) if lines else 0
    for start in range(read, len(data), MAX_BYTES_A_LINE):
        lines.append(Line(start, data[start : start + MAX_BYTES_A_LINE], "", "", str(error) if error else ""))
        error = None
    if error is not None:
        lines.append(Line(len(data), b"", "", "", str(error)))
    if len(lines) > max_lines:
        rest = lines[max_lines].position
        lines[max_lines:] = [Line(rest, b"", "", "", f"{evidence.size_bytes - rest:,} more bytes")]
    elif evidence.size_bytes > len(data):
        lines.append(Line(len(data), b"", "", "", f"{evidence.size_bytes - len(data):,} more bytes"))
    return lines


def _codec(evidence: Evidence) -> plan.Codec | None:
    if evidence.message is None or evidence.version is None:
        return None
    cls = registry.get(evidence.message)
    if not evidence.is_framed:
        return plan.codec(cls.SPEC, evidence.version, cls, kernels=False)
    header: Any = RequestHeader if cls.SPEC.kind == "request" else ResponseHeader
    version = cls.SPEC.header_version(evidence.version)
    return plan.frame_codec(header.SPEC, version, header, cls.SPEC, evidence.version, cls, kernels=False)


def _shown(value: object) -> str:
    if isinstance(value, (bytes, memoryview)):
        return f"{len(value):,} bytes"
    text = str(value) if isinstance(value, (UUID, int, float)) else repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
