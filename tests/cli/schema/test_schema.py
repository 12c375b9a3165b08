"""`kwire schema`: check, show, size, generate, import."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.plan.definitions import FooResponse
from tests.schema.writing import field, message, request

ROOT = Path(__file__).parents[3]
Call = Callable[..., Any]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "Order.json").write_text(message(field(), field("[]Item", "Items", fields=[field("string", "Name")])))
    return folder


def test_check_prints_nothing_for_valid_definitions(kwire: Call, orders: Path) -> None:
    result = kwire("schema", "check", orders)
    assert (result.code, result.out) == (0, "")
    assert result.err == "kwire: 1 definition, 0 errors\n"


def test_check_reports_every_error_of_every_file(kwire: Call, orders: Path) -> None:
    (orders / "Bad.json").write_text(message(field("int7"), flexibleVersions=None))
    result = kwire("schema", "check", orders)
    assert result.code == 1
    lines = result.out.splitlines()
    what = "flexibleVersions is missing; write 'none' if no version is flexible (line 1) [E-28]"
    assert lines[0] == f"{orders}/Bad.json: Order: {what}"
    assert lines[1].startswith(f"{orders}/Bad.json: Order.Amount: unknown type 'int7'")
    assert "kwire: 2 definitions, 2 errors in 1 file" in result.err
    found = json.loads(kwire("schema", "check", orders, "--format", "json").out)
    assert [(row["rule"], row["struct"], row["field"]) for row in found] == [
        ("E-28", "Order", None),
        ("E-10", "Order", "Amount"),
    ]


@pytest.mark.requirement("T-09")
def test_check_refuses_what_generate_refuses(kwire: Call, orders: Path, tmp_path: Path) -> None:
    """Both report every name that a package cannot have; generate stopped at the first."""
    for file, name in (("Any", "Any"), ("Str", "str"), ("Upper", "ORDER")):
        (orders / f"{file}.json").write_text(message(name=name))
    lines = [
        f"{orders}/Any.json: Any: the generated package itself needs this name [T-09]",
        f"{orders}/Str.json: str: the generated package itself needs this name [T-09]",
        f"{orders}/Upper.json: ORDER: module order.py is already that of Order [T-09]",
    ]
    checked = kwire("schema", "check", orders)
    assert (checked.code, checked.out.splitlines()) == (1, lines)
    generated = kwire("schema", "generate", orders, "-o", tmp_path / "out")
    assert (generated.code, generated.err.splitlines()) == (1, [f"kwire: {line}" for line in lines])
    assert not (tmp_path / "out").exists()


def test_one_file_of_a_pair_is_enough_for_every_command(kwire: Call, tmp_path: Path) -> None:
    """The example of KIP-482 is a response alone."""
    path = tmp_path / "FooResponse.json"
    path.write_text(FooResponse.DEFINITION)
    checked = kwire("schema", "check", path)
    note = f"{path}: FooResponse: no request with apiKey {FooResponse.API_KEY} [E-53]"
    assert (checked.code, checked.out) == (0, "")
    assert checked.err == f"kwire: note: {note}\nkwire: 1 definition, 0 errors\n"
    assert json.loads(kwire("schema", "check", path, "--format", "json").out) == []
    for command in (
        ("show", path, "--version", "9"),
        ("size", path),
        ("generate", path, "-o", tmp_path / "package"),
        ("docs", path, "-o", tmp_path / "site"),
        ("diff", path, path),
    ):
        assert kwire("schema", *command).code == 0, command
    assert kwire("schema", "check", tmp_path).code == 1
    assert kwire("schema", "generate", tmp_path, "-o", tmp_path / "package").code == 1


def test_check_accepts_the_spelling_of_the_kip(kwire: Call, tmp_path: Path) -> None:
    path = tmp_path / "Order.json"
    path.write_text(message(field(versions=None, tag=0)))
    assert kwire("schema", "check", path).code == 1
    assert kwire("schema", "check", path, "--dialect", "kip").code == 0


def test_wrong_usage_has_exit_code_2(kwire: Call, tmp_path: Path) -> None:
    for arguments in (
        ("check", tmp_path / "gone.json"),
        ("check", tmp_path),
        ("show", "FetchReqest"),
        ("show", "FetchRequest", "--version", "99"),
        ("show", "FetchRequest", "--kafka-version", "0.1"),
        ("show", tmp_path / "gone.json"),
        ("size", "FetchRequest", "--version", "99"),
        ("generate", tmp_path, "-o", tmp_path / "out"),
        ("import", tmp_path / "gone.jar", "-o", tmp_path / "out"),
        ("nonsense",),
    ):
        assert kwire("schema", *arguments).code == 2, arguments


def test_show_prints_all_versions_of_a_message(kwire: Call) -> None:
    result = kwire("schema", "show", "ApiVersionsRequest")
    assert result.code == 0
    assert result.out == (
        "ApiVersionsRequest: request 18, versions 0-5, flexible 3+, listeners broker, controller, zkBroker\n"
        "FIELD                    TYPE    VERSIONS  TAG  NULLABLE  DEFAULT  NOTES\n"
        "client_software_name     string  3+          -  -         -        ignorable\n"
        "client_software_version  string  3+          -  -         -        ignorable\n"
        "cluster_id               string  5+          -  5+        null     ignorable\n"
        "node_id                  int32   5+          -  -         -1       ignorable\n"
    )


def test_show_prints_one_version_in_wire_order(kwire: Call) -> None:
    result = kwire("schema", "show", "FetchRequest", "--version", "12")
    assert result.out.startswith("FetchRequest: request 1, version 12, flexible, request header 2\n")
    fields = [line.split()[0] for line in result.out.splitlines()[2:]]
    assert fields[:3] == ["replica_id", "max_wait_ms", "min_bytes"]  # cluster_id is tagged
    assert fields[-2:] == ["(tagged", "cluster_id"]
    rows = json.loads(kwire("schema", "show", "FetchRequest", "--version", "12", "--format", "json").out)
    assert rows[0] == {
        "path": "replica_id",
        "depth": 0,
        "name": "replica_id",
        "type": "int32",
        "bytes": 4,
        "fixed": True,
        "form": "big-endian",
        "default": "-1",
    }


def test_show_accepts_a_release_or_a_file(kwire: Call, orders: Path) -> None:
    assert "versions 0-12" in kwire("schema", "show", "FetchRequest", "--kafka-version", "2.8.2").out
    assert kwire("schema", "show", orders / "Order.json").out.startswith("Order: data, versions 0-3, flexible 1+\n")


def test_size_is_the_smallest_message_that_encodes(kwire: Call) -> None:
    from kwire.messages import registry

    for name in ("MetadataRequest", "OffsetCommitRequest", "ProduceResponse", "ApiVersionsResponse"):
        rows = json.loads(kwire("schema", "size", name, "--format", "json").out)
        cls = registry.get(name)
        assert [row["version"] for row in rows] == list(cls.VALID_VERSIONS)
        for row in rows:
            assert row["bytes"] == cls().encoded_size(version=row["version"]), (name, row)
    sizes = kwire("schema", "size", "MetadataResponse", "--version", "9").out.splitlines()[1].split(None, 3)
    assert sizes[:3] == ["9", "5", "16"]
    assert sizes[3].startswith("brokers[] 11, topics[] 10, topics[].partitions[] 18")


def test_generate_writes_a_package(kwire: Call, orders: Path, tmp_path: Path) -> None:
    result = kwire("schema", "generate", orders, "-o", tmp_path / "out")
    assert (result.code, result.err) == (0, "kwire: 2 files written\n")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["__init__.py", "order.py"]
    (orders / "Bad.json").write_text("{")
    result = kwire("schema", "generate", orders, "-o", tmp_path / "other")
    assert result.code == 1
    assert "[E-01]" in result.err
    assert not (tmp_path / "other").exists()


def test_generate_check_fails_when_files_are_stale(kwire: Call, orders: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("schema", "generate", orders, "-o", out, "--check")
    missing = kwire(*command)
    assert (missing.code, missing.err) == (1, "kwire: 2 files not up to date; generate again\n")
    assert missing.out == f"{out}/__init__.py: missing\n{out}/order.py: missing\n"
    assert not out.exists()
    assert kwire("schema", "generate", orders, "-o", out).code == 0
    (out / "by_hand.py").write_text("x = 1\n")
    fresh = kwire(*command)
    assert (fresh.code, fresh.out, fresh.err) == (0, "", "kwire: all files are up to date\n")
    (orders / "Order.json").write_text(message(field(), field("string", "Note")))
    stale = kwire(*command)
    assert (stale.code, stale.out) == (1, f"{out}/order.py: out of date\n")
    (orders / "Order.json").rename(orders / "Bill.json")
    (orders / "Bill.json").write_text(message(name="Bill"))
    before = sorted((path, path.read_bytes()) for path in out.iterdir())
    gone = kwire(*command, "--format", "json")
    assert gone.code == 1
    assert {Path(row["path"]).name: row["problem"].partition(":")[0] for row in json.loads(gone.out)} == {
        "__init__.py": "out of date",
        "bill.py": "missing",
        "order.py": "no definition for this module; remove it",
    }
    assert sorted((path, path.read_bytes()) for path in out.iterdir()) == before


@pytest.mark.requirement("T-08", "I-40")
def test_show_and_size_accept_the_spellings_of_the_kips(kwire: Call, tmp_path: Path) -> None:
    definition = tmp_path / "Foo.json"
    definition.write_text(
        message(
            field("int32", "LeaderId", encoding={"0-2": "fixed32", "3+": "unsigned32"}),
            {"name": "UserAgent", "type": "string", "tag": 0},
        )
    )
    values = tmp_path / "values.json"
    values.write_text('{"leaderId": 7}')
    for command in (("show", definition), ("size", definition), ("size", definition, values, "--version", "3")):
        refused = kwire("schema", *command)
        assert (refused.code, "[I-13]" in refused.err or "[E-09]" in refused.err) == (1, True)
    shown = kwire("schema", "show", definition, "--dialect", "kip")
    assert shown.code == 0
    assert "fixed32 in 0-2, upacked32 in 3+" in shown.out
    assert "user_agent" in shown.out
    assert kwire("schema", "size", definition, "--dialect", "kip").code == 0
    sized = kwire("schema", "size", definition, values, "--version", "3", "--dialect", "kip")
    assert (sized.code, "upacked32" in sized.out) == (0, True)
    assert (
        kwire("schema", "show", "FetchRequest", "--dialect", "kip").out == kwire("schema", "show", "FetchRequest").out
    )


def test_generate_rejects_two_messages_of_the_same_name(kwire: Call, orders: Path, tmp_path: Path) -> None:
    (orders / "Again.json").write_text(message())
    result = kwire("schema", "generate", orders, "-o", tmp_path / "out")
    assert (result.code, result.err) == (2, "kwire: duplicate definitions: Order\n")


@pytest.mark.requirement("T-09")
@pytest.mark.parametrize("name", ["../../ESCAPED", 'A import a #"+open("pwn","w")+"', "A B", "9A", "class", "A\0"])
def test_message_names_are_checked_before_anything_is_written(
    kwire: Call, orders: Path, tmp_path: Path, name: str
) -> None:
    (orders / "Odd.json").write_text(message(name=name))
    before = sorted(tmp_path.rglob("*"))
    with zipfile.ZipFile(tmp_path / "kafka-clients-9.9.9.jar", "w") as archive:
        archive.write(orders / "Odd.json", "common/message/Odd.json")
    for command in ("generate", "import", "docs"):
        sources = [orders] if command != "import" else [orders, tmp_path / "kafka-clients-9.9.9.jar"]
        for source in sources:
            result = kwire("schema", command, source, "-o", tmp_path / "a" / "b" / "c")
            assert result.code == 1
            assert "invalid message name" in result.err
            assert "[T-09]" in result.err
    (tmp_path / "kafka-clients-9.9.9.jar").unlink()
    assert sorted(tmp_path.rglob("*")) == before


def test_an_unwritable_path_is_reported(kwire: Call, orders: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (orders / "Order.json").write_text(message(name="A" * 300))
    for command in ("generate", "import", "docs"):
        result = kwire("schema", command, orders, "-o", tmp_path / "file")
        assert (result.code, "cannot be written" in result.err) == (2, True), result.err
    assert kwire("schema", "docs", orders, "-o", tmp_path / "site").code == 0
    for command in ("generate", "import"):
        result = kwire("schema", command, orders, "-o", tmp_path / command)
        assert (result.code, "File name too long" in result.err) == (2, True), result.err


def test_import_keeps_only_differences_from_another_release(kwire: Call, tmp_path: Path) -> None:
    for release, versions in (("1.0", "0-3"), ("1.1", "0-4")):
        with zipfile.ZipFile(tmp_path / f"kafka-clients-{release}.jar", "w") as jar:
            jar.writestr("common/message/Same.json", message(name="Same"))
            jar.writestr("common/message/Order.json", message(validVersions=versions))
    first, second = tmp_path / "kafka-1.0", tmp_path / "kafka-1.1"
    assert kwire("schema", "import", tmp_path / "kafka-clients-1.0.jar", "-o", first / "clients").code == 0
    result = kwire("schema", "import", tmp_path / "kafka-clients-1.1.jar", "-o", second, "--base", first)
    assert (result.code, result.err) == (0, "kwire: 1 file written\n")
    assert sorted(path.name for path in second.rglob("*.*")) == ["Order.json", "base.txt"]
    assert kwire("schema", "diff", first, second).err == "kwire: 0 violations, 0 notes, 2 definitions\n"


def test_import_creates_a_folder_per_source(kwire: Call, tmp_path: Path) -> None:
    jars = []
    for module, text in (("clients", request()), ("raft", message())):
        jars.append(tmp_path / f"kafka-{module}-9.9.9.jar")
        with zipfile.ZipFile(jars[-1], "w") as archive:
            archive.writestr("common/message/X.json", "// words\n" + text)
    result = kwire("schema", "import", *jars, "-o", tmp_path / "out")
    assert (result.code, result.err) == (0, "kwire: 2 files written\n")
    found = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.json"))
    assert found == ["clients/OrderRequest.json", "raft/Order.json"]
    one = kwire("schema", "import", jars[0], "-o", tmp_path / "one", "--format", "json")
    assert json.loads(one.out) == [str(tmp_path / "one" / "OrderRequest.json")]
    (tmp_path / "bad.jar").write_bytes(b"")
    assert kwire("schema", "import", tmp_path / "bad.jar", "-o", tmp_path / "no").code == 1
