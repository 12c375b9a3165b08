"""Generated message classes: reproducible, up to date, typed."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.schema.writing import field, message, request, tagged
from tools import generate

from kwire import schema
from kwire.codegen import message_source, package_files, write_files
from kwire.errors import SchemaError
from kwire.schema.catalogue import read_catalogue
from kwire.schema.merging import layout

ROOT = Path(__file__).parents[2]


@pytest.mark.requirement("SDEF-05", "SDEF-06")
def test_generating_twice_gives_the_same_bytes_and_writes_nothing(tmp_path: Path) -> None:
    files = package_files([schema.parse(request(field()))])
    paths = write_files(files, tmp_path)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
    write_files(package_files([schema.parse(request(field()))]), tmp_path)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths} == before


def test_a_module_documents_its_source_and_every_field() -> None:
    source = (ROOT / "src/kwire/messages/fetch_request.py").read_text()
    origin = "Generated from FetchRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen"
    assert source.startswith(f'"""{origin}; change the generator.')
    assert '"""string; versions 12+; tag 0; nullable; default null; ignorable."""' in source
    assert '"""int64; versions 18+; tag 1; default 9223372036854775807; ignorable."""' in source


def test_every_field_of_every_module_is_documented() -> None:
    for path in (ROOT / "src/kwire/messages").glob("*.py"):
        if path.name in generate.HAND_WRITTEN | {"__init__.py", "index.py", "error_codes.py"}:
            continue
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ClassDef):
                assert isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr), "classes only"
                continue
            assert ast.get_docstring(node)
            for at, item in enumerate(node.body):
                if isinstance(item, ast.AnnAssign) and "ClassVar" not in ast.unparse(item.annotation):
                    if ast.unparse(item.target) == "unknown_tagged_fields":
                        continue
                    facts = node.body[at + 1]
                    assert isinstance(facts, ast.Expr), (path, ast.unparse(item))
                    assert "versions " in ast.unparse(facts)


def imported(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(directory.parent))
    importlib.invalidate_caches()
    return importlib.import_module(directory.name)


AWKWARD = message(
    field("uuid", "Uuid"),
    field("uuid", "Other", default="AAAAAAAAAAAAAAAAAAAAAQ"),
    field("bytes", "Bytes", nullableVersions="0+"),
    field("[]bytes", "List"),
    field("int8", "Type"),
    field("[]int32", "Int"),
    field("string", "Base", default='a "quoted" \\ text \n with """ in it', about='Say """so"""\nand end in a "'),
    field("string", "Msgspec", nullableVersions="0+", default="null"),
    field("float64", "Float", default="-Infinity"),
    field("float64", "Nan", default="NaN"),
    field("bool", "Class", default="true"),
    field("[]Item", "Items", nullableVersions="0+", default="null", fields=[field(mapKey=True), tagged(0)]),
    field("Inner", "Inner", nullableVersions="0+", default="null", fields=[field("uint32", default=4294967295)]),
    field("Rest", "Rest", fields=[field("[]Leaf", "Leaves", fields=[field("string", "Str", mapKey=True)])]),
    tagged(0, type="uuid"),
    name="Awkward",
)


def test_users_generate_packages_from_their_own_definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [schema.parse(AWKWARD), schema.parse(request(field("[]Item", "Items", fields=[field(mapKey=True)])))]
    write_files(package_files(specs), tmp_path / "awkward_messages")
    package = imported(tmp_path / "awkward_messages", monkeypatch)
    assert sorted(package.__all__) == ["Awkward", "OrderRequest"]
    assert "awkward_messages.order_request" not in sys.modules
    made = package.Awkward(
        uuid=package.Awkward().other, list=[b"x"], rest=package.Awkward.Rest(leaves=[package.Awkward.Leaf(str="s")])
    )
    compiled = schema.compile(specs[0])
    data = made.encode(version=1)
    assert package.Awkward.decode(data, version=1).encode(version=1) == data
    assert repr(compiled.decode(data, version=1).to_json(version=1)) == repr(made.to_json(version=1))  # NaN is in it
    assert made.rest.leaves.find("s") == package.Awkward.Leaf(str="s")
    assert pickle.loads(pickle.dumps(made)).rest == made.rest
    assert (made.base, made.nan != made.nan, made.type) == ('a "quoted" \\ text \n with """ in it', True, 0)
    assert schema.render(package.Awkward.SPEC) == schema.render(specs[0])


SAME_AS_PYTHON = "tuple type int bytes bool float base builtins msgspec uuid dir object Import Class"


