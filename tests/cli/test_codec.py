"""`kwire decode` and `kwire encode`."""

from __future__ import annotations

import io
import json
import math
import os
import pty
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import golden
from tests.plan.definitions import FooResponse

from kwire.messages import registry

Call = Callable[..., Any]
FOO = bytes.fromhex("02000701000303686901000404616263")  # KIP-482's example: Bar = "hi", UserAgent = "abc"


@pytest.fixture
def foo(tmp_path: Path) -> Path:
    path = tmp_path / "FooResponse.json"
    path.write_text(FooResponse.DEFINITION)
    return path


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def test_decode_shows_kafkas_json(kwire: Call) -> None:
    line = next(
        line
        for line in golden.lines("messages-3.9.1.jsonl.gz")
        if line["case"] == "full" and line["message"] == "FetchRequest"
    )
    wire = golden.unpack(line["b64"]) or b""
    result = kwire("decode", "FetchRequest", "--version", str(line["version"]), "--hex", wire.hex())
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == line["json"]
    assert result.out.count("\n") > 5
    compact = kwire(
        "decode", "FetchRequest", "--version", str(line["version"]), "--hex", wire.hex(), "--format", "json"
    )
    assert json.loads(compact.out) == line["json"]
    assert compact.out.count("\n") == 1


def test_an_undecodable_body_suggests_another_release(kwire: Call) -> None:
    """Version 0 of this response has another form in Kafka 4.2; these bytes are Kafka 4.0.2's own."""
    body = ("ReadShareGroupStateSummaryResponse", "--version", "0", "--hex")
    body = (*body, "02000000000000000100000000000000020200000004000000000000050000000000000258000000")
    result = kwire("decode", *body)
    assert result.code == 1
    assert result.err.endswith("the body fits Kafka 3.9.1 to 4.0.2; try --kafka-version 4.0.2\n")
    assert kwire("decode", *body, "--kafka-version", "4.0.2").code == 0


@pytest.mark.parametrize("text", ["0003 0009", "0x0003,0x0009", "00:03:00:09", " 00\n03 00 09 "])
def test_hex_input_accepts_the_formats_of_common_tools(kwire: Call, text: str) -> None:
    result = kwire("decode", "RequestHeader", "--version", "1", "--hex", f"{text} 00000001 ffff", "--format", "json")
    assert json.loads(result.out)["requestApiVersion"] == 9


def test_files_and_standard_input_are_read(
    kwire: Call, foo: Path, tmp_path: Path, stdin: Callable[[bytes], None]
) -> None:
    body = tmp_path / "body"
    body.write_bytes(FOO)
    expected = {"userAgent": "abc", "foos": [{"bar": "hi", "baz": 7}]}
    assert json.loads(kwire("decode", foo, "--version", "9", body).out) == expected
    for arguments in ((), ("-",)):
        stdin(FOO)
        assert json.loads(kwire("decode", foo, "--version", "9", *arguments).out) == expected


def test_annotate_prints_every_byte_with_its_field(kwire: Call, foo: Path) -> None:
    result = kwire("decode", foo, "--version", "9", "--annotate", "--hex", FOO.hex())
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "00000000  02                                               foos         count                   1",
        "00000001  00 07                                            foos[0].baz  int16                   7",
        "00000003  01                                               foos[0]      count of tagged fields  1",
        "00000004  00 03                                            foos[0]      tag 0, size             3",
        '00000006  03 68 69                                         foos[0].bar  string                  "hi"',
        "00000009  01                                                            count of tagged fields  1",
        "0000000a  00 04                                                         tag 0, size             4",
        '0000000c  04 61 62 63                                      user_agent   string                  "abc"',
    ]


def test_annotate_prints_rows_as_json(kwire: Call, foo: Path) -> None:
    result = kwire("decode", foo, "--version", "9", "--annotate", "--format", "jsonl", "--hex", FOO.hex())
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert rows[4] == {"start": 6, "end": 9, "path": "foos[0].bar", "type": "string", "value": "hi", "hex": "036869"}
    assert "".join(row["hex"] for row in rows) == FOO.hex()


def test_an_error_follows_the_decoded_part(kwire: Call, foo: Path) -> None:
    for cut in range(len(FOO)):
        result = kwire("decode", foo, "--version", "9", "--annotate", "--hex", FOO[:cut].hex())
        assert result.code == 1
        assert result.err.startswith("kwire: ")
        assert f"at byte {cut}" in result.err or "at byte" in result.err
        shown = "".join(line[10:57].replace(" ", "") for line in result.out.splitlines())
        assert shown == FOO[:cut].hex()
    result = kwire("decode", foo, "--version", "9", "--annotate", "--hex", FOO.hex() + "ffee")
    assert result.code == 1
    assert result.out.splitlines()[-1] == "00000010  ff ee                                            not read"
    assert "2 bytes remaining after the message, at byte 16" in result.err
    plain = kwire("decode", foo, "--version", "9", "--hex", FOO.hex() + "ff")
    assert (plain.code, plain.out) == (1, "")


