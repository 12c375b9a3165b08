"""How many bytes a value takes at least, and whether all values of a type take the same."""

from __future__ import annotations

from kwire.schemas.avro.model import Schema

__all__ = ["Sizes"]

FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class Sizes:
    """Sizes of the values of schemas; remembers them, since named types are used repeatedly."""

    def __init__(self) -> None:
        self._fixed: dict[Schema, int | None] = {}
        self._least: dict[Schema, int] = {}

    def fixed(self, schema: Schema) -> int | None:
        """Return the size that all values have, None if it varies."""
        if schema not in self._fixed:
            self._fixed[schema] = None  # of a record that contains itself
            self._fixed[schema] = self._of(schema)
        return self._fixed[schema]

    def _of(self, schema: Schema) -> int | None:
        if schema.type == "fixed":
            return schema.size
        if schema.type != "record":
            return FIXED.get(schema.type)
        total = 0
        for each in schema.fields:
            size = self.fixed(each.schema)
            if size is None:
                return None
            total += size
        return total

    def least(self, schema: Schema) -> int:
        """Return the size of the smallest value."""
        if (size := self.fixed(schema)) is not None:
            return size
        if schema not in self._least:
            self._least[schema] = 0
            if schema.type == "record":
                self._least[schema] = sum(self.least(each.schema) for each in schema.fields)
            elif schema.type == "union":
                self._least[schema] = 1 + min((self.least(each) for each in schema.branches), default=0)
            else:
                self._least[schema] = 1
        return self._least[schema]