@pytest.mark.requirement("T-09")
@pytest.mark.parametrize("name", SAME_AS_PYTHON.split())
def test_a_message_may_share_a_name_with_an_import_of_its_module(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [field("string", "S", default="x"), field("[]int32", "L"), field("uuid", "U"), field("float64", "F")]
    fields += [field("[]ClassVar", "Items", fields=[field("int32", "K", mapKey=True)])]
    write_files(package_files([schema.parse(message(*fields, name=name))]), tmp_path / f"package_{name}")
    made = getattr(imported(tmp_path / f"package_{name}", monkeypatch), name)(l=[1], s="s")
    made.items.append(made.ClassVar(k=7))
    assert type(made).decode(made.encode(version=1), version=1) == made


@pytest.mark.requirement("T-09")
def test_names_that_are_not_valid_module_names_are_rejected() -> None:
    for name in ("Any", "getattr", "globals", "list", "str"):
        with pytest.raises(SchemaError, match=f"^{name}: the generated package itself needs this name"):
            package_files([schema.parse(message(name=name))])
    with pytest.raises(SchemaError, match=r"^FOO: module foo.py is already that of Foo \[T-09\]"):
        package_files([schema.parse(message(name=name)) for name in ("Foo", "FOO")])


def test_the_documentation_of_a_field_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = "ends\0 here \ud800 \u2028 or\r\n here \\"
    write_files(package_files([schema.parse(message(field(about=about)))]), tmp_path / "about_messages")
    assert imported(tmp_path / "about_messages", monkeypatch).Order().amount == 0
    assert "ends here or here \\\\" in (tmp_path / "about_messages" / "order.py").read_text()


USE = """
from typing import assert_type
from uuid import UUID

from awkward_messages import Awkward, OrderRequest
from awkward_messages.awkward import Item, Leaf
from awkward_messages.order_request import Item as OrderItem
from kwire.messages import FetchRequest, MetadataResponse, ErrorCode
from kwire.messages.base import KeyedList
from kwire.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kwire import schema

m = MetadataResponse.decode(b"", version=9)
assert_type(m, MetadataResponse)
assert_type(m.throttle_time_ms, int)
assert_type(m.cluster_id, str | None)
assert_type(m.topics, KeyedList[MetadataResponseTopic])
assert_type(m.topics.find("a"), MetadataResponseTopic | None)
assert_type(m.topics[0].partitions, list[MetadataResponsePartition])
assert_type(m.topics[0].topic_id, UUID)
assert_type(m.unknown_tagged_fields, list[tuple[int, bytes]])
assert_type(FetchRequest().topics[0].partitions[0].fetch_offset, int)
m.topics = [MetadataResponse.MetadataResponseTopic(name="a")]
MetadataResponse(topics=[MetadataResponseTopic()], controller_id=1)
assert_type(MetadataResponse.from_json({}, version=1), MetadataResponse)
assert_type(ErrorCode.NONE.retriable, bool)
assert_type(MetadataResponse.SPEC, schema.Message)

a = Awkward()
assert_type(a.items, KeyedList[Item] | None)
assert_type(a.type, int)
assert_type(a.bytes, bytes | None)
assert_type(a.list, list[bytes])
assert_type(a.uuid, UUID)
assert_type(a.rest.leaves.find("x"), Leaf | None)
assert_type(OrderRequest().items.find(1), OrderItem | None)
assert_type(OrderRequest.Item(amount=1), OrderItem)
"""
WRONG = """
from kwire.messages import MetadataResponse

MetadataResponse(throttle_time_ms="x")
MetadataResponse(topics=[1])
MetadataResponse(no_such_field=1)
MetadataResponse().topics.find("a").name
MetadataResponse().nonsense
"""


@pytest.mark.slow
def test_generated_classes_pass_strict_type_checks(tmp_path: Path) -> None:
    specs = [schema.parse(AWKWARD), schema.parse(request(field("[]Item", "Items", fields=[field(mapKey=True)])))]
    write_files(package_files(specs), tmp_path / "awkward_messages")
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "use.py", "wrong.py", "awkward_messages"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [":".join(line.split(":")[:2]) for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [f"wrong.py:{line}" for line in range(4, 9)], done.stdout


@pytest.mark.slow
def test_merged_classes_take_each_version_from_the_newest_release_that_has_it() -> None:
    for name, merged in read_catalogue(ROOT / "definitions").items():
        taken: set[int] = set()
        for message_ in merged.releases.values():
            if (message_.kind, message_.api_key) != (merged.message.kind, merged.message.api_key):
                continue
            for version in set(message_.valid) - taken:
                assert list(layout(message_, version)) == list(layout(merged.message, version)), (name, version)
            taken |= set(message_.valid)
        assert set(merged.message.valid) == taken


def test_a_definition_and_its_rendering_generate_the_same_source() -> None:
    spec = schema.parse(AWKWARD)
    again = message_source(schema.parse(schema.render(spec)), "")
    about = " Say '''so''' and end in a \" "  # free text; its quotes must not end the docstring
    assert about in message_source(spec, "")
    assert again == message_source(spec, "").replace(about, "")
