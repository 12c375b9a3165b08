"""`kwire decode` and `kwire encode`: one message between bytes and Kafka's JSON form.

kwire decode MetadataResponse --version 9 body.bin
kwire decode MetadataRequest --version 9 --header --annotate --hex "00 03 00 09 ..."
kwire encode MetadataRequest --version 9 < request.json > body.bin
"""

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
from kwire.cli.rows import Format, Row, write_rows
from kwire.errors import EncodeError, OptionError, render_path
from kwire.pages.escaping import json_line, printable

if TYPE_CHECKING:
    from kwire.plan import Annotation, Codec, Note

__all__ = ["register"]

BYTES_A_LINE = 16
LINES_A_FIELD = 16
"""Lines of bytes that one field may fill before the rest is counted instead of shown."""
VALUE_WIDTH = 60
LENGTH_BYTES = 4

# Fields take turns in these; what is structure (counts, sizes, markers) is dim.
COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m")
DIM, ERROR, PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[0m"
STRUCTURE = frozenset({"count", "count of tagged fields", "presence", "frame length"})

Name = Annotated[str, typer.Argument(metavar="NAME", help="A message of Kafka's, or a definition file.")]
Version = Annotated[int, typer.Option("--version", help="The version that the bytes are in.")]
Input = Annotated[str, typer.Argument(metavar="FILE|-", help="Where to read; - is standard input.")]
Release = Annotated[str | None, typer.Option("--kafka", help="As this Kafka release has it, such as 3.9.1.")]
Shape = Annotated[Format, typer.Option("--format", help="table (for people), json or jsonl.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Take what Kafka takes and the protocol forbids.")]


def register(app: typer.Typer) -> None:
    """Add `decode` and `encode` to the app."""
    add_command(app, "decode", decode)
    add_command(app, "encode", encode)


def decode(
    name: Name,
    version: Version,
    file: Input = "-",
    hexadecimal: Annotated[str | None, typer.Option("--hex", metavar="HEX", help="The bytes themselves.")] = None,
    header: Annotated[
        bool, typer.Option("--header", help="A request's or response's header stands before it.")
    ] = False,
    frame: Annotated[bool, typer.Option("--frame", help="As --header, and the length before that.")] = False,
    annotate: Annotated[bool, typer.Option("--annotate", help="Show every byte with field, type and value.")] = False,
    lenient: Lenient = False,
    kafka: Release = None,
    shape: Shape = Format.TABLE,
) -> int:
    """Show a message as Kafka's JSON, or byte by byte. Exit code 1 if it cannot be read."""
    cls = _message(name, version, kafka)
    data = _bytes(file, hexadecimal)
    codec, framed = _codec(cls, version, header or frame)
    shift = LENGTH_BYTES if framed and not frame else 0
    if shift:
        data = len(data).to_bytes(LENGTH_BYTES, "big") + data
    found = codec.annotate(data, lenient=lenient)
    if annotate:
        _write_notes(found, data, shift, shape)
    elif found.error is None:
        _write_message(found.value, cls, version, framed, shape)
    if found.error is None:
        return FINE
    error = found.error
    terminal.warn(printable(str(type(error)(error.what, max(0, error.position - shift), error.path))))
    if not framed:
        _say_which_release_fits(cls, data, version)
    return FOUND


def _say_which_release_fits(cls: Any, data: bytes, version: int) -> None:
    """A few versions changed after their first release: name the releases whose definition the body fits."""
    from kwire.messages import registry

    known = cls.__name__ in registry.names() and cls is registry.get(cls.__name__)
    fitting = registry.fitting(cls.__name__, data, version) if known else []
    if fitting:
        terminal.warn(f"It fits Kafka {registry.runs(fitting)}: try --kafka {fitting[0]}")


def encode(
    name: Name,
    version: Version,
    file: Input = "-",
    into: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; else standard output.")] = None,
    hexadecimal: Annotated[bool, typer.Option("--hex", help="Write hex digits; always so on a terminal.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Take values of fields that the version lacks.")] = False,
    kafka: Release = None,
) -> int:
    """Write the bytes of a message given as Kafka's JSON. Exit code 1 if the message does not fit the version."""
    cls = _message(name, version, kafka)
    try:
        obj = json.loads(read_input(file))
    except ValueError as error:
        raise EncodeError(f"{file} is not JSON: {error}") from None
    data = cls.from_json(obj, version=version, lenient=lenient).encode(version=version)
    if into is not None:
        into.write_bytes(data)
    elif hexadecimal or terminal.is_terminal():
        print(data.hex())
    else:
        sys.stdout.buffer.write(data)
    return FINE


# What goes in


def _message(name: str, version: int, kafka: str | None) -> Any:
    """The class of the message; its version checked, which is the user's to get right."""
    if name.endswith(".json") or Path(name).is_file():
        from kwire import schema

        if not Path(name).exists():
            raise OptionError(f"{name} is not there")
        cls: Any = schema.compile(schema.load(name))
    else:
        from kwire.messages import registry

        cls = registry.get(name, kafka)
    if version not in cls.VALID_VERSIONS:
        raise OptionError(f"{cls.__name__} has versions {cls.VALID_VERSIONS}, not {version}")
    return cls


def _codec(cls: Any, version: int, with_header: bool) -> tuple[Codec, bool]:
    """The walker's codec of the message, or of its frame; and whether it is that."""
    from kwire import plan
    from kwire.messages import registry

    spec = cls.SPEC
    if not with_header:
        return plan.codec(spec, version, cls, kernels=False), False
    if spec.kind not in ("request", "response"):
        raise OptionError(f"{cls.__name__} is no request or response, so it has no header")
    header: Any = registry.get("RequestHeader" if spec.kind == "request" else "ResponseHeader")
    frame = plan.frame_codec(header.SPEC, spec.header_version(version), header, spec, version, cls, kernels=False)
    return frame, True


def _bytes(file: str, hexadecimal: str | None) -> bytes:
    if hexadecimal is None:
        return read_input(file)
    if file != "-":
        raise OptionError("give a file or --hex, not both")
    digits = hexadecimal.replace("0x", " ").replace(":", " ").replace(",", " ")
    wrong = next((c for c in digits if c not in string.hexdigits and not c.isspace()), None)
    if wrong is not None:
        raise OptionError(f"--hex: {wrong!r} is no hex digit")
    if sum(not c.isspace() for c in digits) % 2:
        raise OptionError("--hex: an odd number of digits")
    return bytes.fromhex("".join(digits.split()))


def read_input(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise OptionError(f"{file}: {error.strerror}") from None


# What comes out


def _write_message(value: Any, cls: Any, version: int, framed: bool, shape: Format) -> None:
    shown: Any
    if framed:
        header, body = value
        header_version = cls.SPEC.header_version(version)
        shown = {"header": header.to_json(version=header_version), "body": body.to_json(version=version)}
    else:
        shown = value.to_json(version=version)
    unknown = sum(_unknown_fields(value))
    print("\n".join(_indented(shown, "")) if shape is Format.TABLE else json_line(shown))
    if unknown:
        terminal.warn(f"{unknown} unknown tagged fields are not part of Kafka's JSON; --annotate shows them")


def _unknown_fields(value: Any) -> Iterator[int]:
    """How many unknown tagged fields each struct in value has."""
    if hasattr(value, "unknown_tagged_fields"):
        yield len(value.unknown_tagged_fields)
        for name in value.__struct_fields__:
            yield from _unknown_fields(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _unknown_fields(element)


def _indented(value: Any, indent: str) -> Iterator[str]:
    """JSON over several lines, with what a terminal acts on escaped; short lists of numbers on one."""
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


def _write_notes(found: Annotation, data: bytes, shift: int, shape: Format) -> None:
    """Every byte with its field; behind an error, the bytes that were not read."""
    notes = [note for note in found.notes if note.end > shift]
    read = notes[-1].end if notes else shift
    if shape is not Format.TABLE:
        write_rows((_row(note, data, shift) for note in notes), (), shape)
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
    """Lines of bytes, the first with the text behind it."""
    starts = range(start, end, BYTES_A_LINE)
    for line in starts[:LINES_A_FIELD]:
        part = data[line : min(end, line + BYTES_A_LINE)]
        yield f"{line - shift:08x}  {part.hex(' '):<{3 * BYTES_A_LINE - 1}}  {text}".rstrip()
        text = ""
    left = end - start - LINES_A_FIELD * BYTES_A_LINE
    if left > 0:
        yield f"{'':8}  ... {left:,} more bytes"


def _shown(value: Any) -> str:
    """A value on one line, cut where it gets long."""
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
