"""Where the fields of msgspec's structs are in their objects, which compiled code allocates and fills itself.

This is the only thing that compiled code knows beyond Python's stable ABI: an object has room for a reference at the
offset of each field, which the member definitions of its type state, and is complete when all of them are set. `trusts`
is for the check of each user that objects made this way come out right; where they do not, plain Python makes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec._core import Factory  # type: ignore[import-not-found]

from kwire import native

__all__ = ["Default", "UnknownLayout", "defaults_of", "layout_of", "trusts"]

HEAD_BYTES = object.__basicsize__
SLOT_BYTES = tuple.__itemsize__


class Default(NamedTuple):
    """The default of a field: a value that all objects share, or what makes one for each object."""

    value: Any
    factory: type | None


class UnknownLayout(Exception):
    """The fields of a class are not where compiled code can fill them."""


def layout_of(cls: type, names: Sequence[str]) -> tuple[int, list[int]]:
    """Return the address of the allocator of a class, and the offset in its objects of each field.

    Raises UnknownLayout if the fields are not references in the object.
    """
    allocator, _ = native.slots(cls)
    known = {name: offset for base in cls.__mro__ for name, offset in native.slots(base)[1].items()}
    offsets = [known.get(name, -1) for name in names]
    places = range(HEAD_BYTES, cls.__basicsize__, SLOT_BYTES)
    if not allocator or cls.__itemsize__ or len(set(offsets)) < len(names) or not places or set(offsets) - {*places}:
        raise UnknownLayout(f"the fields of {cls.__name__} are not in its objects, where compiled code sets them")
    return allocator, offsets


def defaults_of(cls: type[msgspec.Struct]) -> dict[str, Default]:
    """Return the default of each field of a class whose fields all have one, in order.

    msgspec.structs.fields knows them too, but evaluates the annotations of the class, which took longer than the rest
    of a codec.
    """
    defaults = cls.__struct_defaults__
    return {
        name: Default(None, default.factory) if isinstance(default, Factory) else Default(default, None)
        for name, default in zip(cls.__struct_fields__, defaults, strict=True)
    }


def _supported() -> str:
    """Return the requirement of the msgspec that kwire supports."""
    from importlib.metadata import PackageNotFoundError, requires  # 60 modules, for a rare warning

    try:
        needed = requires("kwire") or []
    except PackageNotFoundError:  # a checkout that is not installed
        needed = []
    return next((each for each in needed if each.startswith("msgspec")), "kwire")


def trusts(what: str, check: Callable[[], bool]) -> bool:
    """Return whether a check succeeds that makes objects with compiled code; warn if it does not.

    what: the objects that plain Python makes then.
    """
    try:
        if check():
            return True
    except Exception:  # whatever goes wrong: the objects of this msgspec or Python are others
        pass
    warnings.warn(
        f"compiled code cannot create {what} with msgspec {msgspec.__version__}, so plain Python does, many times "
        f"slower; pip install '{_supported()}'",
        RuntimeWarning,
        stacklevel=2,
    )
    return False
