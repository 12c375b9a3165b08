"""Values that Confluent's serializers wrote, with the schemas that they registered in Apicurio Registry."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import InvalidSchema
from kwire.schemas import Registry, decode_arrow, encode_arrow
from kwire.schemas.protobuf import Decoder, Message, parse

DATA = Path(__file__).parents[1] / "data"
GOLDEN = json.loads((DATA / "confluent-values.json").read_text("utf-8"))
MESSAGES = {"lines": "Line", "parts": "Part"}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder = tmp_path_factory.mktemp("registry")
    (folder / "all.json").write_text(json.dumps(GOLDEN["schemas"]))
    return Registry(folder)


def plain(value: Any) -> Any:
    """Return a value as the file has it."""
    match value:
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case decimal.Decimal():
            return str(value)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
    return value


@pytest.mark.parametrize("topic", ["orders", "lines", "parts", "notes"])
def test_values_of_confluents_serializers_are_read_and_written_alike(registry: Registry, topic: str) -> None:
    rows = [row for row in GOLDEN["values"] if row["topic"] == topic]
    written = pa.array([bytes.fromhex(row["hex"]) for row in rows], pa.binary())
    decoded = decode_arrow(written, registry, topic=topic, message=MESSAGES.get(topic))
    assert plain(decoded.to_pylist()) == [row["value"] for row in rows]
    if topic == "orders":  # those of the older schema are read as the latest one
        newest = decode_arrow(written.slice(2), registry, topic=topic)
        assert encode_arrow(newest, registry, topic=topic).to_pylist() == written.slice(2).to_pylist()
    elif topic != "notes":  # JSON has other white space
        assert encode_arrow(decoded, registry, topic=topic, message=MESSAGES[topic]).to_pylist() == written.to_pylist()


def test_a_serialized_descriptor_gives_the_type_of_its_file() -> None:
    folder = DATA / "protobuf"
    texts = {"common.proto": (folder / "common.proto").read_text("utf-8")}
    from_text = parse((folder / "order.proto").read_text("utf-8"), texts)
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString((folder / "order.desc").read_bytes()).file
    encoded = {file.name: base64.b64encode(file.SerializeToString()).decode() for file in files}
    from_descriptor = parse(encoded.pop("order.proto"), encoded)
    assert from_text.types.keys() == from_descriptor.types.keys()
    for name, one in from_text.types.items():
        other = from_descriptor.types[name]
        if isinstance(one, Message):
            assert isinstance(other, Message)
            assert Decoder(one).type == Decoder(other).type
            assert facts(one) == facts(other)


def facts(message: Message) -> list[tuple[object, ...]]:
    fields = sorted(message.fields, key=lambda field: field.number)
    return [(f.name, f.number, f.type, f.shape, f.has_presence, f.packed, f.oneof) for f in fields]


@pytest.mark.parametrize("text", ["AAAA", "abc", base64.b64encode(b"\x0a\x7f").decode()])
def test_invalid_descriptors_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match=r"neither a .proto file nor a serialized descriptor"):
        parse(text)
