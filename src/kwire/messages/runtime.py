"""Classes compiled from definitions at run time, for `schema.compile`.

They have the bases and layout of generated classes but no module to be imported from, so their objects pickle with the
text of the definition, which is compiled again when unpickling. Equal definitions share one class.
"""

from __future__ import annotations

import weakref
from types import GenericAlias
from typing import Any
from uuid import UUID

import msgspec

from kwire.messages import base
from kwire.schema.language import parse
from kwire.schema.model import STRUCT_DEFAULTS, Field, Message, Struct
from kwire.schema.rendering import render

_classes: weakref.WeakValueDictionary[str, type[base.Message]] = weakref.WeakValueDictionary()

_TYPES: dict[str, Any] = {
    "bool": bool,
    "float64": float,
    "uuid": UUID,
    "string": str,
    "bytes": bytes,
    "records": bytes,
}


def message_class(spec: Message) -> type[base.Message]:
    """Return the class of a definition."""
    definition = render(spec)
    known = _classes.get(definition)
    if known is not None:
        return known
    structs: dict[str, type[base.Struct]] = {}
    for struct in spec.structs:
        structs[struct.name] = _make(struct, structs, base.Struct, {})
    members = {
        **structs,
        "API_KEY": spec.api_key,
        "VALID_VERSIONS": spec.valid,
        "FLEXIBLE_VERSIONS": spec.flexible,
        "DEFINITION": definition,
        "SPEC": spec,
    }
    made: Any = _make(spec.struct, structs, base.Message, members)
    for cls in (made, *structs.values()):
        cls.__reduce__ = _reduce
        cls._MESSAGE = made
    _classes[definition] = made
    return made  # type: ignore[no-any-return]


def _make(
    struct: Struct, structs: dict[str, type[base.Struct]], parent: type[base.Struct], members: dict[str, Any]
) -> type[base.Struct]:
    fields: list[tuple[str, Any, Any]] = [
        (field.attr, _annotation(field, structs), _default(field, structs)) for field in struct.class_fields
    ]
    fields.append(("unknown_tagged_fields", list[tuple[int, bytes]], msgspec.field(default_factory=list)))
    namespace = {"MAP_KEYS": tuple(field.attr for field in struct.map_keys), "_MESSAGE": None, **members}
    cls: Any = msgspec.defstruct(
        struct.name, fields, bases=(parent,), namespace=namespace, module=__name__, kw_only=True
    )
    made: type[base.Struct] = base.with_find(*(f.attr for f in struct.class_fields if f.is_keyed))(cls)
    return made


def _annotation(field: Field, structs: dict[str, type[base.Struct]]) -> Any:
    kind: Any = structs[field.struct.name] if field.struct is not None else _TYPES.get(field.type, int)
    if field.is_array:
        kind = GenericAlias(list, (kind,))
    return kind | None if field.may_be_null else kind


def _default(field: Field, structs: dict[str, type[base.Struct]]) -> Any:
    if field.default is STRUCT_DEFAULTS:
        return msgspec.field(default_factory=structs[field.type])
    if field.default == ():
        return msgspec.field(default_factory=list)
    return msgspec.field(default=field.default)


def _reduce(obj: Any) -> tuple[Any, ...]:
    values = {name: getattr(obj, name) for name in obj.__struct_fields__}
    return _rebuild, (obj._MESSAGE.DEFINITION, type(obj).__name__, values)


def _rebuild(definition: str, name: str, values: dict[str, Any]) -> base.Struct:
    """Unpickle an object. The text of the definition was checked when the class was first made."""
    message = _classes.get(definition) or message_class(parse(definition))
    cls = message if name == message.__name__ else getattr(message, name)
    obj: base.Struct = cls(**values)
    return obj
