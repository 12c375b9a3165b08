"""Importing definitions from jars and sources, and merging those of several releases."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.schema.writing import INNER, common, coordinator_key, field, message, request, tagged
from tools import kafka

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema.catalogue import keep_differences, module_name, read_catalogue, release_files, release_order
from kwire.schema.merging import layout

ROOT = Path(__file__).parents[2]


def jar(path: Path, **entries: str | bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(f"common/message/{name}.json", text)
        archive.writestr("other/settings.json", '{"colour": "red"}')
        archive.writestr("META-INF/MANIFEST.MF", "")
    return path


PROSE = "// Licensed to somebody.\n" + message(field(about="How much it is.", default="0x10", versions="0-32767"))


def test_definitions_of_a_jar_are_imported_without_comments(tmp_path: Path) -> None:
    source = jar(tmp_path / "kafka-clients-9.9.9.jar", Order=PROSE)
    written = schema.import_definitions(source, tmp_path / "out")
    assert written == [tmp_path / "out" / "Order.json"]
    assert written[0].read_text() == (
        '{\n  "type": "data", "name": "Order",\n  "validVersions": "0-3", "flexibleVersions": "1+",\n'
        '  "fields": [\n    {"name": "Amount", "type": "int32", "versions": "0+", "default": "16"}\n  ]\n}\n'
    )


def test_folders_are_searched_and_other_json_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "clients" / "src" / "main" / "resources" / "common" / "message"
    folder.mkdir(parents=True)
    (folder / "Order.json").write_text(PROSE)
    (tmp_path / "clients" / "package.json").write_text("{}")
    assert [path.name for path in schema.import_definitions(tmp_path / "clients", tmp_path / "out")] == ["Order.json"]


def test_lenient_definitions_of_kafka_are_imported(tmp_path: Path) -> None:
    text = message(field(), flexibleVersions=None).replace('"versions"', '"versions": "0+", "versions"') + "\n]"
    written = schema.import_definitions(jar(tmp_path / "a.jar", Order=text), tmp_path)
    assert str(schema.load(written[0]).flexible) == "none"


def test_nothing_is_written_if_a_definition_is_invalid(tmp_path: Path) -> None:
    source = jar(tmp_path / "a.jar", Good=message(), Bad=message(field("int7"), name="Bad"), Twice=message())
    with pytest.raises(ExceptionGroup) as caught:
        schema.import_definitions(source, tmp_path / "out")
    found = [error for error in caught.value.exceptions if isinstance(error, SchemaError)]
    assert {error.rule for error in found} == {"E-10", "T-09"}
    assert str(found[0].file).endswith("a.jar!common/message/Bad.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x00" * 100])
def test_a_file_that_is_not_a_jar_is_a_schema_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.jar"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match="neither a directory nor a readable jar"):
        schema.import_definitions(path, tmp_path / "out")
    with pytest.raises(SchemaError):
        schema.import_definitions(tmp_path / "gone.jar", tmp_path / "out")


def test_a_truncated_or_changed_jar_is_a_schema_error_or_a_jar(tmp_path: Path) -> None:
    data = jar(tmp_path / "a.jar", Order=PROSE).read_bytes()
    refused = 0
    for at in range(0, len(data), 5):
        for broken in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            (tmp_path / "b.jar").write_bytes(broken)
            try:
                schema.import_definitions(tmp_path / "b.jar", tmp_path / "out")
            except* SchemaError:
                refused += 1
    assert refused > len(data) // 5


def test_message_names_become_module_names() -> None:
    names = {"kafka-clients-3.9.1.jar": "clients", "kafka-group-coordinator-4.4.0.jar": "group-coordinator"}
    names |= {"kafka_2.13-2.8.2.jar": "core", "mine.jar": "mine", "message": "message"}
    assert {name: module_name(Path("x") / name) for name in names} == names


def test_releases_are_ordered_by_number() -> None:
    assert sorted(["3.10.0", "3.9.1", "4.4.0"], key=release_order) == ["3.9.1", "3.10.0", "4.4.0"]


def merged(*texts: str) -> tuple[schema.Message, list[str]]:
    """Merge definitions of releases 9, 8 and so on. texts: newest first."""
    result, conflicts = schema.merge([(str(9 - i), schema.parse(text)) for i, text in enumerate(texts)])
    checked = schema.parse(schema.render(result))
    for version in result.valid:
        assert list(layout(checked, version)) == list(layout(result, version))
    return checked, [str(conflict) for conflict in conflicts]


def facts(spec: schema.Message) -> dict[str, str]:
    return {f.name: str(f.versions) for f in spec.struct.fields}


def test_versions_of_all_releases_are_in_the_merged_message() -> None:
    spec, conflicts = merged(
        message(field(name="New", versions="4+"), field(name="Kept"), validVersions="2-5"),
        message(field(name="Old", versions="0-1"), field(name="Kept"), validVersions="0-3", deprecatedVersions="0"),
    )
    assert (str(spec.valid), str(spec.deprecated), conflicts) == ("0-5", "0", [])
    assert facts(spec) == {"Old": "0-1", "New": "4+", "Kept": "0+"}


def test_the_newer_of_conflicting_releases_wins_and_is_reported() -> None:
    spec, conflicts = merged(
        message(field("string", "Name", nullableVersions="1+"), field(name="Count", default="-1")),
        message(field("string", "Title"), field(name="Count"), validVersions="0-1"),
    )
    assert facts(spec) == {"Name": "0+", "Count": "0+"}
    assert spec.struct.fields[1].default == -1
    assert "Order.Count in Kafka 8: 0 by default, later -1" in conflicts
    assert any(text.startswith("Order.Title in Kafka 8: string default ''") for text in conflicts)
    assert any("later absent" in text for text in conflicts)


def test_a_message_with_another_type_is_another_message() -> None:
    spec, conflicts = merged(coordinator_key(name="OrderKey", apiKey=2), message(name="OrderKey", validVersions="2"))
    assert (spec.kind, str(spec.valid)) == ("coordinator-key", "0")
    assert conflicts == ["OrderKey in Kafka 8: data with versions 2, later coordinator-key 2"]


def test_an_api_missing_from_one_release_comes_from_the_others() -> None:
    spec, conflicts = merged(request(validVersions="none", flexibleVersions="none"), request(field()))
    assert (str(spec.valid), facts(spec), conflicts) == ("0-3", {"Amount": "0+"}, [])


def test_structs_tags_and_nullability_are_merged_version_by_version() -> None:
    old: dict[str, Any] = {"validVersions": "0-1", "flexibleVersions": "1+"}
    spec, conflicts = merged(
        message(
            field("[]Item", "Items", fields=[field(versions="2+"), field("string", "Note", nullableVersions="2+")]),
            field("Shared", "One", versions="2+"),
            tagged(0),
            commonStructs=[common("Shared", field(), versions="2+")],
            validVersions="2-3",
        ),
        message(field("[]Item", "Items", fields=[*INNER, field("string", "Note")]), **old),
    )
    items, one, tag = spec.struct.fields
    assert items.struct is not None
    inner = {f.name: str(f.versions) for f in items.struct.fields}
    assert inner == {"Inner": "0-1", "Amount": "2+", "Note": "0+"}
    assert str(items.struct.fields[2].nullable) == "2+"
    assert (str(one.versions), str(tag.tagged), conflicts) == ("2+", "2+", [])


def test_the_whole_catalogue_is_read_with_known_conflicts() -> None:
    catalogue = read_catalogue(ROOT / "definitions")
    assert len(catalogue) == 299
    for each in catalogue.values():  # merged definitions are right: classes are generated from them, with their text
        text = schema.render(each.message)
        assert schema.render(schema.parse(text)) == text
    conflicts = [conflict for message_ in catalogue.values() for conflict in message_.conflicts]
    between = {c.message for c in conflicts if c.release == "3.9.1" and ": data " not in str(c)}
    assert between == {
        "ReadShareGroupStateSummaryResponse",
        "RemoteLogSegmentMetadataRecord",
        "RemoteLogSegmentMetadataSnapshotRecord",
        "ShareGroupPartitionMetadataValue",
        "TxnOffsetCommitRequest",
        "VoteRequest",
    }


def test_all_errors_of_a_catalogue_are_reported_together(tmp_path: Path) -> None:
    for module, name in (("one", "Order"), ("two", "Order"), ("two", "Bad")):
        folder = tmp_path / "kafka-1.0" / module
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(message(*([field("int7")] if name == "Bad" else []), name=name))
    with pytest.raises(ExceptionGroup) as caught:
        read_catalogue(tmp_path)
    assert [error.rule for error in caught.value.exceptions if isinstance(error, SchemaError)] == ["E-10", "T-09"]


def test_a_release_stores_only_its_differences_from_another(tmp_path: Path) -> None:
    for release, texts in {
        "kafka-1.0": {"Same": message(name="Same"), "Order": message(), "Gone": message(name="Gone")},
        "kafka-1.1": {"Same": message(name="Same"), "Order": message(validVersions="0-4"), "New": message(name="New")},
    }.items():
        (tmp_path / release / "clients").mkdir(parents=True)
        for name, text in texts.items():
            (tmp_path / release / "clients" / f"{name}.json").write_text(text)
    kept = keep_differences(tmp_path / "kafka-1.1", tmp_path / "kafka-1.0")
    assert [path.stem for path in kept] == ["New", "Order"]
    assert (tmp_path / "kafka-1.1" / "base.txt").read_text() == "kafka-1.0\n- clients/Gone\n"
    files = release_files(tmp_path / "kafka-1.1")
    assert list(files) == ["clients/New", "clients/Order", "clients/Same"]
    assert "0-4" in files["clients/Order"].read_text()
    merged = read_catalogue(tmp_path)
    assert {name: list(entry.releases) for name, entry in merged.items()} == {
        "Gone": ["1.0"],
        "New": ["1.1"],
        "Order": ["1.1", "1.0"],
        "Same": ["1.1", "1.0"],
    }
    with pytest.raises(SchemaError, match="not in the same folder"):
        keep_differences(tmp_path / "kafka-1.1", tmp_path)


@pytest.mark.parametrize(
    ("base", "what"),
    [
        ("", "is not the folder name of a release"),
        ("../kafka-1.0\n", "is not the folder name of a release"),
        ("kafka-0.9\n", "not a release: kafka-0.9"),
        ("kafka-1.1\n", "not a release: kafka-1.1"),
        ("kafka-1.0\n- clients/Nothing\n", "kafka-1.0 has no clients/Nothing"),
    ],
)
def test_an_unknown_base_release_is_an_error(tmp_path: Path, base: str, what: str) -> None:
    for release in ("kafka-1.0", "kafka-1.1"):
        (tmp_path / release).mkdir()
    (tmp_path / "kafka-1.1" / "base.txt").write_text(base)
    with pytest.raises(SchemaError, match=what):
        release_files(tmp_path / "kafka-1.1")


@pytest.mark.jvm
def test_the_catalogue_equals_the_definitions_of_kafkas_jars(tmp_path: Path) -> None:
    folder = kafka.jars()
    for module in (ROOT / "definitions" / f"kafka-{kafka.VERSION}").iterdir():
        source = folder / f"kafka-{module.name}-{kafka.VERSION}.jar"
        written = schema.import_definitions(source, tmp_path / module.name)
        assert {p.name: p.read_text() for p in written} == {p.name: p.read_text() for p in module.iterdir()}
