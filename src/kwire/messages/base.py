"""Base classes of all messages.

A class represents one struct of a definition, in all versions. The codec relies on this layout:

* a `msgspec.Struct` with `array_like=True`: its MessagePack and JSON forms are arrays in the order of the class;
* attributes in the order of `kwire.schema.model.Struct.class_fields`: positional fields as in the definition, then the
  fields that are tagged in any version, by tag; finally `unknown_tagged_fields: list[tuple[int, bytes]]`;
* integers are `int`, uuid is `uuid.UUID`, float64 is `float` (an int is accepted), bytes and records are `bytes`;
  fields that are null in any version, or by default, are `| None`;
* an array whose elements have map keys is a `Keyed` list: a plain list for the codec, a KeyedList for code that
  reads the attribute;
* a Message also has SPEC (`kwire.schema.model.Message`, built from the definition's text at first use), API_KEY,
  VALID_VERSIONS, FLEXIBLE_VERSIONS, and its other structs' classes as attributes under their names.

Messages get their codec from `kwire.plan.codec(spec, version, cls)` at the first use of a version:

    .decode(data, views=False, lenient=False) -> object         all of data
    .decode_from(data, pos, views=False, lenient=False) -> (object, position after it)
    .encode(obj) -> bytes
    .encoded_size(obj) -> int

so importing a message does not import the codec. With `views`, bytes and records are memoryviews of `data`.

The garbage collector does not track objects of these classes (`gc=False`), which saves a third of the time to create
them. An object that contains itself is never freed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload
from uuid import UUID

import msgspec

from kwire.errors import UnsupportedVersion
from kwire.messages.keyed import Keyed, KeyedList, NullableKeyed, keyed, with_find
from kwire.native.objects import defaults_of
from kwire.schema.versions import NONE, Versions

if TYPE_CHECKING:
    from typing import Self

    from kwire.schema.model import Message as MessageSpec

__all__ = [
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

FieldValue = Any
"""The value of a field, or an object of a message; its type is the definition's."""


class Codec(Protocol):
    """The codec of one version of a message, which `kwire.plan.codec` makes."""

    def decode(self, data: Buffer, views: bool = False, lenient: bool = False) -> FieldValue:
        """Decode an object from all of data."""

    def decode_from(self, data: Buffer, pos: int, views: bool = False, lenient: bool = False) -> tuple[FieldValue, int]:
        """Decode an object at pos; returns it and the position after it."""

    def encode(self, obj: object) -> bytes:
        """Encode an object."""

    def encoded_size(self, obj: object) -> int:
        """Return len(encode(obj))."""


class Struct(msgspec.Struct, array_like=True, gc=False):
    """A struct of a message. Equality compares all fields of all versions and unknown tagged fields (W-70).

    The repr shows the fields that differ from their default.
    """

    MAP_KEYS: ClassVar[tuple[str, ...]] = ()
    """The attributes by which KeyedList.find looks up an element, in the definition's order."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = ()
    """Other releases' JSON keys: (key, attribute of the class, lowest version, highest version)."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__bases__:
            if fields := getattr(base, "__struct_fields__", ()):
                _check_subclass(cls, base, fields)

    def __repr__(self) -> str:
        values = ((name, getattr(self, name), default) for name, default in defaults(type(self)))
        shown = (f"{name}={value!r}" for name, value, default in values if value != default)
        return f"{type(self).__name__}({', '.join(shown)})"


def _check_subclass(cls: type, base: type, fields: tuple[str, ...]) -> None:
    """Raise TypeError if a subclass of a message's class changes what the codec relies on.

    Codecs take the fields of an object by their order, and create objects without calling their methods.
    """
    own = vars(cls)
    added = [name for name in own["__slots__"] if name not in ("__dict__", "__weakref__")]
    changed = [name for name in fields if name in own or name in cls.__annotations__]
    for name in (*added, *changed):
        what = "is defined again" if name in changed else f"is not in the definition of {base.__name__}"
        raise TypeError(f"class {cls.__name__}: field {name!r} {what}; subclasses can have methods, but no fields")
    if "__post_init__" in own:
        raise TypeError(f"class {cls.__name__}: __post_init__ is not supported: decoding does not call it")


