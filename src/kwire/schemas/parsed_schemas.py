"""The schemas of a registry, parsed once each, with what they refer to."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from kwire.errors import InvalidSchema
from kwire.schemas.formats import ParsedSchema, ValueSchema, parse_schema
from kwire.schemas.registered import RegisteredSchema, SchemaId
from kwire.schemas.registry import Registry
from kwire.schemas.unions import merge_types

__all__ = ["ParsedSchemas"]


class ParsedSchemas:
    """The parsed schemas of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._by_id: dict[SchemaId, ParsedSchema | InvalidSchema] = {}

    def get(self, schema_id: SchemaId) -> ParsedSchema:
        """Return the schema with an id. Raises UnknownSchema, InvalidSchema; RegistryError if it cannot be read."""
        parsed = self._by_id.get(schema_id)
        if parsed is None:
            try:
                parsed = self.parse(self._registry.schema(schema_id))
            except InvalidSchema as error:
                parsed = error
            self._by_id[schema_id] = parsed
        if isinstance(parsed, InvalidSchema):
            raise InvalidSchema(*parsed.args)
        return parsed

    def parse(self, registered: RegisteredSchema) -> ParsedSchema:
        """Parse a schema. Raises InvalidSchema, RegistryError."""
        return parse_schema(registered, self._registry.references(registered))

    def union_type(self, schemas: Iterable[RegisteredSchema], message: str | None = None) -> pa.DataType:
        """Return the type with the fields of several schemas. Raises InvalidSchema, RegistryError."""
        return merge_types(each.arrow_type() for each in self.named(schemas, message))

    def named(self, schemas: Iterable[RegisteredSchema], message: str | None = None) -> list[ValueSchema]:
        """Return the schemas of values. message: as in ParsedSchema.named. Raises InvalidSchema, RegistryError."""
        return [self.parse(each).named(message) for each in schemas]
