"""The files of the site. The same definitions give the same bytes."""

from __future__ import annotations

import json
from importlib import resources

from kwire.pages.site.message_page import message_page
from kwire.pages.site.overview import index_page, names_page, versions_page
from kwire.pages.site.protocol import Place, Protocol
from kwire.schema.rendering import versions_text

__all__ = ["render_site"]


def render_site(protocol: Protocol) -> dict[str, str]:
    """Return the text of every file of the site by its path."""
    files = {
        "index.html": index_page(protocol),
        "versions.html": versions_page(protocol),
        "names.html": names_page(protocol),
        "search-index.js": _search_index(protocol),
        "site.js": _asset("site.js"),
        "site.css": _style(),
    }
    for entry in protocol.entries:
        files[f"message/{entry.page}.html"] = message_page(protocol, entry)
    return files


def _asset(name: str) -> str:
    return resources.files("kwire.pages.site").joinpath(name).read_text("utf-8")


def _style() -> str:
    """Return the style sheet of the reports with that of the site."""
    return resources.files("kwire.pages").joinpath("style.css").read_text("utf-8") + _asset("site.css")


def _search_index(protocol: Protocol) -> str:
    """Return the search index as a script: a page opened from a file may load scripts only.

    messages: [name, kind, key or null, page, versions]; structs and fields: [name, [[message, path, type, versions]]].
    """
    numbers = {entry: i for i, entry in enumerate(protocol.entries)}

    def use(place: Place) -> list[object]:
        versions = versions_text(place.field.versions, place.entry.message.valid)
        return [numbers[place.entry], ".".join(place.path), place.field.type_text, versions]

    index = {
        "messages": [
            [e.name, e.message.kind, e.message.api_key, e.page, str(e.message.valid)] for e in protocol.entries
        ],
        "structs": [[name, [use(place) for place in places]] for name, places in protocol.structs.items()],
        "fields": [[name, [use(place) for place in places]] for name, places in protocol.fields.items()],
    }
    # ASCII only: no name can end the script or a line, or depend on the encoding
    return f"var KWIRE_INDEX = {json.dumps(index, separators=(',', ':'))};\n"
