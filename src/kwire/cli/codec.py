"""`kwire decode` and `kwire encode`: one message between bytes and Kafka's JSON form."""

from __future__ import annotations

import json
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, add_command
from kwire.cli.options import Dialect, DialectOption, FormatOption, MessageName, Release
from kwire.cli.rows import Format, Row, write_rows
from kwire.errors import EncodeError, OptionError, counted, render_path
from kwire.pages.escaping import json_line, printable
from kwire.target_paths import write_whole

if TYPE_CHECKING:
    from kwire.plan import Annotation, Codec, Note

__all__ = ["register"]

BYTES_A_LINE = 16
LINES_A_FIELD = 16
"""Maximum lines of bytes per field; further bytes are counted only."""
VALUE_WIDTH = 60
LENGTH_BYTES = 4

# Fields alternate between these; structure (counts, sizes, markers) is dim.
COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m")
DIM, ERROR, PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[0m"
STRUCTURE = frozenset({"count", "count of tagged fields", "presence", "frame length"})

Version = Annotated[int, typer.Option("--version", metavar="N", help="API version of the bytes.")]
Input = Annotated[str, typer.Argument(metavar="FILE|-", help="Input file; - is standard input.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Accept what Kafka accepts although the protocol forbids it.")]


def register(app: typer.Typer) -> None:
    """Add `decode` and `encode` to the app."""
    add_command(
        app,
        "decode",
        decode,
        "kwire decode MetadataResponse --version 9 body.bin",
        "kwire decode ApiVersionsRequest --version 0 --header --annotate --hex '00 12 00 00 00 00 00 01 ff ff'",
        section="Protocol",
    )
    add_command(
        app,
        "encode",
        encode,
        "kwire encode MetadataRequest --version 9 request.json -o body.bin",
        "kwire encode MetadataRequest --version 9 request.json --hex",
        section="Protocol",
    )


def decode(
    name: MessageName,
    version: Version,
    file: Input = "-",
    hexadecimal: Annotated[
        str | None, typer.Option("--hex", metavar="HEX", help="Hex digits of the bytes, instead of a file.")
    ] = None,
    header: Annotated[bool, typer.Option("--header", help="Input starts with the request or response header.")] = False,
    frame: Annotated[bool, typer.Option("--frame", help="Input starts with the length prefix and the header.")] = False,
    annotate: Annotated[bool, typer.Option("--annotate", help="All bytes with their field, type and value.")] = False,
    lenient: Lenient = False,
    kafka: Release = None,
    dialect: DialectOption = Dialect.STRICT,
    format: FormatOption = Format.TABLE,
) -> int:
    """Decode a message and print it as Kafka's JSON, or byte by byte.

    Exit code 1 if the bytes do not decode; the error has the position and the field path.
    """
    cls = _message(name, version, kafka, dialect)
    data = _bytes(file, hexadecimal)
    codec, framed = _codec(cls, version, header or frame)
    shift = LENGTH_BYTES if framed and not frame else 0
    if shift:
        data = len(data).to_bytes(LENGTH_BYTES, "big") + data
    annotation = codec.annotate(data, lenient=lenient)
    if annotate:
        _write_notes(annotation, data, shift, format)
    elif annotation.error is None:
        _write_message(annotation.value, cls, version, framed, format)
    if annotation.error is None:
        return FINE
    error = annotation.error
    terminal.warn(printable(str(type(error)(error.what, max(0, error.position - shift), error.path))))
    if not framed:
        _suggest_release(cls, data, version)
    return FOUND


def _suggest_release(cls: Any, data: bytes, version: int) -> None:
    """Suggest the releases whose definition decodes the body: a few versions changed after their first release."""
    from kwire.messages import registry

    known = cls.__name__ in registry.names() and cls is registry.get(cls.__name__)
    fitting = registry.fitting(cls.__name__, data, version) if known else []
    if fitting:
        terminal.warn(f"the body fits Kafka {registry.runs(fitting)}; try --kafka-version {fitting[0]}")


def encode(
    name: MessageName,
    version: Version,
    file: Input = "-",
    into: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file; standard output by default.")
    ] = None,
    hexadecimal: Annotated[bool, typer.Option("--hex", help="Hex digits as output; always on a terminal.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Accept values of fields that the version lacks.")] = False,
    kafka: Release = None,
    dialect: DialectOption = Dialect.STRICT,
) -> int:
    """Encode a message from Kafka's JSON to bytes.

    Exit code 1 if a value does not fit its field or the version.
    """
    cls = _message(name, version, kafka, dialect)
    try:
        obj = json.loads(read_input(file))
    except ValueError as error:
        raise EncodeError(f"{file}: not JSON: {error}") from None
    data = cls.from_json(obj, version=version, lenient=lenient).encode(version=version)
    if into is not None and str(into) != "-":
        write_whole(into, data)
    elif hexadecimal or terminal.is_terminal():
        print(data.hex())
    else:
        sys.stdout.buffer.write(data)
    return FINE


