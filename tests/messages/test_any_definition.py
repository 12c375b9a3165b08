"""Random definitions and values: source, classes, JSON and bytes agree."""

from __future__ import annotations

import json
import pickle
import random
import sys
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire import schema
from kwire.codegen import message_source
from kwire.schema.model import ENCODABLE, INTEGERS, Field, Message, Struct
from kwire.wire.integer_encoding import ENCODINGS

LAST = 3  # valid versions are 0-3
SCALARS = [*INTEGERS, "bool", "float64", "uuid", "string", "bytes"]


class Writer:
    """Writes a random valid definition.

    encodings: how many of the integers that may have one of KIP-625's have it, elements of arrays among them.
    """

    def __init__(self, rng: random.Random, encodings: float = 0.3) -> None:
        self.rng, self.structs, self.encodings = rng, 0, encodings
        self.flexible = rng.choice([0, 1, 2, None])

    def definition(self) -> dict[str, Any]:
        flexible = "none" if self.flexible is None else f"{self.flexible}+"
        fields = self.fields(0, LAST, 0)
        head = {"type": "data", "name": "Drawn", "validVersions": f"0-{LAST}", "flexibleVersions": flexible}
        return {**head, "fields": fields}

    def fields(self, lowest: int, highest: int, depth: int) -> list[dict[str, Any]]:
        fields = [self.field(f"F{i}", lowest, highest, depth) for i in range(self.rng.randint(0, 5))]
        # Elements of no bytes at all cannot be told from hostile counts, by Kafka neither (W-45).
        fields.append({"name": "Always", "type": "int8", "versions": "0+"})
        for tag, item in enumerate(item for item in fields if "taggedVersions" in item):
            item["tag"] = tag
        return fields

    def field(self, name: str, lowest: int, highest: int, depth: int) -> dict[str, Any]:
        rng = self.rng
        first = rng.randint(lowest, highest)
        last = rng.randint(first, highest) if rng.random() < 0.2 else None
        is_struct, is_array = depth < 3 and rng.random() < 0.3, rng.random() < 0.3
        encodable = rng.random() < self.encodings
        kind = rng.choice(ENCODABLE if encodable else [*SCALARS, *([] if is_array else ["records"])])
        item: dict[str, Any] = {"name": name, "versions": f"{first}+" if last is None else f"{first}-{last}"}
        if is_struct:
            self.structs += 1
            kind = f"S{self.structs}"
            item["fields"] = self.fields(first, highest if last is None else last, depth + 1)
        item |= {"type": f"[]{kind}" if is_array else kind, "ignorable": rng.random() < 0.5}
        if is_array and encodable and not is_struct:
            self.encode(item, first, last)
        if (is_struct or is_array or kind in ("string", "bytes", "records")) and rng.random() < 0.5:
            item["nullableVersions"] = item["versions"]
            item |= {"default": "null"} if rng.random() < 0.5 else {}
        elif kind in INTEGERS and not is_array:
            smallest, largest = INTEGERS[kind]
            if encodable:
                smallest, largest = self.encode(item, first, last)
            if rng.random() < 0.5:
                item["default"] = str(rng.choice([smallest, largest]))
        elif kind == "string" and not is_array and rng.random() < 0.5:
            item["default"] = "défaut"
        if self.flexible is not None and last is None and kind != "records" and rng.random() < 0.3:
            item["taggedVersions"] = f"{max(first, self.flexible)}+"
        elif depth and kind in ("string", "int32") and not is_array and rng.random() < 0.3:
            item["mapKey"] = True
        return item

    def encode(self, item: dict[str, Any], first: int, last: int | None) -> tuple[int, int]:
        """Add encodings in either notation to an integer field or array; return the range that fits all of them."""
        rng = self.rng
        array = "[]" if item["type"].startswith("[]") else ""
        bits = int(item["type"].removeprefix("[]int").removeprefix("int"))
        names = [name for name, encoding in ENCODINGS.items() if encoding.bits <= bits]
        cuts = sorted(rng.sample(range(first + 1, LAST + 2), min(rng.randint(0, 3), LAST + 1 - first)))
        cuts = [cut for cut in cuts if last is None or cut <= last]
        highest = [cut - 1 for cut in cuts]
        ranges = [f"{a}-{b}" for a, b in zip([first, *cuts], highest, strict=False)]
        ranges.append(f"{[first, *cuts][-1]}+" if last is None else f"{[first, *cuts][-1]}-{last}")
        chosen = {versions: rng.choice(names) for versions in ranges}
        words = {"fixed": "int", "packed": "varint", "upacked": "unsigned_varint"}
        if rng.random() < 0.5:
            item["encoding"] = chosen if len(chosen) > 1 or rng.random() < 0.5 else chosen[ranges[0]]
        else:
            item["type"] = {versions: f"{array}{words[name[:-2]]}{name[-2:]}" for versions, name in chosen.items()}
        narrowest = min((ENCODINGS[name] for name in chosen.values()), key=lambda encoding: encoding.bits)
        return narrowest.smallest, narrowest.largest


