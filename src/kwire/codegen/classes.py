"""Generate the Python source of a message's classes. Classes only: the codec is the plan.

    class FetchTopic(base.Struct, kw_only=True):        one class per struct, all versions inside, inner ones first
        topic: str = ""
        \"\"\"string; versions 0-12; ignorable.\"\"\"     type, versions, tag, nullability, default
        ...
    class FetchRequest(base.Message, kw_only=True):

The layout is `kwire.messages.base`'s. Source text depends on the message alone, so the same definition gives the same
bytes.
"""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

from kwire.schema.former_names import FormerName
from kwire.schema.model import STRUCT_DEFAULTS, ZERO_UUID, Field, Message, Struct
from kwire.schema.names import snake_name
from kwire.schema.rendering import render, render_default, versions_text
from kwire.schema.versions import NONE, Versions

_TYPES = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "records": "bytes"}


LINE_LENGTH = 120
NO_FORMER: Final[Mapping[str, Sequence[FormerName]]] = MappingProxyType({})


class _Names:
    """Names for what the classes of a module use, avoiding those that attributes or classes hide.

    In a class, an attribute hides the same name outside: a field called Type would hide `type`. In a module,
    so does a message called `list`.
    """

    def __init__(self, message: Message) -> None:
        structs = (message.struct, *message.structs)
        self.hidden = {field.attr for struct in structs for field in struct.fields} | {s.name for s in structs}
        self.imports: set[str] = set()

    @property
    def class_var(self) -> str:
        """ClassVar in one of the two forms that msgspec recognizes."""
        return "typing.ClassVar" if "ClassVar" in self.hidden else "ClassVar"

    @property
    def class_var_import(self) -> str:
        return "import typing" if "ClassVar" in self.hidden else "from typing import ClassVar"

    def builtin(self, name: str) -> str:
        """Return the name of a builtin such as bool."""
        return f"{self.module('builtins')}.{name}" if name in self.hidden else name

    def module(self, name: str) -> str:
        """Return the name of an imported module, and add its import."""
        self.imports.add(name)
        return f"_{name}" if name in self.hidden else name

    def import_line(self, name: str, package: str = "") -> str:
        alias = f" as _{name}" if name in self.hidden else ""
        return f"from {package} import {name}{alias}" if package else f"import {name}{alias}"


def module_name(message: Message) -> str:
    """Return the name of a message's module: fetch_request for FetchRequest."""
    name = snake_name(message.name)
    return f"{name}_" if keyword.iskeyword(name) else name


def message_source(message: Message, origin: str, former: Mapping[str, Sequence[FormerName]] = NO_FORMER) -> str:
    """Generate the module with the classes of a message.

    origin: the Kafka releases, or nothing: "Kafka 4.4.0"; former: names of fields in other releases, by struct.
    """
    names = _Names(message)
    classes = [struct_source(struct, message, names, former.get(struct.name, ())) for struct in message.structs]
    classes.append(_message_class(message, names, former.get(message.name, ())))
    public = listing("__all__", sorted([message.name, *(struct.name for struct in message.structs)]))
    standard = [names.import_line(name) for name in ("builtins", "uuid") if name in names.imports]
    source = f"{message.name}.json{origin and f', {origin}'}"
    parts = [
        f'"""Generated from {source}, by kwire.codegen; change the generator."""\n',
        "from __future__ import annotations\n",
        *standard,
        names.class_var_import + "\n",
        *([names.import_line("msgspec") + "\n"] if "msgspec" in names.imports else []),
        names.import_line("base", "kwire.messages") + "\n",
        public + "\n",
        *(f"\n{source}" for source in classes),
    ]
    return "\n".join(parts)


def listing(name: str, texts: Sequence[str]) -> str:
    """Format `name = [...]`, on one line if it fits."""
    line = f"{name} = [{', '.join(json.dumps(text) for text in texts)}]"
    if len(line) <= LINE_LENGTH:
        return line
    return f"{name} = [\n" + "".join(f"    {json.dumps(text)},\n" for text in texts) + "]"


def _facts(message: Message) -> str:
    key = {"request": "api key", "response": "api key"}.get(message.kind, "record type")
    facts = [message.kind if message.api_key is None else f"{message.kind}, {key} {message.api_key}"]
    facts.append(f"versions {message.valid}")
    facts.append(f"flexible {versions_text(message.flexible, message.valid)}")
    if message.deprecated:
        facts.append(f"deprecated {message.deprecated}")
    if message.latest_version_unstable:
        facts.append(f"version {message.valid.highest} unstable")
    if message.listeners:
        facts.append(f"listeners {', '.join(message.listeners)}")
    text = "; ".join(facts)
    return f"{text[0].upper()}{text[1:]}."


def struct_source(struct: Struct, message: Message, names: _Names, former: Sequence[FormerName] = ()) -> str:
    """Generate the class of a nested struct."""
    versions = versions_text(struct.versions, message.valid)
    lines = [*_decorator(struct, names), f"class {struct.name}({names.module('base')}.Struct, kw_only=True):"]
    lines.append(f'    """{"Common struct; v" if struct.is_common else "V"}ersions {versions}."""\n')
    if struct.map_keys:
        keys = ", ".join(f'"{field.attr}"' for field in struct.map_keys) + ("," if len(struct.map_keys) == 1 else "")
        kind = f"{names.builtin('tuple')}[{names.builtin('str')}, ...]"
        lines.append(f"    MAP_KEYS: {names.class_var}[{kind}] = ({keys})\n")
    if former:
        lines.append(_former(former, names) + "\n")
    return "\n".join([*lines, *_fields(struct, message, names), ""])


