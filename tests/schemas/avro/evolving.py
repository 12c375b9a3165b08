"""Readers' schemas drawn from a writer's: fields removed, added, renamed and promoted."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
}
ADDED: tuple[tuple[Any, Any], ...] = (
    ("long", -7),
    ("string", "ä default"),
    ("bytes", "\u00ff\u0000"),
    ("boolean", True),
    ("double", 2.5),
    (["null", "string"], None),
    (["string", "null"], "here"),
    ({"type": "array", "items": "int"}, [1, -2]),
    ({"type": "map", "values": "string"}, {"k": "v"}),
    ({"type": "record", "name": "Added", "fields": [{"name": "x", "type": "int", "default": 3}]}, {}),
)


def evolved(schema: Any, source: Random) -> Any:
    """Return a reader's schema that can read all values of a writer's schema."""
    return _Evolution(source).schema(copy.deepcopy(schema))


class _Evolution:
    def __init__(self, source: Random) -> None:
        self.source = source
        self.added = 0

    def chance(self, share: float) -> bool:
        return self.source.random() < share

    def schema(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [each if each == "null" else self.inside(each) for each in schema]
        found = self.inside(schema)
        if found != "null" and self.chance(0.15):
            return ["null", found] if self.chance(0.5) else [found, "null"]
        return found

    def inside(self, schema: Any) -> Any:
        if isinstance(schema, str):
            promoted = PROMOTIONS.get(schema)
            return self.source.choice(promoted) if promoted and self.chance(0.3) else schema
        if schema["type"] == "record":
            schema["fields"] = self.fields(schema["fields"])
        for key in ("items", "values"):
            if key in schema:
                schema[key] = self.schema(schema[key])
        if schema["type"] == "enum" and self.chance(0.3):
            schema["default"] = schema["symbols"][0]
            schema["symbols"] = [*schema["symbols"][:1], "NEW"]
        return schema

    def fields(self, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [each for each in fields if self.chance(0.85)]
        for each in kept:
            each["type"] = self.schema(each["type"])
            if self.chance(0.15):
                each["aliases"] = [each["name"]]
                each["name"] = f"renamed_{each['name']}"
        if self.chance(0.4):
            self.added += 1
            kind, default = copy.deepcopy(self.source.choice(ADDED))
            if isinstance(kind, dict) and "name" in kind:
                kind["name"] = f"Added{self.added}"
            kept.append({"name": f"added{self.added}", "type": kind, "default": default})
        if self.chance(0.3):
            self.source.shuffle(kept)
        return kept
