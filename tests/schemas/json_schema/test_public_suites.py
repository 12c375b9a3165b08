"""Public test suites: JSONTestSuite for parsing, JSON-Schema-Test-Suite for checking (tests/data/public)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests import golden
from tests.fuzz.json_values import compare, left_to_python

from kwire import native
from kwire.errors import KwireError
from kwire.schemas.json_schema import Decoder, parse
from kwire.schemas.json_schema.checking import Checker

DIALECTS = {
    "draft3": "http://json-schema.org/draft-03/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
SCHEMAS = [line for line in golden.lines("public/json-schema.jsonl.gz") if "draft" in line]
REMOTES = [line for line in golden.lines("public/json-schema.jsonl.gz") if "remote" in line]

WITH_PATTERNS = "unevaluatedProperties is refused beside patternProperties: jsonschema would run the patterns itself"
DIFFERENCES = {
    ("draft4", "refRemote", "Location-independent identifier in remote ref"): "a remote schema without $schema",
    ("remote HTTP ref with nested absolute ref",): "the $id of a schema inside a reference is not known by its URL",
    ("schema that uses custom metaschema with with no validation vocabulary",): "vocabularies: jsonschema has none",
    ("pattern with Unicode property escape requires unicode mode",): "RE2 knows \\p{L}, not \\p{Letter}",
    ("patternProperties with Unicode property escape",): "RE2 knows \\p{L}, not \\p{Letter}",
    ("draft2019-09", "unevaluatedProperties", "unevaluatedProperties with adjacent non-bool additionalProperties"): (
        "jsonschema does not count the properties that additionalProperties has checked"
    ),
    ("unevaluatedProperties with adjacent patternProperties",): WITH_PATTERNS,
    ("unevaluatedProperties with nested patternProperties",): WITH_PATTERNS,
    ("dynamic evalation inside nested refs",): WITH_PATTERNS,
    ("unevaluatedProperties can see annotations from if without then and else",): WITH_PATTERNS,
    ("Evaluated properties collection needs to consider instance location with patternProperties",): WITH_PATTERNS,
}
"""Cases of which some test is decided otherwise, by description, or by draft, file and description."""


def difference(case: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the key in DIFFERENCES of a case."""
    keys = (case["description"],), (case["draft"], case["file"], case["description"])
    return next((key for key in keys if key in DIFFERENCES), None)


def test_json_is_parsed_as_a_public_suite_expects() -> None:
    """Of 318 texts, those that must be read are read, the invalid ones refused, and compiled code agrees on each."""
    decoder = Decoder(parse("{}"))
    for line in golden.lines("public/json-parsing.jsonl.gz"):
        data, wanted = golden.unpack(line["b64"]), line["name"][0]
        assert data is not None
        compare(decoder, [data])
        if wanted != "i":
            assert _is_read(decoder, data) == (wanted == "y"), line["name"]
        if wanted == "n" and native.LEVEL is not None:
            assert left_to_python(decoder, [data]) == [0], line["name"]


def _is_read(decoder: Decoder, data: bytes) -> bool:
    try:
        decoder.read(data)
    except KwireError:
        return False
    return True


@pytest.mark.sampled
@pytest.mark.parametrize("draft", DIALECTS)
def test_schemas_are_checked_as_a_public_suite_expects(draft: str) -> None:
    """All values of the suite are accepted or refused as it says, except those of the differences, which exist."""
    remotes = {
        f"http://localhost:1234/{line['remote']}": json.dumps(line["schema"])
        for line in REMOTES
        if not line["remote"].startswith("draft") or line["remote"].startswith(f"{draft}/")
    }
    cases = [line for line in SCHEMAS if line["draft"] == draft]
    wrong = [f"{case['file']}: {case['description']}" for case in cases if not _is_right(case, remotes)]
    expected = [f"{case['file']}: {case['description']}" for case in cases if difference(case)]
    assert wrong == expected


def _is_right(case: dict[str, Any], remotes: dict[str, str]) -> bool:
    """Whether every test of a case is decided as the suite says; an unusable schema decides nothing."""
    schema = case["schema"]
    if isinstance(schema, dict):
        schema = {"$schema": DIALECTS[case["draft"]], **schema}
    try:
        checker = Checker(parse(json.dumps(schema), remotes))
    except KwireError:
        return False
    return all(_is_valid(checker, data) == is_valid for _, data, is_valid in case["tests"])


def _is_valid(checker: Checker, data: Any) -> bool:
    try:
        checker.check(data, len(json.dumps(data)))
    except KwireError:
        return False
    return True