def _former(former: Sequence[FormerName], names: _Names) -> str:
    many, text, number = names.builtin("tuple"), names.builtin("str"), names.builtin("int")
    kind = f"{names.class_var}[{many}[{many}[{text}, {text}, {number}, {number}], ...]]"
    rows = [f"({json.dumps(key)}, {json.dumps(attr)}, {low}, {high})," for key, attr, low, high in former]
    line = f"    FORMER_NAMES: {kind} = ({rows[0]})"
    if len(rows) == 1 and len(line) <= LINE_LENGTH:
        return line
    return f"    FORMER_NAMES: {kind} = (\n" + "".join(f"        {row}\n" for row in rows) + "    )"


def _message_class(message: Message, names: _Names, former: Sequence[FormerName]) -> str:
    base, text, class_var = names.module("base"), names.builtin("str"), names.class_var
    lines = [
        *_decorator(message.struct, names),
        f"class {message.name}({base}.Message, kw_only=True):",
        f'    """{_facts(message)}"""\n',
        *_fields(message.struct, message, names),
        "",
    ]
    # After the fields: before them the alias would hide the class from type checkers.
    lines += [_alias(struct.name, names) for struct in message.structs]
    if message.api_key is not None:
        lines.append(f"    API_KEY: {class_var}[{names.builtin('int')} | None] = {message.api_key}")
    lines.append(f"    VALID_VERSIONS: {class_var}[{base}.Versions] = {_range(message.valid, base)}")
    lines.append(f"    FLEXIBLE_VERSIONS: {class_var}[{base}.Versions] = {_range(message.flexible, base)}")
    if former:
        lines.append(_former(former, names))
    definition = render(message).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines.append(f'    DEFINITION: {class_var}[{text}] = """\\\n{definition}"""')
    return "\n".join(lines) + "\n"


def _alias(name: str, names: _Names) -> str:
    start = f"    {name}: {names.class_var}[{names.builtin('type')}[{name}]] = "
    return f"{start}{name}" if len(start) + len(name) <= LINE_LENGTH else f"{start}(\n        {name}\n    )"


def _range(versions: Versions, base: str) -> str:
    return f"{base}.Versions({versions.lowest}, {versions.highest})"


def _decorator(struct: Struct, names: _Names) -> list[str]:
    keyed = ", ".join(f'"{field.attr}"' for field in struct.class_fields if field.is_keyed)
    return [f"@{names.module('base')}.with_find({keyed})"] if keyed else []


def _fields(struct: Struct, message: Message, names: _Names) -> list[str]:
    lines = []
    for field in struct.class_fields:
        lines.append(f"    {field.attr}: {_annotation(field, names)} = {_default(field, names)}")
        lines.append(f'    """{_doc(field, message)}"""')
    unknown = "{}[{}[{}, {}]]".format(*map(names.builtin, ("list", "tuple", "int", "bytes")))
    lines.append(f"    unknown_tagged_fields: {unknown} = []")
    return lines


def _annotation(field: Field, names: _Names) -> str:
    if field.struct is not None:
        text = field.type
    elif field.type == "uuid":
        text = f"{names.module('uuid')}.UUID"
    else:
        text = names.builtin(_TYPES.get(field.type, "int"))
    if field.is_keyed:
        return f"{names.module('base')}.{'Nullable' if field.may_be_null else ''}Keyed[{text}]"
    if field.is_array:
        text = f"{names.builtin('list')}[{text}]"
    return f"{text} | None" if field.may_be_null else text


def _default(field: Field, names: _Names) -> str:
    value = field.default
    if field.is_keyed:
        return f"{names.module('base')}.keyed({'None' if value is None else ''})"
    if value is STRUCT_DEFAULTS:
        return f"{names.module('msgspec')}.field(default_factory={field.type})"
    if value == ():
        return "[]"
    if isinstance(value, UUID):
        zero = f"{names.module('base')}.ZERO_UUID"
        return zero if value == ZERO_UUID else f"{names.module('uuid')}.UUID(int={value.int:#x})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'{names.builtin("float")}("{value}")'
    if value == b"":
        return 'b""'
    # JSON's escapes are Python's, and its quotes are like the rest of the source's.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _doc(field: Field, message: Message) -> str:
    facts = [field.type_text, f"versions {versions_text(field.versions, message.valid)}"]
    facts += [f"{name} in {versions_text(versions, message.valid)}" for versions, name in field.encodings]
    if field.tag is not None:
        everywhere = field.tagged.intersect(message.valid) == field.versions.intersect(message.valid)
        facts.append(f"tag {field.tag}" + ("" if everywhere else f" in {versions_text(field.tagged, message.valid)}"))
    if field.nullable:
        both = field.versions.intersect(message.valid)
        everywhere = field.nullable.intersect(message.valid).covers(both)
        facts.append("nullable" + ("" if everywhere else f" in {versions_text(field.nullable, message.valid)}"))
    if field.flexible is not None:
        facts.append("never compact" if field.flexible == NONE else f"compact in {field.flexible}")
    default = render_default(field)
    if default is not None:
        facts.append(f"default {default!r}" if field.type == "string" and default != "null" else f"default {default}")
    facts += [word for word, is_so in (("ignorable", field.ignorable), ("map key", field.map_key)) if is_so]
    if field.entity_type != "unknown":
        facts.append(field.entity_type)
    text = "; ".join(facts) + "."
    if field.about:
        about = "".join(letter if letter.isprintable() else " " for letter in field.about)
        text += f" {' '.join(about.split())}"
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    return f"{text} " if text.endswith('"') else text
