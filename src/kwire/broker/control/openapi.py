"""The OpenAPI description of the control server, made from its routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kwire.broker.control.routes import CONDITIONS, Route
from kwire.broker.faults.effects import Kind

__all__ = ["description"]

OPENAPI = "3.1.0"
INTEGERS = {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
NAMES = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
MEMBERS: dict[str, dict[str, Any]] = {
    "version": INTEGERS,
    "node": INTEGERS,
    "partition": INTEGERS,
    "where": {"type": "object"},
    "skip": {"type": "integer"},
    "on_call": {"type": "integer"},
    "every": {"type": "integer"},
    "probability": {"type": "number"},
    "seed": {"type": "integer"},
    "times": {"type": ["integer", "null"]},
}
OF_FAULTS: dict[str, dict[str, Any]] = {
    "effect": {"enum": [kind.value for kind in Kind]},
    "api": NAMES,
    "error": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    "whole": {"type": "boolean"},
    "after": {"type": "boolean"},
    "response": {"type": "object"},
    "changes": {"type": "object"},
    "throttle_ms": {"type": "integer"},
    "delay_ms": {"type": "number"},
    "sent_bytes": {"type": "integer"},
    "bytes_per_second": {"type": "integer"},
}
RESPONSES = {
    "200": "done",
    "400": "the request cannot be met; `error` says why",
    "403": "sent by a web page, or for another host",
    "404": "no such path, fault, topic or group",
    "408": "the timeout has passed",
    "409": "refused as Kafka does; `code` is the error",
    "411": "Transfer-Encoding is not supported: send a Content-Length",
    "413": "the body is too large",
    "415": "the body is not application/json",
    "503": "too many connections, or the broker is not running",
}


def description(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the description of routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route)
    return {
        "openapi": OPENAPI,
        "info": {"title": "kwire --control", "version": "1", "description": "See docs/faults.md of kwire."},
        "paths": paths,
    }


def operation(route: Route) -> dict[str, Any]:
    """Return the description of one route."""
    path = [{"name": name, "in": "path", "required": True} for name in re.findall(r"\{(\w+)\}", route.path)]
    parameters = [*path, *({"name": name, "in": "query", "required": False} for name in route.query)]
    shown: dict[str, Any] = {
        "operationId": route.act.__name__,
        "summary": route.summary,
        "parameters": [{**each, "schema": {"type": "string"}} for each in parameters],
        "responses": {
            code: {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}
            for code, text in RESPONSES.items()
        },
    }
    members = members_of(route)
    if members:
        schema = {"type": "object", "properties": members, "required": list(route.required)}
        shown["requestBody"] = {"content": {"application/json": {"schema": schema}}, "required": bool(route.required)}
    return shown


def members_of(route: Route) -> dict[str, Any]:
    """Return the members of a body with their types."""
    if route.body is not None:
        return {name: {"type": kind} for name, kind in route.body.items()}
    conditions = {name: MEMBERS.get(name, {"type": "string"}) for name in CONDITIONS}
    if "effect" in route.required:
        return {**OF_FAULTS, **conditions}
    return {"api": NAMES, "timeout_ms": {"type": "integer"}, **conditions}