def test_headers_and_frames_are_decoded(kwire: Call) -> None:
    header: Any = registry.get("RequestHeader")(
        request_api_key=3, request_api_version=9, correlation_id=7, client_id="me"
    )
    data = header.encode(version=2) + registry.get("MetadataRequest")().encode(version=9)
    framed = len(data).to_bytes(4, "big") + data
    for option, given in (("--header", data), ("--frame", framed)):
        arguments = ("decode", "MetadataRequest", "--version", "9", option, "--hex")
        shown = json.loads(kwire(*arguments, given.hex()).out)
        assert shown["header"]["clientId"] == "me"
        assert shown["body"]["topics"] == []
        first = kwire(*arguments, given.hex(), "--annotate").out.splitlines()[0]
        assert first.startswith("00000000  ")
        assert ("frame length" in first) == (option == "--frame")
        broken = kwire(*arguments, given[:-1].hex() if option == "--header" else framed[:-1].hex())
        assert broken.code == 1
        assert f"at byte {len(given) - 1}" in broken.err or option == "--frame"
    assert kwire("decode", "RequestHeader", "--version", "2", "--header", "--hex", "00").code == 2


def test_encode_inverts_decode(kwire: Call, foo: Path, tmp_path: Path, stdin: Callable[[bytes], None]) -> None:
    text, out = tmp_path / "foo.json", tmp_path / "foo.bin"
    text.write_text('{"foos": [{"baz": 7, "bar": "hi"}], "userAgent": "abc"}')
    assert kwire("encode", foo, "--version", "9", text, "-o", out).code == 0
    assert out.read_bytes() == FOO
    stdin(text.read_bytes())
    assert kwire("encode", foo, "--version", "9", "--hex").out.strip() == FOO.hex()


def test_encode_writes_bytes_into_a_pipe(foo: Path) -> None:
    command = [sys.executable, "-m", "kwire.cli", "encode", str(foo), "--version", "9"]
    text = b'{"foos": [{"baz": 7, "bar": "hi"}], "userAgent": "abc"}'
    for output in ([], ["-o", "-"]):
        done = subprocess.run([*command, *output], input=text, capture_output=True, check=True)
        assert done.stdout == FOO


@pytest.mark.parametrize(
    ("text", "version", "problem"),
    [
        ("{", 9, "not JSON"),
        ('{"foos": []}', 8, ""),
        ("{}", 9, "foos"),
        ('{"foos": [{"baz": 99999}]}', 9, "baz"),
        ('{"foos": [{"baz": 1, "bar": "x"}]}', 8, "bar"),
        ("[]", 9, ""),
    ],
)
def test_encoding_errors_give_the_reason(
    kwire: Call, foo: Path, stdin: Callable[[bytes], None], text: str, version: int, problem: str
) -> None:
    stdin(text.encode())
    result = kwire("encode", foo, "--version", str(version), "--hex")
    assert result.code == (0 if text == '{"foos": []}' else 1)
    assert problem in result.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("NoSuchMessage", "--version", "1", "--hex", "00"), "NoSuchMessage"),
        (("MetadataRequset", "--version", "1", "--hex", "00"), "MetadataRequest"),
        (("MetadataRequest", "--version", "99", "--hex", "00"), "no version 99"),
        (("MetadataRequest", "--version", "9", "--hex", "0g"), "is not a hex digit"),
        (("MetadataRequest", "--version", "9", "--hex", "000"), "odd number"),
        (("MetadataRequest", "--version", "9", "there", "--hex", "00"), "mutually exclusive"),
        (("MetadataRequest", "--version", "9", "/nowhere/at/all"), "No such file"),
        (("missing.json", "--version", "9", "--hex", "00"), "missing.json"),
        (("MetadataRequest", "--version", "9", "--kafka-version", "1.0", "--hex", "00"), "1.0"),
    ],
)
def test_wrong_usage_has_exit_code_2(kwire: Call, arguments: tuple[str, ...], problem: str) -> None:
    result = kwire("decode", *arguments)
    assert result.code == 2
    assert problem in result.err


def test_lenient_accepts_what_kafka_accepts(kwire: Call, foo: Path) -> None:
    twice = "02 0007 00 02 00 02 0161 00 02 0162".replace("0161", "0261").replace("0162", "0262")
    assert kwire("decode", foo, "--version", "9", "--hex", twice).code == 1
    taken = kwire("decode", foo, "--version", "9", "--lenient", "--hex", twice)
    assert (taken.code, json.loads(taken.out)["userAgent"]) == (0, "b")


