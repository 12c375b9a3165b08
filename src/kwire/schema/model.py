"""A checked message definition, the input of the codec, the generated classes and the evolution rules.

    Message            one definition: name, kind, api key, versions
      struct: Struct   the message's own fields
      structs          all other structs, common ones first, each after those it uses
        fields         in wire order
        class_fields   in the order of the class: ever-tagged fields moved to the end, in tag order

Everything is immutable. Message and Struct compare by identity, so they are cheap cache keys; two definitions
are compared through `kwire.schema.render`. A Struct appears once, however often it is used: one class for all versions.

`Field.default` has the type of the attribute: bool, int, float, str, bytes, uuid.UUID; None is null, `()` an empty
array, STRUCT_DEFAULTS a struct of defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final
from uuid import UUID

from kwire.schema.names import camel_name
from kwire.schema.versions import NONE, Versions

INTEGERS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
"""Integer types with their smallest and largest value."""

PRIMITIVES: Final = frozenset({*INTEGERS, "bool", "float64", "uuid", "string", "bytes", "records"})
"""Every type that is neither a struct nor an array."""

ENCODABLE: Final = ("int16", "int32", "int64")
"""Types of fields, and of elements of arrays, that may have another encoding (KIP-625), narrowest first."""

ZERO_UUID: Final = UUID(int=0)


class StructDefaults(Enum):
    """One value: a struct in which every field has its default."""

    STRUCT_DEFAULTS = "defaults"


STRUCT_DEFAULTS: Final = StructDefaults.STRUCT_DEFAULTS

Default = bool | int | float | str | bytes | UUID | tuple[()] | StructDefaults | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """A field of a struct, for all versions.

    name: as in the definition; attr: the attribute of the class (snake case); json_name: the key in Kafka's JSON form.
    type: element type: one of PRIMITIVES, or the struct's name with `struct` set. is_array: `[]type`.
    versions, nullable, tagged: ranges as written, not clipped to the message's valid versions. Missing versions are the
    tagged ones.
    tag: the tag if the field is tagged in some versions (and positional in the other ones), else None.
    flexible: the field's own flexible versions instead of the message's (string and bytes only), or None.
    encodings: (versions, name) of KIP-625, sorted, covering `versions`; empty for the fixed encoding of the type in all
        versions. For an array they apply to its elements.
    line, default_text: where the field is in its file, and its default as written there.
    """

    name: str
    attr: str
    type: str
    is_array: bool = False
    struct: Struct | None = None
    versions: Versions
    nullable: Versions = NONE
    tag: int | None = None
    tagged: Versions = NONE
    flexible: Versions | None = None
    default: Default = 0
    ignorable: bool = False
    map_key: bool = False
    entity_type: str = "unknown"
    zero_copy: bool = False
    encodings: tuple[tuple[Versions, str], ...] = ()
    about: str = ""
    line: int = 0
    default_text: str = ""

    @property
    def json_name(self) -> str:
        """The name with its first letter lowered: `ISR` is `iSR` (J-01)."""
        return camel_name(self.name)

    @property
    def type_text(self) -> str:
        """The type as a definition writes it: `[]int32`."""
        return f"[]{self.type}" if self.is_array else self.type

    @property
    def is_keyed(self) -> bool:
        """Whether it is an array whose elements have map keys."""
        return self.is_array and self.struct is not None and bool(self.struct.map_keys)

    @property
    def may_be_null(self) -> bool:
        """Whether it may be null in some version, or is by default, as records are."""
        return bool(self.nullable) or self.default is None

    def encoding(self, version: int) -> str | None:
        """Return the encoding of KIP-625 in a version, such as "packed32"; None for the fixed encoding of the type.

        The encoding of an array is that of its elements.
        """
        for versions, name in self.encodings:
            if version in versions:
                return None if name == own_encoding(self.type) else name
        return None

    def wire_type(self, version: int) -> str:
        """The encoding of an integer, the type's own included; else the type."""
        return self.encoding(version) or (own_encoding(self.type) if self.type in ENCODABLE else self.type)

    def is_flexible(self, message: Message, version: int) -> bool:
        """Whether the field has the compact form in a version of the message."""
        return version in (message.flexible if self.flexible is None else self.flexible)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Struct:
    """The fields of a message, or of a struct in it. versions: as written; for an inline struct, its field's."""

    name: str
    versions: Versions
    fields: tuple[Field, ...]
    is_common: bool = False

    @property
    def class_fields(self) -> tuple[Field, ...]:
        """Fields in the order of the class: positional ones as in the definition, then ever-tagged ones by tag."""
        tagged = sorted((f for f in self.fields if f.tag is not None), key=lambda f: f.tag or 0)
        return (*(f for f in self.fields if f.tag is None), *tagged)

    @property
    def map_keys(self) -> tuple[Field, ...]:
        """The fields by which `find` looks up an element; empty if there are none."""
        return tuple(f for f in self.fields if f.map_key)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Message:
    """A message definition. structs: all but the message's own, each once, after those it uses."""

    name: str
    kind: str
    api_key: int | None = None
    valid: Versions
    flexible: Versions = NONE
    deprecated: Versions = NONE
    struct: Struct
    structs: tuple[Struct, ...] = ()
    listeners: tuple[str, ...] = ()
    latest_version_unstable: bool = False
    header_versions: tuple[tuple[Versions, int], ...] = ()
    file: str | None = None
    line: int = 0

    @property
    def stable(self) -> Versions:
        """The versions that a broker supports unless unstable ones are enabled."""
        if self.latest_version_unstable:
            return self.valid.intersect(Versions(0, self.valid.highest - 1))
        return self.valid

    def header_version(self, version: int) -> int:
        """Return the version of the header before a version of a request or response.

        Flexible versions have request header 2 and response header 1, others 1 and 0 (W-80, W-81). ControlledShutdown
        version 0 has request header 0; ApiVersions responses always have 0, because the client does not know yet which
        versions the broker supports. A definition's headerVersions override all that (W-86).
        """
        for versions, header in self.header_versions:
            if version in versions:
                return header
        flexible = version in self.flexible
        if self.kind == "request":
            return 0 if (self.api_key, version) == (7, 0) else 1 + flexible
        return 0 if self.api_key == 18 else int(flexible)


