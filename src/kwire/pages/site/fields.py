"""The table of a message's fields in all versions."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.quantities import plural
from kwire.pages.site.frame import legend, name_link, table, version_strip
from kwire.pages.site.protocol import Entry, Protocol, slug
from kwire.schema.model import Field, Message, Struct
from kwire.schema.rendering import field_notes, render_default, versions_text
from kwire.schema.versions import Versions

__all__ = ["field_section"]

HEADS = ("Field", "Type", "Versions", "Nullable", "Tag", "Default", "Notes", "Elsewhere")


def field_section(protocol: Protocol, entry: Entry) -> Markup:
    """Return the section of all fields; nested structs are indented."""
    message = entry.message
    rows = list(_rows(protocol, entry, message.struct, (), message.valid))
    return element(
        "section",
        element("h2", "Fields"),
        element("div", table(HEADS, rows, "fields"), class_="scroll")
        if rows
        else element("p", "None.", class_="quiet"),
        legend(("there", "present"), ("null", "nullable"), ("tagged", "tagged")) if rows else None,
        id="fields",
    )


def _rows(
    protocol: Protocol, entry: Entry, struct: Struct, path: tuple[str, ...], within: Versions
) -> Iterator[Markup]:
    for field in struct.fields:
        here = (*path, field.name)
        versions = field.versions.intersect(within)
        yield _row(protocol, entry, field, here, versions)
        if field.struct is not None:
            yield from _rows(protocol, entry, field.struct, here, versions)


def _row(protocol: Protocol, entry: Entry, field: Field, path: tuple[str, ...], versions: Versions) -> Markup:
    message = entry.message
    nullable = versions_text(field.nullable, message.valid) if field.nullable else None
    tag = f"{field.tag} in {versions_text(field.tagged, message.valid)}" if field.tag is not None else None
    elsewhere = {place.entry for place in protocol.fields[field.name]} - {entry}
    more = name_link("field", field.name, plural(len(elsewhere), "message"), "../") if elsewhere else None
    default = render_default(field)
    depth = min(len(path) - 1, 12)
    name = element("th", element("code", field.name), scope="row", style=f"--depth:{depth}" if depth else None)
    cells: tuple[tuple[str, Child], ...] = (
        ("Type", _type(protocol, field)),
        ("Versions", _versions(message, field, versions)),
        ("Nullable", nullable),
        ("Tag", tag),
        ("Default", element("code", default if default else '""') if default is not None else None),
        ("Notes", _notes(field, message)),
        ("Elsewhere", more),
    )
    return element(
        "tr",
        name,
        *(element("td", value, data_label=label, class_=None if value else "none") for label, value in cells),
        id=f"f-{slug('.'.join(path))}",
    )


def _type(protocol: Protocol, field: Field) -> Markup:
    if field.struct is None:
        return element("code", field.type_text)
    link = name_link("struct", field.type, field.type, "../")
    return element("code", "[]" if field.is_array else "", link)


def _versions(message: Message, field: Field, versions: Versions) -> Markup:
    text = versions_text(field.versions, message.valid)
    parts = [text]
    spans = [(versions, "there")]
    if field.tag is not None:
        spans.append((versions.intersect(field.tagged), "tagged"))
        parts.append(f"tagged {field.tagged}")
    if field.nullable:
        spans.append((versions.intersect(field.nullable), "null"))
        parts.append(f"nullable {field.nullable}")
    strip = version_strip(message.valid, spans, f"{field.name}: {', '.join(parts)}") if len(message.valid) > 1 else None
    return join(element("span", text), strip)


def _notes(field: Field, message: Message) -> Markup | None:
    notes = field_notes(field, message.valid)
    about = element("span", field.about, class_="about") if field.about else None
    return join(", ".join(notes), " " if notes and about else None, about) if notes or about else None
