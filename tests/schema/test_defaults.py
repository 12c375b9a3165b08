"""Defaults in every notation (docs/spec/messages.md, 1.8)."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest
from tests.schema.writing import field, message

from kwire import schema
from kwire.schema.defaults import parse_default
from kwire.schema.model import STRUCT_DEFAULTS

VALUES = [
    ("bool", "", False),
    ("bool", "TRUE", True),
    ("int8", "", 0),
    ("int8", "-128", -128),
    ("int8", "+5", 5),
    ("int8", "0x7f", 127),
    ("int8", "017", 15),
    ("int8", "-017", -15),
    ("int16", "0x7FFF", 32767),
    ("uint16", "65535", 65535),
    ("uint32", "4294967295", 4294967295),
    ("uint32", "0xffffffff", 4294967295),
    ("int64", "-9223372036854775808", -(2**63)),
    ("float64", "", 0.0),
    ("float64", "1e3", 1000.0),
    ("float64", "0x1p3", 8.0),
    ("float64", "1d", 1.0),
    ("float64", " .5f ", 0.5),
    ("float64", "-Infinity", -math.inf),
    ("float64", "0x1p9999", math.inf),
    ("uuid", "", UUID(int=0)),
    ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ", UUID(int=1)),
    ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ==", UUID(int=1)),
    ("string", "", ""),
    ("string", "hello world", "hello world"),
    ("string", "null", None),
    ("string", " null", " null"),
    ("bytes", "", b""),
    ("bytes", "null", None),
    ("records", "", None),
    ("records", "ignored altogether", None),
    ("Item", "", STRUCT_DEFAULTS),
    ("Item", "null", None),
]


@pytest.mark.requirement("E-46", "T-06", "T-07", "SDEF-84", "SDEF-85", "SDEF-86", "SDEF-87", "SDEF-88", "SDEF-89")
@pytest.mark.requirement("SDEF-90", "SDEF-92", "SDEF-94", "SDEF-95", "SDEF-96", "SDEF-98", "SDEF-99")
@pytest.mark.parametrize(("type_name", "text", "value"), VALUES)
def test_defaults_have_javas_values(type_name: str, text: str, value: Any) -> None:
    found = parse_default(text, type_name, is_array=False)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.requirement("SDEF-91", "SDEF-100")
def test_arrays_default_to_empty_or_null() -> None:
    assert parse_default("", "int32", is_array=True) == ()
    assert parse_default("null", "int32", is_array=True) is None


def test_nan_is_a_default() -> None:
    found = parse_default("NaN", "float64", is_array=False)
    assert isinstance(found, float)
    assert math.isnan(found)


def test_json_scalars_are_valid_defaults() -> None:
    spec = schema.parse(
        message(
            field(default=-1),
            field("bool", "Flag", default=True),
            field("float64", "Ratio", default=1.5e2),
            field("string", "Text", default=False),
            field("string", "None", default=None),
        )
    )
    assert [f.default for f in spec.struct.fields] == [-1, True, 150.0, "false", ""]


@pytest.mark.requirement("E-48", "SDEF-93")
def test_null_is_a_valid_default_if_all_versions_are_nullable() -> None:
    spec = schema.parse(message(field("string", versions="1+", nullableVersions="0+", default="null")))
    assert spec.struct.fields[0].default is None