def own_encoding(type_name: str) -> str:
    """The fixed encoding of an integer type: fixed32 of int32 (I-02)."""
    return f"fixed{type_name.removeprefix('int')}"


def normal_encodings(type_name: str, encodings: Iterable[tuple[Versions, str]]) -> tuple[tuple[Versions, str], ...]:
    """Convert ranges that do not overlap to the form of `Field.encodings`.

    They are sorted, neighbours with one name are merged, and the result is empty if all are the type's own encoding.
    """
    merged: list[tuple[Versions, str]] = []
    for versions, name in sorted(encodings, key=lambda pair: pair[0].lowest):
        if merged and merged[-1][1] == name and merged[-1][0].highest + 1 == versions.lowest:
            versions = Versions(merged.pop()[0].lowest, versions.highest)
        merged.append((versions, name))
    return () if all(name == own_encoding(type_name) for _, name in merged) else tuple(merged)


def blocks(versions: Versions, *messages: Message) -> list[Versions]:
    """Cut versions into ranges within which every version of the messages is defined alike.

    A message may have 32,767 versions, and a real one has a handful of such blocks.
    """
    starts = {versions.lowest} if versions else set()
    for each in (each for message in messages for each in _ranges(message) if each):
        starts |= {start for start in (each.lowest, each.highest + 1) if start in versions}
    return [Versions(a, b - 1) for a, b in pairwise([*sorted(starts), versions.highest + 1])]


def _ranges(message: Message) -> Iterator[Versions]:
    yield message.flexible
    yield Versions(0, 0)  # ControlledShutdown's first version has a separate header
    yield from (versions for versions, _ in message.header_versions)
    for struct in (message.struct, *message.structs):
        yield struct.versions
        for field in struct.fields:
            yield from (field.versions, field.nullable, field.tagged, field.flexible or NONE)
            yield from (versions for versions, _ in field.encodings)


def default_row(struct: Struct) -> list[object]:
    """Return the defaults of a struct in class order, nested structs as lists, unknown tagged fields last.

    This is the array that msgspec writes for such an object.
    """
    return [*(default_value(field) for field in struct.class_fields), []]


def default_value(field: Field) -> object:
    """Return the field's default; a struct as default_row, an array as a new list."""
    if field.default is STRUCT_DEFAULTS:
        assert field.struct is not None
        return default_row(field.struct)
    return [] if field.default == () else field.default


__all__ = [
    "ENCODABLE",
    "INTEGERS",
    "PRIMITIVES",
    "STRUCT_DEFAULTS",
    "ZERO_UUID",
    "Default",
    "Field",
    "Message",
    "Struct",
    "StructDefaults",
    "blocks",
    "default_row",
    "default_value",
    "normal_encodings",
    "own_encoding",
]
