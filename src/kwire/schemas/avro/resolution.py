"""Schema resolution: how values of a writer's schema become those of a reader's.

Source: Avro 1.12, "Schema Resolution"; org.apache.avro.Resolver, which decides where the specification leaves a choice:
records match whatever their names are; of a reader's union, a branch of the same type comes before one of a promotion.
"""

from __future__ import annotations

from kwire.schemas.avro.model import Field, Schema

__all__ = ["branch_of", "field_of", "mismatch", "promotes"]

PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
UNIT_FAMILIES = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "timestamp-nanos": "timestamp",
    "local-timestamp-millis": "local-timestamp",
    "local-timestamp-micros": "local-timestamp",
    "local-timestamp-nanos": "local-timestamp",
    "time-millis": "time",
    "time-micros": "time",
}


def promotes(writer: str, reader: str) -> bool:
    """Return whether a primitive type can be read as another one."""
    return writer == reader or reader in PROMOTIONS.get(writer, ())


def same_name(writer: Schema, reader: Schema) -> bool:
    """Return whether names match: without namespaces, or through an alias of the reader's."""
    return writer.short_name == reader.short_name or writer.name in reader.aliases


def mismatch(writer: Schema, reader: Schema) -> str | None:
    """Return why a writer's type cannot be read as a reader's, None if it can, apart from the types inside.

    Neither is a union.
    """
    if not promotes(writer.type, reader.type):
        return f"the writer's {writer} cannot be read as {reader}"
    if writer.type in ("enum", "fixed") and not same_name(writer, reader):
        return f"the writer's {writer} has another name than the reader's {reader}; add an alias to the reader's"
    if writer.type == "fixed" and writer.size != reader.size:
        return f"{reader}: the writer's has {writer.size} bytes, the reader's {reader.size}"
    return _logical_mismatch(writer, reader)


def _logical_mismatch(writer: Schema, reader: Schema) -> str | None:
    one, other = writer.logical, reader.logical
    if one is None or other is None or one == other or one.name in ("uuid", "duration"):
        return None
    if one.name == other.name == "decimal":
        return None if one.scale == other.scale else f"the writer's {one} has another scale than the reader's {other}"
    family = UNIT_FAMILIES.get(one.name)
    if family is not None and family == UNIT_FAMILIES.get(other.name):
        return None
    return f"the writer's {one} cannot be read as {other}"


def _matches(writer: Schema, reader: Schema) -> bool:
    """Return whether a writer's record has all fields that a reader's record needs."""
    written = {each.name for each in writer.fields}
    return all(
        bool(each.default != NOTHING.default) or each.name in written or any(alias in written for alias in each.aliases)
        for each in reader.fields
    )


NOTHING = Field(name="", schema=Schema(type="null"))


def branch_of(writer: Schema, branches: tuple[Schema, ...]) -> int | None:
    """Return the index of the reader's branch for a writer's type, which is not a union; None without one."""
    similar: int | None = None
    for index, branch in enumerate(branches):
        if branch.type != writer.type:
            continue
        if not writer.name:
            return index
        if branch.name == writer.name or writer.name in branch.aliases:
            return index
        is_similar = _matches(writer, branch) if writer.type == "record" else same_name(writer, branch)
        if is_similar and (similar is None or same_name(writer, branch)):
            similar = index
    if similar is not None:
        return similar
    for index, branch in enumerate(branches):
        if branch.type != writer.type and promotes(writer.type, branch.type):
            return index
    return None


def field_of(record: Schema, writer: Schema) -> dict[str, str]:
    """Return the writer's field that each of the reader's fields is read from, by name."""
    written = {each.name for each in writer.fields}
    found = {}
    for each in record.fields:
        for name in (each.name, *each.aliases):
            if name in written:
                found[each.name] = name
                break
    return found
