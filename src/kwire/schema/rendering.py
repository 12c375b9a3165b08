"""Model -> definition text: facts only, one field per line, in Kafka's own language.

`parse(render(message))` returns the same message, so messages are stored, compared and pickled as this text.
Comments and `about` texts are not facts. Ranges and defaults have one form each: `0-32767` is `0+`, `0x10` is 16, the
type's own default is not written. Encodings (KIP-625) use the `encoding` notation, omitted for the default encoding.
"""

from __future__ import annotations

import json
from uuid import UUID

from kwire.identifiers import render_uuid
from kwire.schema.defaults import TYPE_DEFAULTS
from kwire.schema.model import STRUCT_DEFAULTS, Default, Field, Message, Struct
from kwire.schema.versions import Versions


def render(message: Message) -> str:
    """Return the text of a definition, ending in a line feed."""
    head: dict[str, object] = {"type": message.kind, "name": message.name}
    if message.api_key is not None:
        head["apiKey"] = message.api_key
    versions: dict[str, object] = {"validVersions": str(message.valid)}
    if message.deprecated:
        versions["deprecatedVersions"] = str(message.deprecated)
    versions["flexibleVersions"] = str(message.flexible)
    if message.header_versions:
        versions["headerVersions"] = {str(range_): str(header) for range_, header in message.header_versions}
    lines = [_members(head), _members(versions)]
    if message.listeners:
        lines.append(_members({"listeners": list(message.listeners)}))
    if message.latest_version_unstable:
        lines.append(_members({"latestVersionUnstable": True}))
    common = [struct for struct in message.structs if struct.is_common]
    if common:
        lines.append('"commonStructs": [\n' + ",\n".join(_common(s) for s in common) + "\n  ]")
    lines.append('"fields": ' + _fields(message.struct, "  "))
    return "{\n  " + ",\n  ".join(lines) + "\n}\n"


def _members(members: dict[str, object]) -> str:
    return json.dumps(members, ensure_ascii=False)[1:-1]


def _common(struct: Struct) -> str:
    head = _members({"name": struct.name, "versions": str(struct.versions)})
    return f'    {{{head}, "fields": {_fields(struct, "    ")}}}'


def _fields(struct: Struct, indent: str) -> str:
    if not struct.fields:
        return "[]"
    lines = ",\n".join(f"{indent}  {_field(field, f'{indent}  ')}" for field in struct.fields)
    return f"[\n{lines}\n{indent}]"


def _field(field: Field, indent: str) -> str:
    members: dict[str, object] = {"name": field.name, "type": field.type_text, "versions": str(field.versions)}
    if field.encodings:
        members["encoding"] = render_encodings(field)
    if field.tag is not None:
        members |= {"tag": field.tag, "taggedVersions": str(field.tagged)}
    if field.nullable:
        members["nullableVersions"] = str(field.nullable)
    if field.flexible is not None:
        members["flexibleVersions"] = str(field.flexible)
    default = render_default(field)
    if default is not None:
        members["default"] = default
    members |= {k: True for k, v in (("ignorable", field.ignorable), ("mapKey", field.map_key)) if v}
    if field.entity_type != "unknown":
        members["entityType"] = field.entity_type
    if field.zero_copy:
        members["zeroCopy"] = True
    text = _members(members)
    if field.struct is not None and not field.struct.is_common:
        text += f', "fields": {_fields(field.struct, indent)}'
    return f"{{{text}}}"


def render_encodings(field: Field) -> str | dict[str, str]:
    """Return the `encoding` of a field that has encodings: one name, or a name for each range."""
    if len(field.encodings) == 1:
        return field.encodings[0][1]
    return {str(versions): name for versions, name in field.encodings}


def render_default(field: Field) -> str | None:
    """Return the default as in a definition; None for the default of the type."""
    own: Default = () if field.is_array else TYPE_DEFAULTS.get(field.type, STRUCT_DEFAULTS)
    value = field.default
    if value is None:
        return None if own is None else "null"
    # -0.0 equals 0.0 and is another value; NaN equals nothing.
    if value == own and repr(value) == repr(own):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, UUID):
        return render_uuid(value)
    return str(value)


def _java_double(value: float) -> str:
    return repr(value).replace("inf", "Infinity").replace("nan", "NaN")


def field_notes(field: Field, valid: Versions) -> list[str]:
    """Return what a table of fields says besides type, versions, tag and default."""
    notes = [word for word, is_so in (("map key", field.map_key), ("ignorable", field.ignorable)) if is_so]
    notes += [field.entity_type] if field.entity_type != "unknown" else []
    if field.flexible is not None:
        notes.append(f"compact in {field.flexible}" if field.flexible else "never compact")
    return notes + [f"{name} in {versions_text(versions, valid)}" for versions, name in field.encodings]


def versions_text(versions: Versions, valid: Versions) -> str:
    """Format a field's versions for a reader: clipped to the message's, open-ended if they continue after its last."""
    both = versions.intersect(valid)
    if both and both.highest == valid.highest and versions.highest > valid.highest:
        return f"{both.lowest}+"
    return str(both)
