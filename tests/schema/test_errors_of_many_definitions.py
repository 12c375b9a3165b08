"""Rules across definitions, and all errors of a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.schema.writing import coordinator_key, field, message, request

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema.definition_files import check_files


def response(**attributes: Any) -> str:
    return request(**{"type": "response", "name": "OrderResponse", **attributes})


def metadata(name: str, **attributes: Any) -> str:
    return message(type="metadata", name=name, **attributes)


def value(name: str, api_key: int) -> str:
    return message(type="coordinator-value", name=name, apiKey=api_key)


def errors_of(directory: Path, *texts: str) -> list[tuple[str, str | None]]:
    for i, text in enumerate(texts):
        (directory / f"{i}.json").write_text(text)
    return [(error.rule, error.struct) for error in schema.check_all(directory)[1]]


@pytest.mark.requirement("E-50", "SDEF-09")
def test_two_requests_or_responses_with_the_same_key_are_rejected(tmp_path: Path) -> None:
    more = request(name="OtherRequest"), response(name="OtherResponse")
    found = errors_of(tmp_path, request(), response(), *more)
    assert found == [("E-50", "OtherRequest"), ("E-50", "OtherResponse")]


@pytest.mark.requirement("E-51")
def test_requests_responses_and_metadata_records_require_a_key(tmp_path: Path) -> None:
    keyless = request(apiKey=None), response(apiKey=None), metadata("OrderRecord")
    assert {rule for rule, _ in errors_of(tmp_path, *keyless)} == {"E-51"}


@pytest.mark.requirement("E-52")
def test_names_of_requests_and_responses_have_their_suffix(tmp_path: Path) -> None:
    assert errors_of(tmp_path, request(name="Ask"), response(name="Tell")) == [("E-52", "Ask"), ("E-52", "Tell")]


@pytest.mark.requirement("E-53", "SDEF-10")
def test_a_request_requires_a_response_and_the_reverse(tmp_path: Path) -> None:
    assert errors_of(tmp_path, request(), response(apiKey=9001)) == [
        ("E-53", "OrderRequest"),
        ("E-53", "OrderResponse"),
    ]


@pytest.mark.requirement("E-53", "E-62")
@pytest.mark.parametrize(
    ("text", "rule"), [(request(), "E-53"), (response(), "E-53"), (coordinator_key(), "E-62"), (value("A", 1), "E-62")]
)
def test_a_file_given_by_itself_may_lack_its_partner(tmp_path: Path, text: str, rule: str) -> None:
    """The rule is about directories: one file of a pair could not be checked at all."""
    path = tmp_path / "one.json"
    path.write_text(text)
    (message,), errors, notes = check_files(path)
    assert (message.file, errors, [note.rule for note in notes]) == (str(path), [], [rule])
    assert [each.name for each in schema.load_all(path)] == [message.name]
    assert [error.rule for error in check_files(tmp_path).errors] == [rule]
    assert check_files(tmp_path).notes == []


@pytest.mark.requirement("E-50", "E-53")
def test_files_given_together_are_compared(tmp_path: Path) -> None:
    for i, text in enumerate((request(), response(), request(name="OtherRequest"))):
        (tmp_path / f"{i}.json").write_text(text)
    _, errors, notes = check_files(tmp_path / f"{i}.json" for i in range(3))
    assert ([error.rule for error in errors], notes) == (["E-50"], [])


@pytest.mark.requirement("E-54")
def test_two_metadata_records_with_the_same_key_are_rejected(tmp_path: Path) -> None:
    assert errors_of(tmp_path, metadata("A", apiKey=1), metadata("B", apiKey=1)) == [("E-54", "B")]


@pytest.mark.requirement("E-62")
def test_coordinator_keys_and_values_are_pairs(tmp_path: Path) -> None:
    pair = coordinator_key(name="AKey"), value("AValue", 1)
    assert errors_of(tmp_path, *pair) == []
    assert errors_of(tmp_path, *pair, coordinator_key(name="BKey"), value("CValue", 2)) == [
        ("E-62", "BKey"),
        ("E-62", "CValue"),
    ]


def test_directories_have_separate_api_keys(tmp_path: Path) -> None:
    for module in ("metadata", "storage"):
        (tmp_path / module).mkdir()
        (tmp_path / module / "Record.json").write_text(metadata("Record", apiKey=0))
    assert len(schema.load_all(tmp_path)) == 2


@pytest.mark.requirement("E-66")
def test_a_removed_api_keeps_its_key(tmp_path: Path) -> None:
    removed = {"validVersions": "none", "flexibleVersions": "none"}
    assert errors_of(tmp_path, request(**removed), response(**removed)) == []
    assert errors_of(tmp_path, request(**removed), response(**removed), request(name="NewRequest")) == [
        ("E-50", "NewRequest")
    ]


def test_all_errors_of_all_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(message(field("int7"), flexibleVersions=None))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_text(message())
    (tmp_path / "d.json").write_bytes(b"\xff")
    with pytest.raises(ExceptionGroup, match="5 errors in message definitions") as caught:
        schema.load_all([tmp_path, tmp_path / "gone.json"])
    found = [error for error in caught.value.exceptions if isinstance(error, SchemaError)]
    assert [(Path(error.file or "").name, error.rule) for error in found] == [
        ("a.json", "E-28"),
        ("a.json", "E-10"),
        ("b.json", "E-01"),
        ("d.json", "E-01"),
        ("gone.json", "E-01"),
    ]


def test_load_returns_a_message_or_raises_its_first_error(tmp_path: Path) -> None:
    path = tmp_path / "Order.json"
    path.write_text(message(field()))
    assert schema.load(path).struct.fields[0].attr == "amount"
    path.write_text(message(field("int7")))
    with pytest.raises(SchemaError) as caught:
        schema.load(str(path))
    assert (caught.value.rule, caught.value.file) == ("E-10", str(path))