@cache
def defaults(cls: type[Struct]) -> tuple[tuple[str, FieldValue], ...]:
    """Return (attribute, default) of a class, in order."""
    found = defaults_of(cls).items()
    return tuple((name, default.value if default.factory is None else default.factory()) for name, default in found)


class _Spec:
    """The checked definition of a message class, built on first use."""

    @overload
    def __get__(self, message: None, owner: type[Message]) -> MessageSpec: ...
    @overload
    def __get__(self, message: Message, owner: type[Message]) -> MessageSpec: ...
    def __get__(self, message: Message | None, owner: type[Message]) -> MessageSpec:
        from kwire.schema.language import parse

        spec = parse(owner.DEFINITION, f"{owner.__name__}.json")
        type.__setattr__(owner, "SPEC", spec)  # replaces the descriptor for this class
        return spec


class Message(Struct):
    """A request, response, header or data struct, with the fields of every version and without a version."""

    DEFINITION: ClassVar[str] = ""
    """The definition in Kafka's language (JSON), without comments."""
    SPEC: ClassVar[_Spec] = _Spec()
    """The checked definition, as objects."""
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
        """Decode a message that fills data.

        views: bytes and records as memoryviews of data instead of copies.
        lenient: accept what Kafka accepts and the protocol forbids (listed in docs/plan.md).
        Raises DecodeError with position and path, also for remaining bytes; UnsupportedVersion outside VALID_VERSIONS.
        """
        codec = cls._codecs.get(version)
        if codec is None or type(version) is not int:
            codec = cls._codec(version)
        message: Self = codec.decode(data, views, lenient)
        return message

    @classmethod
    def decode_from(
        cls, data: Buffer, pos: int, *, version: int, views: bool = False, lenient: bool = False
    ) -> tuple[Self, int]:
        """Decode a message at pos; returns it and the position after it. Raises the errors of `decode`."""
        codec = cls._codecs.get(version)
        if codec is None or type(version) is not int:
            codec = cls._codec(version)
        decoded: tuple[Self, int] = codec.decode_from(data, pos, views, lenient)
        return decoded

    def encode(self, *, version: int) -> bytes:
        """Encode the message. Raises EncodeError with the path of a value that does not fit this version.

        A field that this version does not have must have its default, unless it is ignorable (W-30, W-31).
        """
        codec = self._codecs.get(version)
        if codec is None or type(version) is not int:
            codec = self._codec(version)
        return codec.encode(self)

    def encoded_size(self, *, version: int) -> int:
        """Return len(encode(version=version)). Takes as long as `encode`, and raises its errors."""
        return self._codec(version).encoded_size(self)

    def to_json(self, *, version: int) -> dict[str, Any]:
        """Convert to Kafka's JSON form, a dict with bytes and records in base64, without unknown tagged fields (J-06).

        Raises the errors of `encode`.
        """
        from kwire.messages.json_form import write_message

        self.check_version(version)
        return write_message(self.SPEC, self, version)

    @classmethod
    def from_json(cls, obj: Any, *, version: int, lenient: bool = False) -> Self:
        """Create a message from Kafka's JSON form, as parsed by json.load.

        lenient: keep values of fields that this version does not have (T-17), and read int8 from 128 as Kafka (T-18).
        Raises EncodeError with the path of a missing or invalid value.
        """
        from kwire.messages.json_form import read_message

        cls.check_version(version)
        return read_message(cls.SPEC, cls, obj, version, lenient)

    @classmethod
    def _codec(cls, version: int) -> Codec:
        """Make the codec of a version, or return the one that was made."""
        cls.check_version(version)
        if version not in cls._codecs:
            from kwire import plan

            cls._codecs[version] = plan.codec(cls.SPEC, version, cls)
        return cls._codecs[version]

    @classmethod
    def check_version(cls, version: int) -> None:
        """Raise UnsupportedVersion unless the version is one of VALID_VERSIONS."""
        if version not in cls.VALID_VERSIONS:
            raise UnsupportedVersion(f"{cls.__name__}: no version {version!r}; versions are {cls.VALID_VERSIONS}")
