"""Arrays with map keys: lists that find an element by its keys in constant time and keep their order.

Kafka's ImplicitLinkedHashMultiCollection: iteration in order of insertion, equal keys allowed, equality and wire form
as of a plain list (W-72, W-73, W-75).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

T = TypeVar("T")
Slot = Any
"""A member descriptor, for which Python has no type."""


class KeyedList(list[T]):
    """A list of structs with map keys.

    The index is built by the first `find` and again after the list has changed. An element's keys must not change while
    it is in the list (W-74), because the index would not notice.
    """

    __slots__ = ("_index",)
    _index: dict[tuple[object, ...], list[T]] | None

    def __init__(self, elements: Iterable[T] = ()) -> None:
        super().__init__(elements)
        self._index = None

    def find(self, *keys: object, **named: object) -> T | None:
        """The first element with these keys, or None. Keys in the definition's order, or by attribute name.

        Raises TypeError unless every key of the struct is given once.
        """
        matches = self._lookup(keys, named)
        return matches[0] if matches else None

    def find_all(self, *keys: object, **named: object) -> list[T]:
        """All elements with these keys, in order; arguments as for `find`."""
        return list(self._lookup(keys, named))

    def _lookup(self, keys: tuple[object, ...], named: dict[str, object]) -> list[T]:
        if not self:
            return []
        names: tuple[str, ...] = self[0].MAP_KEYS  # type: ignore[attr-defined]
        if len(keys) + len(named) != len(names) or named.keys() - set(names[len(keys) :]):
            raise TypeError(f"find needs each of the keys {', '.join(names)} once")
        wanted = (*keys, *(named[name] for name in names[len(keys) :]))
        if self._index is None:
            index: dict[tuple[object, ...], list[T]] = {}
            self._index = index
            for element in self:
                index.setdefault(tuple(getattr(element, name) for name in names), []).append(element)
        return self._index.get(wanted, [])

    def __reduce__(self) -> tuple[type[KeyedList[T]], tuple[list[T]]]:
        return KeyedList, (list(self),)

    def __copy__(self) -> KeyedList[T]:
        return KeyedList(self)

    def copy(self) -> KeyedList[T]:
        """A shallow copy, with `find`."""
        return KeyedList(self)


def _forgetting(name: str) -> Callable[..., Any]:
    """Wrap a method of list so that it drops the index."""
    method = getattr(list, name)

    def change(self: KeyedList[Any], *args: Any, **options: Any) -> Any:
        self._index = None
        return method(self, *args, **options)

    change.__name__, change.__qualname__, change.__doc__ = name, f"KeyedList.{name}", method.__doc__
    return change


for _name in (
    *("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"),
    *("__delitem__", "__iadd__", "__imul__", "__setitem__"),
):
    setattr(KeyedList, _name, _forgetting(_name))

if TYPE_CHECKING:

    class Keyed(Generic[T]):
        """An attribute that takes any list of structs and gives a KeyedList."""

        @overload
        def __get__(self, message: None, owner: type) -> Keyed[T]: ...
        @overload
        def __get__(self, message: object, owner: type) -> KeyedList[T]: ...
        def __get__(self, message: object, owner: type) -> Any: ...
        def __set__(self, message: object, value: list[T]) -> None: ...

    class NullableKeyed(Generic[T]):
        """Keyed, for a nullable array."""

        @overload
        def __get__(self, message: None, owner: type) -> NullableKeyed[T]: ...
        @overload
        def __get__(self, message: object, owner: type) -> KeyedList[T] | None: ...
        def __get__(self, message: object, owner: type) -> Any: ...
        def __set__(self, message: object, value: list[T] | None) -> None: ...

else:
    # What msgspec reads from the annotations.
    Keyed = list

    class NullableKeyed:
        """A Keyed list that may be null."""

        def __class_getitem__(cls, element):
            return list[element] | None


FieldDefault = Any
"""Type of the values of msgspec.field; a type checker must accept it for any field."""


def keyed(*default: None) -> FieldDefault:
    """Default of a Keyed attribute: a new empty list, or `keyed(None)`."""
    return msgspec.field(default=None) if default else msgspec.field(default_factory=list)


class KeyedAttribute:
    """Descriptor of a Keyed attribute: replaces the plain list by a KeyedList on first access.

    msgspec reads and writes the slot itself, so this costs nothing in decoding and encoding.
    """

    __slots__ = ("slot",)

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    def __get__(self, message: object, owner: type | None = None) -> object:
        if message is None:
            return self
        value = self.slot.__get__(message)
        if value.__class__ is list:
            value = KeyedList(value)
            self.slot.__set__(message, value)
        return value

    def __set__(self, message: object, value: object) -> None:
        self.slot.__set__(message, value)


C = TypeVar("C", bound=type)


def with_find(*attributes: str) -> Callable[[C], C]:
    """Decorate a class: the named attributes, arrays with map keys, return a KeyedList."""

    def install(cls: C) -> C:
        for name in attributes:
            setattr(cls, name, KeyedAttribute(cls.__dict__[name]))
        return cls

    return install
