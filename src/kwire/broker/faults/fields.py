"""Fields of messages by name: find, convert, set. Names are those of the classes or of Kafka's JSON form.

A path has the names from the message down, separated by dots, with a number or `*` for the elements of an array:
`throttle_time_ms`, `responses.*.partition_responses.0.error_code`. Without one it means all elements.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire.broker.faults.names import parse_error
from kwire.errors import EncodeError, OptionError, did_you_mean
from kwire.messages.base import Struct

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.schema.model import Field
    from kwire.schema.model import Struct as StructSpec

__all__ = ["EVERY", "Path", "build", "change", "find_field", "to_value"]

EVERY = "*"
TYPES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "float64": (float, int),
    "uuid": UUID,
    "string": str,
    "bytes": (bytes, bytearray, memoryview),
    "records": (bytes, bytearray, memoryview),
}
Path = tuple[str | int, ...]


def find_field(cls: type[Message], name: str) -> tuple[Path, Field]:
    """Return the path of a field by name, and its definition. Raises OptionError with the closest name."""
    struct: StructSpec | None = cls.SPEC.struct
    path: list[str | int] = []
    field: Field | None = None
    for part in str(name).split("."):
        if part == EVERY or part.isdecimal():
            if field is None or not field.is_array or (path and not isinstance(path[-1], str)) or path[-1] == EVERY:
                raise OptionError(f"{cls.__name__}: {name}: {part!r} does not follow an array")
            path.append(EVERY if part == EVERY else int(part))
            continue
        if struct is None:
            raise OptionError(f"{cls.__name__}: {name}: {path[-1]!r} has no fields")
        field = _of_struct(struct, part, f"{cls.__name__}: {name}")
        path.append(field.attr)
        struct = field.struct
    if field is None:
        raise OptionError(f"{cls.__name__}: a field without a name")
    return tuple(path), field


def _of_struct(struct: StructSpec, part: str, where: str) -> Field:
    for field in struct.fields:
        if part in (field.attr, field.json_name):
            return field
    names = [field.attr for field in struct.fields]
    raise OptionError(f"{where}: unknown field {part!r}{did_you_mean(part, names)}; fields: {', '.join(names)}")


def to_value(cls: type[Message], field: Field, value: object, where: str, *, is_element: bool = False) -> Any:
    """Convert a value, as JSON has it, to that of a field: ids and bytes from text, error codes from names.

    is_element: of an array. Raises OptionError.
    """
    if field.is_array and not is_element and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_value(cls, field, each, f"{where}.{index}", is_element=True) for index, each in enumerate(value)]
    if field.struct is not None and isinstance(value, Mapping):
        return build(cls, value, field.struct, where)
    if isinstance(value, str):
        if field.type == "uuid":
            try:
                return UUID(value)
            except ValueError:
                raise OptionError(f"{where}: invalid UUID {value!r}") from None
        if field.type in ("bytes", "records"):
            try:
                return base64.b64decode(value, validate=True)
            except binascii.Error:
                raise OptionError(f"{where}: bytes are given as base64") from None
        if field.type == "int16" and field.attr.endswith("error_code"):
            return 0 if value.upper() == "NONE" else int(parse_error(value))
    _check_type(field, value, where)
    return value


def _check_type(field: Field, value: object, where: str) -> None:
    """Raise OptionError unless a value, or each element of a list, has the type of a field."""
    from kwire.schema.model import INTEGERS

    if value is None and field.may_be_null:
        return
    if field.is_array and isinstance(value, list):
        for each in value:
            _check_type(field, each, where)
        return
    if field.struct is not None:
        fits = isinstance(value, Struct) and type(value).__name__ == field.struct.name
    elif field.type in INTEGERS:
        lowest, highest = INTEGERS[field.type]
        fits = isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest
    else:
        fits = isinstance(value, TYPES[field.type])
    if not fits:
        raise OptionError(f"{where}: invalid value {value!r}: must be {field.type_text}")


def build(cls: type[Message], values: Mapping[str, object], struct: StructSpec | None = None, where: str = "") -> Any:
    """Return a message with values by field name, or one of its structs; other fields have their defaults.

    Raises OptionError.
    """
    spec = cls.SPEC.struct if struct is None else struct
    made = cls() if struct is None else getattr(cls, spec.name)()
    where = where or cls.__name__
    for name, value in values.items():
        field = _of_struct(spec, name, where)
        setattr(made, field.attr, to_value(cls, field, value, f"{where}.{name}"))
    return made


def check_encodable(message: Message, versions: Sequence[int]) -> None:
    """Raise OptionError unless a message can be encoded in one of the versions."""
    problem: EncodeError | None = None
    for version in reversed(versions):
        try:
            message.encode(version=version)
        except EncodeError as error:
            problem = problem or error
        else:
            return
    raise OptionError(f"{type(message).__name__} cannot be encoded: {problem}")


def change(part: Any, path: Path, value: object) -> None:
    """Set a field of a message. Elements that do not exist are ignored."""
    name, *rest = path
    if not rest:
        setattr(part, str(name), value)
        return
    below = getattr(part, str(name))
    if below is None:
        return
    if not isinstance(below, list):
        change(below, tuple(rest), value)
        return
    chosen: slice = slice(None)
    first = rest[0]
    if isinstance(first, int):
        chosen = slice(first, first + 1)
    if first == EVERY or isinstance(first, int):
        rest = rest[1:]
    if not rest:
        below[chosen] = [value] * len(below[chosen])
        return
    for each in below[chosen]:
        change(each, tuple(rest), value)
