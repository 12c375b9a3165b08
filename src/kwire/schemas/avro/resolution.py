"""Schema resolution: how values of a writer's schema become values of a reader's.

Source: Avro 1.12, "Schema Resolution"; org.apache.avro.Resolver, which decides where the specification leaves a choice:
records match whatever their names are, unless names are strict; of a reader's union, a branch of the same type comes
before one of a promotion.
"""

from __future__ import annotations

from typing import Literal, get_args

from kwire.errors import OptionError
from kwire.schemas.avro.model import NO_DEFAULT, Schema
from kwire.schemas.avro.parsing import fail

__all__ = ["Branches", "Names", "Steps", "check_names", "field_of", "mismatch", "promotes"]

Names = Literal["any", "strict"]
"""Which names match. any: of records all, of enums and fixed types those equal without their namespaces. strict: full
names. Aliases of the reader's match in both."""

MAX_STEPS = 5_000_000
"""Comparisons of fields, symbols, aliases and defaults in one plan: two seconds or so."""
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


def check_names(names: str) -> None:
    """Raise OptionError for a value that is not one of Names."""
    if names not in get_args(Names):
        raise OptionError(f"names: expected one of {', '.join(get_args(Names))}, got '{names}'")


def promotes(writer: str, reader: str) -> bool:
    """Return whether a primitive type can be read as another one."""
    return writer == reader or reader in PROMOTIONS.get(writer, ())


def same_name(writer: Schema, reader: Schema, names: Names) -> bool:
    """Return whether the names of a type match, or an alias of the reader's does."""
    if names == "any" and (writer.type == "record" or writer.short_name == reader.short_name):
        return True
    return writer.name == reader.name or writer.name in reader.aliases


def mismatch(writer: Schema, reader: Schema, names: Names) -> str | None:
    """Return why a writer's type cannot be read as a reader's, None if it can, apart from the types inside.

    Neither is a union.
    """
    if not promotes(writer.type, reader.type):
        return f"the writer's {writer} cannot be read as {reader}"
    if not same_name(writer, reader, names):
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


class Steps:
    """Counts the steps that planning takes, so that no pair of schemas takes minutes."""

    def __init__(self) -> None:
        self.left = MAX_STEPS

    def take(self, count: int) -> None:
        """Count steps. Raises InvalidSchema after MAX_STEPS."""
        self.left -= count
        if self.left < 0:
            raise fail(f"reading one schema as the other takes more than {MAX_STEPS} steps; ask for fewer columns")


class Branches:
    """The branches of a reader's union, by what finds them: a search takes the same time in a union of any length."""

    def __init__(self, union: Schema, names: Names) -> None:
        self._is_strict = names == "strict"
        self._types: dict[str, int] = {}
        self._names: dict[tuple[str, str], int] = {}
        self._short_names: dict[tuple[str, str], list[int]] = {}
        self._needs: dict[int, list[tuple[str, ...]]] = {}
        self._needed_first: dict[str, list[int]] = {}
        self._needless: list[int] = []
        for index, each in enumerate(union.branches):
            self._types.setdefault(each.type, index)
            if not each.name:
                continue
            for name in (each.name, *each.aliases):
                self._names.setdefault((each.type, name), index)
            self._short_names.setdefault((each.type, each.short_name), []).append(index)
            if each.type == "record":
                self._add_needs(index, each)

    def _add_needs(self, index: int, record: Schema) -> None:
        """Remember the names of the fields that a writer's record has to have."""
        needs = [(each.name, *each.aliases) for each in record.fields if each.default is NO_DEFAULT]
        self._needs[index] = needs
        if not needs:
            self._needless = self._needless or [index]
        for name in needs[0] if needs else ():
            self._needed_first.setdefault(name, []).append(index)

    def find(self, writer: Schema, steps: Steps) -> int | None:
        """Return the index of the branch for a writer's type, which is not a union; None without one."""
        if not writer.name:
            promoted = (self._types[each] for each in PROMOTIONS.get(writer.type, ()) if each in self._types)
            return self._types[writer.type] if writer.type in self._types else min(promoted, default=None)
        branch = self._names.get((writer.type, writer.name))
        if branch is not None or self._is_strict:
            return branch
        same_name = self._short_names.get((writer.type, writer.short_name), [])
        if writer.type != "record":
            return same_name[-1] if same_name else None
        written = {each.name for each in writer.fields}
        steps.take(len(written))
        similar = {each for name in written for each in self._needed_first.get(name, ())}
        for index in (*reversed(same_name), *sorted(similar.union(self._needless))):
            steps.take(1 + len(self._needs[index]))
            if all(any(name in written for name in names) for names in self._needs[index]):
                return index
        return None


def field_of(record: Schema, writer: Schema) -> dict[str, str]:
    """Return the writer's field that each of the reader's fields is read from, by name."""
    written = {each.name for each in writer.fields}
    writer_names = {}
    for each in record.fields:
        for name in (each.name, *each.aliases):
            if name in written:
                writer_names[each.name] = name
                break
    return writer_names
