"""What every generated class is made of.

A class stands for one struct of a definition in all its versions. The codec relies on this layout:

* a `msgspec.Struct` with `array_like=True`: its MessagePack and JSON forms are arrays in the order of the class;
* attributes in the order of `kwire.schema.model.Struct.class_fields`: positional fields as in the definition, then the
  fields that are tagged in any version, by tag; last of all `unknown_tagged_fields: list[tuple[int, bytes]]`;
* integers are `int`, uuid is `uuid.UUID`, float64 is `float` (an int is taken), bytes and records are `bytes`;
  what may be null in any version, or is null by default, has `| None`;
* an array whose elements have map keys is a `Keyed` list: a plain list in the codec's eyes, a KeyedList to whoever
  reads the attribute;
* a Message also has SPEC (`kwire.schema.model.Message`, built from the definition's text at first use), API_KEY,
  VALID_VERSIONS, FLEXIBLE_VERSIONS, and its other structs' classes as attributes under their names.

Messages know their codec only as `kwire.plan.codec(spec, version, cls)`, asked for at the first use of a version:

    .decode(data, views=False, lenient=False) -> object         all of data
    .decode_from(data, pos, views=False, lenient=False) -> (object, position after it)
    .encode(obj) -> bytes
    .encoded_size(obj) -> int

so importing a message imports neither the codec nor numba. `views` gives bytes and records as memoryviews of `data`.

The classes are outside the garbage collector's care (`gc=False`), which is a third of the time of building them: an
object that is put inside itself will not be freed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload
from uuid import UUID

import msgspec

from kwire.errors import UnsupportedVersion
from kwire.messages.keyed import Keyed, KeyedList, NullableKeyed, keyed, with_find
from kwire.messages.unknown_fields import NO_UNKNOWN_FIELDS, UnknownFieldsAttribute
from kwire.schema.versions import NONE, Versions

if TYPE_CHECKING:
    from typing import Self

    from kwire.schema.model import Message as MessageSpec

__all__ = [
    "NO_UNKNOWN_FIELDS",
    "ZERO_UUID",
    "Keyed",
    "KeyedList",
    "Message",
    "NullableKeyed",
    "Struct",
    "Versions",
    "keyed",
    "with_find",
]

Buffer = bytes | bytearray | memoryview

ZERO_UUID = UUID(int=0)


class Codec(Protocol):
    """Bytes to object and back, for one version of one message; what `kwire.plan.codec` gives."""

    def decode(self, data: Buffer, views: bool = False, lenient: bool = False) -> Any: ...
    def decode_from(self, data: Buffer, pos: int, views: bool = False, lenient: bool = False) -> tuple[Any, int]: ...
    def encode(self, obj: Any) -> bytes: ...
    def encoded_size(self, obj: Any) -> int: ...


class Struct(msgspec.Struct, array_like=True, gc=False):
    """A struct of a message. Equal if all fields of all versions are, unknown tagged fields included (W-70).

    Its repr shows the fields that do not have their default.
    """

    MAP_KEYS: ClassVar[tuple[str, ...]] = ()
    """The attributes by which KeyedList.find looks an element up, in the definition's order."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = ()
    """Other releases' JSON keys: (key, attribute of the class, lowest version, highest version)."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        slot = cls.__dict__.get("unknown_tagged_fields")
        if slot is not None:
            type.__setattr__(cls, "unknown_tagged_fields", UnknownFieldsAttribute(slot))

    def __repr__(self) -> str:
        values = ((name, getattr(self, name), default) for name, default in defaults(type(self)))
        shown = (f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def defaults(cls: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """(attribute, default) of a class, in its order."""
    return tuple(
        (field.name, field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory())
        for field in msgspec.structs.fields(cls)
    )


class _Spec:
    """The checked definition of a message class: built when first asked for, then kept on the class."""

    @overload
    def __get__(self, message: None, owner: type[Message]) -> MessageSpec: ...
    @overload
    def __get__(self, message: Message, owner: type[Message]) -> MessageSpec: ...
    def __get__(self, message: Message | None, owner: type[Message]) -> MessageSpec:
        from kwire.schema.language import parse

        spec = parse(owner.DEFINITION, f"{owner.__name__}.json")
        type.__setattr__(owner, "SPEC", spec)  # in the descriptor's place, for this class
        return spec


class Message(Struct):
    """A message: a request, response, header, or data struct. Holds the fields of every version, and no version."""

    DEFINITION: ClassVar[str] = ""
    """The definition in Kafka's language (JSON), facts only."""
    SPEC: ClassVar[_Spec] = _Spec()
    """The same, checked, as objects."""
    API_KEY: ClassVar[int | None] = None
    """Key of the API, or record type of a metadata or coordinator record."""
    VALID_VERSIONS: ClassVar[Versions] = NONE
    FLEXIBLE_VERSIONS: ClassVar[Versions] = NONE
    """Those with tag sections and compact lengths (KIP-482)."""
    _codecs: ClassVar[dict[int, Codec]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._codecs = {}

    @classmethod
    def decode(cls, data: Buffer, *, version: int, views: bool = False, lenient: bool = False) -> Self:
        """Read a message that fills data.

        views: bytes and records as memoryviews of data instead of copies.
        lenient: take what Kafka takes and the protocol forbids (the list stands in docs/messages.md).
        Raises DecodeError with position and path; bytes left over are one. UnsupportedVersion outside VALID_VERSIONS.
        """
        message: Self = cls._codec(version).decode(data, views, lenient)
        return message

    @classmethod
    def decode_from(
        cls, data: Buffer, pos: int, *, version: int, views: bool = False, lenient: bool = False
    ) -> tuple[Self, int]:
        """Read a message at pos; returns it and the position after it. Raises as `decode` does."""
        found: tuple[Self, int] = cls._codec(version).decode_from(data, pos, views, lenient)
        return found

    def encode(self, *, version: int) -> bytes:
        """Write the message. Raises EncodeError with the path of a value that does not fit this version.

        A field that this version lacks must hold its default, unless the definition calls it ignorable (W-30, W-31).
        """
        return self._codec(version).encode(self)

    def encoded_size(self, *, version: int) -> int:
        """len(encode(version=version)), in bytes. Raises as `encode` does."""
        return self._codec(version).encoded_size(self)

    def to_json(self, *, version: int) -> dict[str, Any]:
        """Kafka's JSON form as a dict; bytes and records in base64. Unknown tagged fields are not part of it (J-06).

        Raises EncodeError as `encode` does.
        """
        from kwire.messages.json_form import write_message

        return write_message(self, version)

    @classmethod
    def from_json(cls, obj: Any, *, version: int, lenient: bool = False) -> Self:
        """The message from Kafka's JSON form, as json.load gives it.

        lenient: keep values of fields that this version lacks (T-17), and read int8 from 128 as Kafka does (T-18).
        Raises EncodeError with the path of a missing or wrong value.
        """
        from kwire.messages.json_form import read_message

        return read_message(cls, obj, version, lenient)

    @classmethod
    def _codec(cls, version: int) -> Codec:
        try:
            return cls._codecs[version]
        except KeyError:
            cls.check_version(version)
            from kwire import plan

            codec: Codec = plan.codec(cls.SPEC, version, cls)
            cls._codecs[version] = codec
            return codec

    @classmethod
    def check_version(cls, version: int) -> None:
        """Raises UnsupportedVersion unless the version is one of VALID_VERSIONS."""
        if version not in cls.VALID_VERSIONS:
            raise UnsupportedVersion(f"{cls.__name__} has versions {cls.VALID_VERSIONS}, not {version}")
