"""Definitions for tests: a valid one with some attributes replaced."""

from __future__ import annotations

import json
from typing import Any


def message(*fields: dict[str, Any], **attributes: Any) -> str:
    """Return a valid data message with these fields and attributes; None removes an attribute."""
    content: dict[str, Any] = {
        "type": "data",
        "name": "Order",
        "validVersions": "0-3",
        "flexibleVersions": "1+",
        "fields": list(fields),
        **attributes,
    }
    return json.dumps({key: value for key, value in content.items() if value is not None}, indent=1)


def field(type_: str = "int32", name: str = "Amount", versions: str | None = "0+", **attributes: Any) -> dict[str, Any]:
    """Return a valid field; None removes an attribute."""
    content = {"name": name, "type": type_, "versions": versions, **attributes}
    return {key: value for key, value in content.items() if value is not None}


def tagged(tag: int, **attributes: Any) -> dict[str, Any]:
    return field(name=f"Tagged{tag}", versions="1+", taggedVersions="1+", tag=tag) | attributes


def common(name: str, *fields: dict[str, Any], versions: str | None = "0+", **attributes: Any) -> dict[str, Any]:
    content = {"name": name, "versions": versions, "fields": list(fields), **attributes}
    return {key: value for key, value in content.items() if value is not None}


def request(*fields: dict[str, Any], **attributes: Any) -> str:
    return message(*fields, **{"type": "request", "name": "OrderRequest", "apiKey": 9000, **attributes})


def coordinator_key(**attributes: Any) -> str:
    content = {"type": "coordinator-key", "validVersions": "0", "flexibleVersions": "none", "apiKey": 1}
    return message(**{**content, **attributes})


def headers(versions: dict[str, Any], **attributes: Any) -> str:
    return request(**{"headerVersions": versions, **attributes})


INNER = [field(name="Inner")]