# Input


def _message(name: str, version: int, kafka: str | None, dialect: Dialect) -> Any:
    """Return the class of the message. Raises OptionError for an unknown name or version."""
    if name.endswith(".json") or Path(name).is_file():
        from kwire import schema

        if not Path(name).exists():
            raise OptionError(f"{name}: no such file")
        cls: Any = schema.compile(schema.load(name, dialect=dialect.value))
    else:
        from kwire.messages import registry

        cls = registry.get(name, kafka)
    if version not in cls.VALID_VERSIONS:
        raise OptionError(f"{cls.__name__}: no version {version}; versions are {cls.VALID_VERSIONS}")
    return cls


def _codec(cls: Any, version: int, with_header: bool) -> tuple[Codec, bool]:
    """Return the plain-Python codec of the message or of its frame, and whether it is a frame."""
    from kwire import plan
    from kwire.messages import registry

    spec = cls.SPEC
    if not with_header:
        return plan.codec(spec, version, cls, kernels=False), False
    if spec.kind not in ("request", "response"):
        raise OptionError(f"{cls.__name__}: not a request or response, so it has no header")
    header: Any = registry.get("RequestHeader" if spec.kind == "request" else "ResponseHeader")
    frame = plan.frame_codec(header.SPEC, spec.header_version(version), header, spec, version, cls, kernels=False)
    return frame, True


def _bytes(file: str, hexadecimal: str | None) -> bytes:
    if hexadecimal is None:
        return read_input(file)
    if file != "-":
        raise OptionError("FILE and --hex are mutually exclusive")
    digits = hexadecimal.replace("0x", " ").replace(":", " ").replace(",", " ")
    wrong = next((c for c in digits if c not in string.hexdigits and not c.isspace()), None)
    if wrong is not None:
        raise OptionError(f"--hex: {wrong!r} is not a hex digit")
    if sum(not c.isspace() for c in digits) % 2:
        raise OptionError("--hex: an odd number of digits")
    return bytes.fromhex("".join(digits.split()))


def read_input(file: str) -> bytes:
    """Read a file, or standard input for `-`. Raises OptionError."""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise OptionError(f"{file}: cannot be read: {error.strerror}") from None


# Output


def _write_message(value: Any, cls: Any, version: int, framed: bool, format: Format) -> None:
    shown: Any
    if framed:
        header, body = value
        header_version = cls.SPEC.header_version(version)
        shown = {"header": header.to_json(version=header_version), "body": body.to_json(version=version)}
    else:
        shown = value.to_json(version=version)
    unknown = sum(_unknown_fields(value))
    print("\n".join(_indented(shown, "")) if format is Format.TABLE else json_line(shown))
    if unknown:
        terminal.warn(f"not part of Kafka's JSON: {counted(unknown, 'unknown tagged field')}; --annotate shows them")