class Filler:
    """Fills an object with random values that are valid in a version."""

    def __init__(self, rng: random.Random, cls: Any, version: int) -> None:
        self.rng, self.cls, self.version = rng, cls, version
        self.spec: Message = cls.SPEC

    def message(self) -> Any:
        return self.struct(self.spec.struct, self.cls)

    def struct(self, struct: Struct, cls: Any) -> Any:
        values = {}
        for field in struct.fields:
            # Records are null by default, also where they must not be: they are always set, and structs with them.
            needed = field.type == "records" or field.struct is not None
            if self.version in field.versions and (needed or self.rng.random() < 0.8):
                values[field.attr] = self.value(field)
        return cls(**values)

    def value(self, field: Field) -> Any:
        if self.version in field.nullable and self.rng.random() < 0.3:
            return None
        if field.is_array:
            return [self.element(field) for _ in range(self.rng.choice([0, 1, 2, 3, 130]) if not field.struct else 2)]
        return self.element(field)

    def element(self, field: Field) -> Any:
        rng = self.rng
        if field.struct is not None:
            return self.struct(field.struct, getattr(self.cls, field.struct.name))
        if field.type in INTEGERS:
            smallest, largest = INTEGERS[field.type]
            encoding = field.encoding(self.version)
            if encoding is not None:
                smallest, largest = ENCODINGS[encoding].smallest, ENCODINGS[encoding].largest
            some = rng.choice((1, -1)) * rng.getrandbits(rng.randrange(64))  # of every length
            return rng.choice(
                [smallest, largest, 0, 1, rng.randint(smallest, largest), max(smallest, min(some, largest))]
            )
        return {
            "bool": rng.random() < 0.5,
            "float64": rng.choice([0.0, -0.0, 1.5, -1e300, float("inf")]),
            "uuid": UUID(int=rng.getrandbits(128)),
            "string": rng.choice(["", "x", "é😀\x00", "y" * 127, "z" * 300]),
        }.get(field.type, rng.randbytes(rng.choice([0, 1, 126, 127, 200])))


def generated(spec: Message, name: str) -> Any:
    """Return the class of the generated source of a definition."""
    module = ModuleType(name)
    sys.modules[name] = module  # annotations are looked up there
    exec(compile(message_source(spec, ""), f"{name}.py", "exec"), module.__dict__)
    return module.Drawn


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_source_classes_json_and_bytes_agree(seed: int) -> None:
    rng = random.Random(seed)
    spec = schema.parse(json.dumps(Writer(rng).definition()))
    compiled, made = schema.compile(spec), generated(spec, "drawn_messages")
    try:
        for version in spec.valid:
            message = Filler(rng, compiled, version).message()
            text = json.dumps(message.to_json(version=version))
            data = message.encode(version=version)
            assert message.encoded_size(version=version) == len(data)
            again = compiled.decode(data, version=version)
            assert again == message
            assert again.encode(version=version) == data
            assert compiled.from_json(json.loads(text), version=version) == message
            assert pickle.loads(pickle.dumps(message)) == message
            other = made.decode(data, version=version)
            assert json.dumps(other.to_json(version=version)) == text
            assert other.encode(version=version) == data
    finally:
        del sys.modules["drawn_messages"]
