"""The API of message classes, generated and compiled at run time."""

from __future__ import annotations

import copy
import enum
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests import golden
from tests.messages.eight_two import DEFINITION, Probe
from tests.schema.writing import field, message

from kwire import plan, schema
from kwire.errors import UnsupportedVersion
from kwire.messages import MetadataResponse, registry
from kwire.messages.base import Message
from kwire.messages.keyed import KeyedList
from kwire.messages.metadata_response import MetadataResponseBroker, MetadataResponseTopic

ROOT = Path(__file__).parents[2]


def topics(*names: str) -> list[MetadataResponseTopic]:
    return [MetadataResponse.MetadataResponseTopic(name=name) for name in names]


def everything() -> list[type[Message]]:
    """Return every class: merged ones, and those of each release."""
    found = {registry.get(name, kafka) for kafka in (None, *registry.RELEASES) for name in registry.names(kafka)}
    return sorted(found, key=lambda cls: (cls.__name__, cls.DEFINITION))


ALL = everything()


@pytest.mark.requirement("SDEF-22", "SDEF-23", "SDEF-24", "SDEF-25", "W-01")
def test_one_class_holds_the_fields_of_all_versions() -> None:
    made = MetadataResponse(topics=topics("a"), cluster_authorized_operations=7, error_code=3)
    assert (made.controller_id, made.throttle_time_ms, made.cluster_id) == (-1, 0, None)
    assert isinstance(made.topics[0], MetadataResponseTopic)
    assert (MetadataResponse.API_KEY, str(MetadataResponse.VALID_VERSIONS)) == (3, "0-13")
    assert 8 not in MetadataResponse.FLEXIBLE_VERSIONS
    assert 9 in MetadataResponse.FLEXIBLE_VERSIONS
    assert MetadataResponse.SPEC is MetadataResponse.SPEC
    assert made.SPEC.struct.fields[0].name == "ThrottleTimeMs"


def test_fields_are_keyword_arguments() -> None:
    with pytest.raises(TypeError):
        MetadataResponse(5)  # type: ignore[call-arg, misc]
    with pytest.raises(TypeError):
        MetadataResponse(thottle_time_ms=5)  # type: ignore[call-arg]


