"""The messages and cases of Protobuf's conformance suite (tests/data/public), with google.protobuf as the judge."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError as GoogleError
from tests import golden
from tests.compiled import needs_compiled_code
from tests.sampling import mostly_slow
from tests.schemas.protobuf.conformance import Case, cases
from tests.schemas.protobuf.test_protobuf import expected, text

from kwire import native
from kwire.schemas.protobuf import Decoder, Encoder, Message, parse
from kwire.schemas.protobuf.columns import _plain
from kwire.schemas.protobuf.types import build_node

LINES = list(golden.lines("public/protobuf-messages.jsonl.gz"))
MESSAGES = {
    "src/google/protobuf/test_messages_proto2.proto": "protobuf_test_messages.proto2.TestAllTypesProto2",
    "src/google/protobuf/test_messages_proto3.proto": "protobuf_test_messages.proto3.TestAllTypesProto3",
    "conformance/test_protos/test_messages_edition2023.proto": (
        "protobuf_test_messages.editions.TestAllTypesEdition2023"
    ),
}
TEXTS = {line["file"]: line["text"] for line in LINES if "file" in line}
DIFFERENCES = {
    "not UTF-8": "proto2 lets a string be any bytes; Arrow's are UTF-8, so such a value is bad",
    "recursive_message: the inner message ends": "a message inside of itself stays bytes, which are not read",
    "unknown field": "upb drops entries of maps with unknown fields; the library in plain Python keeps them, as kwire",
    "foreign_enum": "an enum of proto2 is closed: others take an unknown number for an unknown field; it is text here",
}
"""Words in the names of cases that kwire decides otherwise than google.protobuf with upb; the first that fits is it."""


@pytest.fixture(scope="module")
def pool() -> descriptor_pool.DescriptorPool:
    made = descriptor_pool.DescriptorPool()
    (packed,) = (line["descriptors"] for line in LINES if "descriptors" in line)
    for each in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(packed)).file:
        made.Add(each)
    return made


def rows_of(array: pa.Array) -> list[Any]:
    rows: list[Any] = array.cast(_plain(array.type)).to_pylist(maps_as_pydicts="lossy")
    return rows


def decode(message: Message, values: list[bytes]) -> tuple[pa.Array, set[int]]:
    zeros = np.zeros(len(values), np.int64)
    decoded = Decoder(message).decode(pa.array(values, pa.binary()), zeros, zeros.astype(np.int32))
    decoded.array.validate(full=True)
    return decoded.array, {error.row for error in decoded.errors}


@pytest.mark.parametrize("path", [pytest.param("kernel", marks=needs_compiled_code), "plain"])
@pytest.mark.parametrize("file", mostly_slow([*MESSAGES]))
def test_cases_are_read_as_google_protobuf_reads_them(
    file: str, path: str, pool: descriptor_pool.DescriptorPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is the same value or refused by both, and what the suite wants refused is; the differences exist."""
    if path == "plain":
        monkeypatch.setattr(native, "LEVEL", None)
    ours = parse(TEXTS[file]).types[MESSAGES[file]]
    assert isinstance(ours, Message)
    theirs = message_factory.GetMessageClass(pool.FindMessageTypeByName(MESSAGES[file]))
    node, drawn = build_node(ours), list(cases(theirs.DESCRIPTOR))
    array, bad = decode(ours, [case.data for case in drawn])
    others, counts = set[str](), Counter[str]()
    for row, (case, found) in enumerate(zip(drawn, rows_of(array), strict=True)):
        try:
            wanted = text(expected(theirs.FromString(case.data), node))
        except (GoogleError, UnicodeDecodeError):
            wanted = "refused"
        assert not case.must_fail or wanted == "refused", case
        same = wanted == ("refused" if row in bad else text(found))
        difference = next((words for words in DIFFERENCES if words in case.name), None)
        assert same or difference is not None, (case, wanted, found)
        if not same and difference is not None:
            others.add(difference)
        counts["refused" if row in bad else "read"] += 1
    assert others == ({*DIFFERENCES} if "proto2" in file else {*DIFFERENCES} - {"not UTF-8", "foreign_enum"})
    assert counts["read"] > 1000
    assert counts["refused"] > 500


@pytest.mark.parametrize("file", mostly_slow([*MESSAGES]))
def test_what_is_written_is_what_google_protobuf_reads(file: str, pool: descriptor_pool.DescriptorPool) -> None:
    ours = parse(TEXTS[file]).types[MESSAGES[file]]
    assert isinstance(ours, Message)
    theirs = message_factory.GetMessageClass(pool.FindMessageTypeByName(MESSAGES[file]))
    node = build_node(ours)
    drawn: list[Case] = [case for case in cases(theirs.DESCRIPTOR) if not case.must_fail]
    array, bad = decode(ours, [case.data for case in drawn])
    encoded = Encoder(ours, array.type).encode(array, b"")
    assert not encoded.errors
    for row, (case, found, data) in enumerate(zip(drawn, rows_of(array), encoded.array.to_pylist(), strict=True)):
        if row not in bad and "foreign_enum" not in case.name:
            assert text(expected(theirs.FromString(data), node)) == text(found), case