def test_unknown_tagged_fields_are_mentioned(kwire: Call, foo: Path) -> None:
    result = kwire("decode", foo, "--version", "9", "--hex", "02 0007 01 05 01 ff 01 06 00")
    assert "2 unknown tagged fields" in result.err
    assert (
        "unknown_tagged_fields[0]"
        in kwire("decode", foo, "--version", "9", "--annotate", "--hex", "01 01 06 01 ff").out
    )


def test_control_characters_in_messages_are_escaped(kwire: Call, foo: Path) -> None:
    evil = "\x1b[31m\u202e\x7f\u009b"
    wire = FooResponse(user_agent=evil, foos=[]).encode(version=9).hex()
    for arguments in ((), ("--annotate",), ("--format", "json"), ("--annotate", "--format", "json")):
        out = kwire("decode", foo, "--version", "9", "--hex", wire, *arguments).out
        assert not set(evil) & set(out) - set("[31m")
    assert json.loads(kwire("decode", foo, "--version", "9", "--hex", wire).out)["userAgent"] == evil


def test_long_fields_are_truncated_with_their_length(kwire: Call) -> None:
    cls: Any = registry.get("ProduceRequest")
    data = cls.PartitionProduceData(index=0, records=bytes(5000))
    wire = cls(topic_data=[cls.TopicProduceData(name="t", partition_data=[data])]).encode(version=9)
    out = kwire("decode", "ProduceRequest", "--version", "9", "--annotate", "--hex", wire.hex()).out
    assert "... 4,746 more bytes" in out
    assert "records" in out
    assert "5,000 bytes" in out
    assert len(out.splitlines()) < 40


def test_colours_are_for_terminals_only(foo: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "kwire.cli",
        "decode",
        str(foo),
        "--version",
        "9",
        "--annotate",
        "--hex",
        FOO.hex(),
    ]
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    piped = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert "\x1b" not in piped
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed: Linux's way to say so
                break
            if not part:
                break
            shown += part
        assert process.wait() == 0
    os.close(ours)
    assert b"\x1b[36m" in shown
    assert b"\x1b[0m" in shown


def test_numbers_that_json_lacks_are_printed_as_kafka_does_and_read(kwire: Call, tmp_path: Path) -> None:
    definition = {
        "type": "data",
        "name": "Measured",
        "validVersions": "0",
        "flexibleVersions": "none",
        "fields": [{"name": f"V{i}", "type": "float64", "versions": "0+"} for i in range(3)],
    }
    path = tmp_path / "Measured.json"
    path.write_text(json.dumps(definition))
    wire = struct.pack(">3d", math.nan, math.inf, -math.inf)
    command = (str(path), "--version", "0", "--hex")
    shown = kwire("decode", *command, wire.hex(), "--format", "json")
    assert (shown.code, shown.out) == (0, '{"v0":"NaN","v1":"Infinity","v2":"-Infinity"}\n')
    for text in (shown.out, '{"v0":NaN,"v1":Infinity,"v2":-Infinity}', kwire("decode", *command, wire.hex()).out):
        given = tmp_path / "given.json"
        given.write_text(text)
        assert kwire("encode", str(path), str(given), "--version", "0", "--hex").out.strip() == wire.hex()
    notes = kwire("decode", *command, wire.hex(), "--annotate", "--format", "json").out
    read = json.loads(notes, parse_constant=pytest.fail)
    assert [note["value"] for note in read] == ["NaN", "Infinity", "-Infinity"]


def test_definitions_of_other_dialects_are_read(kwire: Call, tmp_path: Path) -> None:
    """The name of the encoding is that of KIP-625's own example."""
    fields = [{"name": "N", "type": "int32", "encoding": {"0+": "unsigned32"}, "versions": "0+"}]
    definition = {"type": "data", "name": "Short", "validVersions": "0", "flexibleVersions": "0+", "fields": fields}
    path = tmp_path / "Short.json"
    path.write_text(json.dumps(definition))
    given = tmp_path / "given.json"
    given.write_text('{"n": 300}')
    for command in (("decode", str(path), "--hex", "00"), ("encode", str(path), str(given), "--hex")):
        refused = kwire(*command, "--version", "0")
        assert (refused.code, "unsigned32" in refused.err) == (1, True)
    dialect = ("--version", "0", "--dialect", "kip")
    written = kwire("encode", str(path), str(given), "--hex", *dialect)
    assert (written.code, written.err) == (0, "")
    assert json.loads(kwire("decode", str(path), "--hex", written.out.strip(), *dialect).out) == {"n": 300}