def _unknown_fields(value: Any) -> Iterator[int]:
    """Yield the number of unknown tagged fields of each struct in value."""
    if hasattr(value, "unknown_tagged_fields"):
        yield len(value.unknown_tagged_fields)
        for name in value.__struct_fields__:
            yield from _unknown_fields(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _unknown_fields(element)


def _indented(value: Any, indent: str) -> Iterator[str]:
    """Yield lines of indented JSON, safe for a terminal; lists of numbers stay on one line."""
    if isinstance(value, dict) and value:
        brackets, items = "{}", [(f"{json_line(key)}: ", element) for key, element in value.items()]
    elif isinstance(value, list) and any(isinstance(x, (dict, list, str)) for x in value):
        brackets, items = "[]", [("", element) for element in value]
    else:
        yield json_line(value)
        return
    yield brackets[0]
    for i, (key, element) in enumerate(items):
        first, *rest = _indented(element, indent + "  ")
        comma = "," if i < len(items) - 1 else ""
        lines = [f"{indent}  {key}{first}", *rest]
        lines[-1] += comma
        yield from lines
    yield f"{indent}{brackets[1]}"


def _write_notes(annotation: Annotation, data: bytes, shift: int, format: Format) -> None:
    """Print every byte with its field; after an error, the bytes that were not read."""
    notes = [note for note in annotation.notes if note.end > shift]
    read = notes[-1].end if notes else shift
    if format is not Format.TABLE:
        write_rows((_row(note, data, shift) for note in notes), (), format)
        return
    coloured = terminal.bold("x") != "x"
    paths = [printable(render_path(note.path)) for note in notes]
    width = min(48, max(map(len, paths), default=0))
    kinds = max((len(note.type) for note in notes), default=0)
    turn = 0
    for i, (note, path) in enumerate(zip(notes, paths, strict=True)):
        turn += i > 0 and note.path != notes[i - 1].path
        is_structure = note.type in STRUCTURE or note.type.endswith("size")
        colour = DIM if is_structure else COLOURS[turn % len(COLOURS)]
        text = f"{path:<{width}}  {note.type:<{kinds}}  {_shown(note.value)}"
        for line in _dump(data, note.start, note.end, shift, text):
            print(f"{colour}{line}{PLAIN}" if coloured else line)
    if read < len(data):
        for line in _dump(data, read, len(data), shift, "not read"):
            print(f"{ERROR}{line}{PLAIN}" if coloured else line)


def _dump(data: bytes, start: int, end: int, shift: int, text: str) -> Iterator[str]:
    """Yield lines of bytes, the first with the text after it."""
    starts = range(start, end, BYTES_A_LINE)
    for line in starts[:LINES_A_FIELD]:
        part = data[line : min(end, line + BYTES_A_LINE)]
        yield f"{line - shift:08x}  {part.hex(' '):<{3 * BYTES_A_LINE - 1}}  {text}".rstrip()
        text = ""
    left = end - start - LINES_A_FIELD * BYTES_A_LINE
    if left > 0:
        yield f"{'':8}  ... {left:,} more bytes"


def _shown(value: Any) -> str:
    """Return a value on one line, cut to VALUE_WIDTH."""
    if isinstance(value, (bytes, memoryview)):
        return f"{len(value):,} bytes"
    text = json_line(str(value) if isinstance(value, UUID) else value)
    return text if len(text) <= VALUE_WIDTH else f"{text[:VALUE_WIDTH]}..."


def _row(note: Note, data: bytes, shift: int) -> Row:
    value = note.value
    if isinstance(value, (bytes, memoryview)):
        value = bytes(value).hex()
    return {
        "start": note.start - shift,
        "end": note.end - shift,
        "path": render_path(note.path),
        "type": note.type,
        "value": str(value) if isinstance(value, UUID) else value,
        "hex": data[note.start : note.end].hex(),
    }
