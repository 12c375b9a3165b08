"""`kwire schema advise`: what the integers of many messages are, and what KIP-625's encodings would cost or save."""

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
from kwire.cli.command import FINE
from kwire.cli.rows import Column, Format, write_rows
from kwire.cli.schema.definitions import message_of
from kwire.cli.schema.options import Dialect, DialectOption, Name, Release, Shape
from kwire.cli.schema.size import cost_of
from kwire.errors import Malformed, OptionError
from kwire.wire.integer_encoding import FORMS

__all__ = ["advise"]

Bodies = Annotated[
    list[Path],
    typer.Argument(
        metavar="BODIES...",
        help='Files of one body each, JSON lines ({"b64": ...}; .jsonl, .jsonl.gz) or captures (.pcap, .pcapng). '
        "What of those is of other messages or versions is passed over.",
    ),
]
Version = Annotated[int, typer.Option("--version", help="The version that the bodies are in.")]
Page = Annotated[Path | None, typer.Option("--output", "-o", help="HTML file for the same as charts.")]

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
    name: Name,
    version: Version,
    bodies: Bodies,
    into: Page = None,
    kafka: Release = None,
    dialect: DialectOption = Dialect.STRICT,
    shape: Shape = Format.TABLE,
) -> int:
    """Count the integers of messages, field by field, and what each encoding of KIP-625 would cost or save.

    The best encoding is the one of the field's own width that takes fewest bytes: a narrower one would save as much and
    refuse numbers that these messages happen not to hold.
    """
    from kwire.plan.encoding_advice import advice_row
    from kwire.plan.integer_columns import count_fields, integer_fields

    message = message_of(name, kafka, dialect)
    if version not in message.valid:
        raise OptionError(f"{message.name} has versions {message.valid}, not {version}")
    found = [body for path in bodies for body in _bodies(path, message.name, version)]
    if not found:
        raise OptionError(f"no bodies of {message.name} version {version} in {', '.join(map(str, bodies))}")
    fields = integer_fields(message, version)
    counts = count_fields(message, version, fields, found)
    rows = [advice_row(each, version, counts[each.path]) for each in fields if each.path in counts]
    write_rows(rows, COLUMNS, shape)
    total = sum(map(len, found))
    saved = sum(row["saved_bytes"] for row in rows)
    if shape is Format.TABLE:
        share = f"{saved / total:.1%}" if total else "nothing"
        terminal.warn(f"{len(found)} bodies of {total} bytes; the best encodings save {saved} of them ({share})")
        if len(counts) < len(fields):
            left = ", ".join(each.path for each in fields if each.path not in counts)
            terminal.warn(f"not counted, as they lie in more than one struct that may be null: {left}")
    if into is not None:
        from kwire.pages.encoding_report import render_encodings

        into.write_text(
            render_encodings(rows, title=f"{message.name} version {version}", count=len(found), size_bytes=total),
            encoding="utf-8",
        )
    return FINE


def _bodies(path: Path, name: str, version: int) -> Iterator[bytes]:
    """The bodies of a file."""
    if path.name.endswith((".pcap", ".pcapng")):
        yield from _captured(path, name, version)
        return
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        yield data
        return
    if path.name.endswith(".gz"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise OptionError(f"{path} is not gzip: {error}") from None
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if entry.get("message", name) != name or entry.get("version", version) != version:
                continue
            yield base64.b64decode(entry["b64"], validate=True)
        except (ValueError, TypeError, AttributeError, KeyError, binascii.Error, RecursionError):
            raise Malformed(f'{path}, line {number}: is no JSON object with "b64"', 0) from None


def _captured(path: Path, name: str, version: int) -> Iterator[bytes]:
    """The bodies in a packet capture."""
    from kwire.capture import read_capture
    from kwire.capture.bodies import bodies_of

    if not path.is_file():
        raise OptionError(f"{path}: no such file")
    for exchange in read_capture(path):
        yield from (
            body for cls, of_version, body in bodies_of(exchange) if (cls.__name__, of_version) == (name, version)
        )