def defined_structs(definition: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of each struct of a definition file; the message's own under its name."""
    found = {definition["name"]: definition.get("fields", [])}
    found |= {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    for fields in list(found.values()):
        pending = list(fields)
        while pending:
            each = pending.pop()
            if each.get("fields"):
                found[each["type"].removeprefix("[]")] = each["fields"]
                pending += each["fields"]
    return found


@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", "4.4.0"])
def test_classes_have_the_fields_and_keys_of_kafkas_definition_files(release: str) -> None:
    """Read from the files with nothing of kwire's: structs, names and order of fields, keys of maps, versions."""

    def snake(name: str) -> str:
        return re.sub(r"(?<=[^A-Z])(?=[A-Z])", "_", name).lower()

    files = sorted((ROOT / "definitions" / f"kafka-{release}").rglob("*.json"))
    assert len(files) > 130
    for file in files:
        definition = json.loads(file.read_text())
        if definition["validVersions"] == "none":
            continue
        cls = registry.get(definition["name"], release)
        assert str(cls.VALID_VERSIONS) == definition["validVersions"]
        assert definition.get("apiKey") in (cls.API_KEY, None)
        for name, fields in defined_structs(definition).items():
            made: Any = cls if name == definition["name"] else getattr(cls, name)
            in_order = sorted(fields, key=lambda each: each.get("tag", -1))  # tagged fields last
            expected = [snake(each["name"]) for each in in_order if each["versions"] != "none"]
            assert list(made.__struct_fields__) == [*expected, "unknown_tagged_fields"], (release, made)
            assert tuple(snake(each["name"]) for each in fields if each.get("mapKey")) == made.MAP_KEYS, (release, made)


def test_every_class_has_the_layout_that_codecs_require() -> None:
    assert len(ALL) > 294
    for cls in ALL:
        for struct in (cls.SPEC.struct, *cls.SPEC.structs):
            made: Any = cls if struct is cls.SPEC.struct else getattr(cls, struct.name)
            expected = [f.attr for f in struct.class_fields] + ["unknown_tagged_fields"]
            assert list(made.__struct_fields__) == expected, (cls, struct.name)
            assert made.__struct_config__.array_like
            assert not made.__struct_config__.gc
            assert tuple(f.attr for f in struct.map_keys) == made.MAP_KEYS
        assert cls.SPEC.valid == cls.VALID_VERSIONS
        assert cls.SPEC.flexible == cls.FLEXIBLE_VERSIONS
        assert cls.SPEC.api_key == cls.API_KEY


def test_every_class_works_with_msgspec_and_pickle() -> None:
    for cls in ALL:
        made = cls()
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=cls) == made
        assert msgspec.json.decode(msgspec.json.encode(made), type=cls) == made
        assert pickle.loads(pickle.dumps(made)) == made
        assert copy.deepcopy(made) == made


def test_a_class_has_the_defaults_of_its_definition() -> None:
    from kwire.schema.model import default_row

    for cls in ALL:
        assert msgspec.to_builtins(cls(), builtin_types=(bytes, UUID)) == default_row(cls.SPEC.struct), cls


@pytest.mark.requirement("W-70", "W-77")
def test_messages_with_equal_values_are_equal() -> None:
    one, other = (MetadataResponse(topics=topics("a"), unknown_tagged_fields=[(9, b"x")]) for _ in range(2))
    assert one == other
    other.unknown_tagged_fields = [(9, b"y")]
    assert one != other
    assert one != MetadataResponse()


def test_new_messages_share_no_state() -> None:
    one, other = MetadataResponse(), MetadataResponse()
    one.topics.append(topics("a")[0])
    one.unknown_tagged_fields.append((1, b""))
    assert other == MetadataResponse()


def test_repr_shows_only_non_default_fields() -> None:
    made = MetadataResponse(throttle_time_ms=4, topics=topics("a"))
    assert repr(made) == "MetadataResponse(throttle_time_ms=4, topics=[MetadataResponseTopic(name='a')])"


@pytest.mark.parametrize("name", ["topics", "brokers"])
def test_copies_are_independent(name: str) -> None:
    made = MetadataResponse(topics=topics("a"), brokers=[MetadataResponseBroker(node_id=1)])
    deep = copy.deepcopy(made)
    getattr(deep, name).clear()
    assert len(getattr(made, name)) == 1
    assert isinstance(getattr(pickle.loads(pickle.dumps(made)), name), KeyedList)


@pytest.mark.requirement("SDEF-26", "W-04")
def test_invalid_versions_are_rejected() -> None:
    for version in (-1, 14, 99):
        with pytest.raises(UnsupportedVersion, match=f"MetadataResponse: no version {version}; versions are 0-13"):
            MetadataResponse().encode(version=version)
        with pytest.raises(UnsupportedVersion):
            MetadataResponse.decode(b"", version=version)


@pytest.mark.parametrize("version", [3.0, True, False, "3", None, 1 + 0j])
def test_a_version_is_an_integer(version: Any) -> None:
    """3.0 was accepted once version 3 had been used, and True was version 1."""
    data = [MetadataResponse().encode(version=used) for used in (0, 1, 3)]
    assert MetadataResponse.decode(data[2], version=3) == MetadataResponse()
    used: list[Callable[[], object]] = [
        lambda: MetadataResponse().encode(version=version),
        lambda: MetadataResponse().encoded_size(version=version),
        lambda: MetadataResponse.decode(data[2], version=version),
        lambda: MetadataResponse.decode_from(data[2], 0, version=version),
        lambda: MetadataResponse().to_json(version=version),
        lambda: MetadataResponse.from_json({}, version=version),
        lambda: registry.decode("MetadataResponse", data[2], version),
        lambda: plan.codec(MetadataResponse.SPEC, version, MetadataResponse),
    ]
    for use in used:
        with pytest.raises(UnsupportedVersion, match=re.escape(f"MetadataResponse: no version {version!r}; ")):
            use()


def test_a_version_may_be_a_member_of_an_enumeration() -> None:
    known = enum.IntEnum("known", {"FIRST": 0, "THIRD": 3})
    assert MetadataResponse.decode(MetadataResponse().encode(version=known.THIRD), version=3) == MetadataResponse()


def test_compiled_classes_have_the_api_of_generated_ones() -> None:
    spec = schema.parse(MetadataResponse.DEFINITION)
    compiled = schema.compile(spec)
    assert compiled is not MetadataResponse
    assert compiled.__struct_fields__ == MetadataResponse.__struct_fields__
    made = compiled(topics=[compiled.MetadataResponseTopic(name="a", topic_id=UUID(int=5))])
    assert made.topics.find(name="a").topic_id == UUID(int=5)
    same = MetadataResponse.decode(made.encode(version=12), version=12)
    assert same.to_json(version=12) == made.to_json(version=12)


def test_equal_definitions_share_a_picklable_class() -> None:
    assert schema.compile(schema.parse(DEFINITION)) is Probe
    made = Probe(ls=[Probe.El(k=1)], t2=Probe.Ns(p="x"))
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert type(again) is Probe
    assert again.ls.find(1) == Probe.El(k=1)
    assert copy.copy(made) == made


def test_objects_of_compiled_classes_unpickle_in_other_processes() -> None:
    code = "import pickle, sys; m = pickle.load(sys.stdin.buffer); print(m.to_json(version=1)['ls'], m.ls.find(7).v)"
    data = pickle.dumps(Probe(ls=[Probe.El(k=7, v=2.5)]))
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[{'k': 7, 'v': 2.5}] 2.5"


def test_python_keywords_can_be_field_names() -> None:
    names = ["Type", "Bytes", "List", "Int", "Str", "Uuid", "Base", "Class", "Msgspec", "ClassVar"]
    fields = [field("[]uuid" if i % 2 else "bytes", name, nullableVersions="0+") for i, name in enumerate(names)]
    cls = schema.compile(schema.parse(message(*fields, field("Item", "Item", fields=[field("uuid")]))))
    made = cls(type=b"t", class_=[UUID(int=1)])
    assert cls.decode(made.encode(version=1), version=1) == made


def test_importing_a_message_imports_no_other_message_or_heavy_library() -> None:
    code = """
import sys
from kwire.messages import FetchRequest
import kwire.messages as package
generated = {name for name in sys.modules if name.startswith("kwire.messages.")}
print(sorted(generated))
FetchRequest()
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("numpy", "pyarrow")))
print(sorted(name for name in sys.modules if name.startswith(("kwire.plan", "kwire.schema."))))
print("FetchResponse" in dir(package), hasattr(package, "Nonsense"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    generated, heavy, kwire, rest = done.stdout.splitlines()
    assert generated == "['kwire.messages.base', 'kwire.messages.fetch_request', 'kwire.messages.keyed']"
    assert heavy == "[]"
    assert kwire == "['kwire.schema.versions']"
    assert rest == "True False"


def test_the_merged_class_round_trips_golden_bytes() -> None:
    """Versions that the merged class takes from a release read that release's bytes."""
    seen = 0
    for line in golden.cached("messages-4.4.0.jsonl.gz"):
        cls, data = registry.get(line["message"]), golden.unpack(line["b64"])
        assert data is not None
        assert cls.decode(data, version=line["version"]).to_json(version=line["version"]) == line["json"]
        seen += 1
    assert seen == 625
