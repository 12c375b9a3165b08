"""`kwire schema advise`: the integers in many messages, and their cost in each encoding of KIP-625."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import terminal
from kwire.cli.codec import read_input
from kwire.cli.command import FINE
from kwire.cli.options import Dialect, DialectOption, FormatOption, MessageName, Release
from kwire.cli.rows import Column, Format, write_rows
from kwire.cli.schema.definitions import message_of
from kwire.cli.schema.size import cost_of
from kwire.errors import Malformed, OptionError, counted
from kwire.target_paths import write_whole
from kwire.wire.integer_encoding import FORMS

__all__ = ["advise"]

Bodies = Annotated[
    list[Path],
    typer.Argument(
        metavar="BODY",
        help='Files of one body each, JSON lines ({"b64": ...}; .jsonl, .jsonl.gz) or captures (.pcap, .pcapng). '
        "Other messages and versions in them are ignored.",
    ),
]
Version = Annotated[int, typer.Option("--version", metavar="N", help="API version of the bodies.")]
Page = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="HTML page with charts.")]

COLUMNS = (
    Column(key="path", heading="FIELD"),
    Column(key="type", heading="TYPE"),
    Column(key="values", heading="VALUES", right=True),
    Column(key="smallest", heading="FROM", right=True),
    Column(key="largest", heading="TO", right=True),
    Column(key="negative", heading="NEGATIVE", right=True),
    Column(key="bytes", heading="NOW", right=True),
    *(Column(heading=form.upper(), right=True, pick=cost_of(form)) for form in FORMS),
    Column(key="best", heading="BEST"),
    Column(key="saved_bytes", heading="SAVES", right=True),
)


def advise(
    name: MessageName,
    version: Version,
    bodies: Bodies,
    into: Page = None,
    kafka: Release = None,
    dialect: DialectOption = Dialect.STRICT,
    format: FormatOption = Format.TABLE,
) -> int:
    """Measure the integer fields of messages and what each encoding of KIP-625 would save.

    The best encoding is the smallest of the field's own width. A narrower one would save the same, but reject
    values that do not occur in these messages.
    """
    from kwire.plan.encoding_advice import advice_row
    from kwire.plan.integer_columns import count_fields, integer_fields

    message = message_of(name, kafka, dialect, version)
    contents = [body for path in bodies for body in _bodies(path, message.name, version)]
    if not contents:
        raise OptionError(f"{', '.join(map(str, bodies))}: no bodies of {message.name} version {version}")
    fields = integer_fields(message, version)
    counts = count_fields(message, version, fields, contents)
    rows = [advice_row(each, version, counts[each.path]) for each in fields]
    write_rows(rows, COLUMNS, format)
    total = sum(map(len, contents))
    saved = sum(row["saved_bytes"] for row in rows)
    if format is Format.TABLE:
        share = f"{saved / total:.1%}" if total else "nothing"
        of_bodies = f"{counted(len(contents), 'body', 'bodies')} of {counted(total, 'byte')}"
        terminal.warn(f"{of_bodies}; the best encodings save {counted(saved, 'byte')} ({share})")
        if len(counts) < len(fields):
            left = ", ".join(each.path for each in fields if each.path not in counts)
            terminal.warn(f"not counted, because they are inside several nullable structs: {left}")
    if into is not None:
        from kwire.pages.encoding_report import render_encodings

        title = f"{message.name} version {version}"
        write_whole(into, render_encodings(rows, title=title, count=len(contents), size_bytes=total).encode())
    return FINE


def _bodies(path: Path, name: str, version: int) -> Iterator[bytes]:
    """Yield the bodies of a file. Raises OptionError, Malformed."""
    if path.name.endswith((".pcap", ".pcapng")):
        yield from _captured(path, name, version)
        return
    data = read_input(str(path))
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        yield data
        return
    if path.name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise OptionError(f"{path}: not gzip: {error}") from None
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if entry.get("message", name) != name or entry.get("version", version) != version:
                continue
            yield base64.b64decode(entry["b64"], validate=True)
        except (ValueError, TypeError, AttributeError, KeyError, binascii.Error, RecursionError):
            raise Malformed(f'{path}, line {number}: not a JSON object with "b64"', 0) from None


def _captured(path: Path, name: str, version: int) -> Iterator[bytes]:
    """Yield the bodies of a packet capture."""
    from kwire.capture import read_capture
    from kwire.capture.bodies import bodies_of

    if not path.is_file():
        raise OptionError(f"{path}: no such file")
    for exchange in read_capture(path):
        yield from (
            body for cls, of_version, body in bodies_of(exchange) if (cls.__name__, of_version) == (name, version)
        )
