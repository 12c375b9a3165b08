"""The frame of every page of the site (head, navigation, search, footer), and shared texts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import kwire
from kwire.pages.html_page import OWN_FILES, html_page
from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.site.protocol import Entry, Protocol, slug
from kwire.schema.versions import Versions

__all__ = ["entry_link", "kind_text", "legend", "name_link", "page", "table", "version_strip"]

PAGES = (("index.html", "Messages"), ("versions.html", "Versions"), ("names.html", "Names"))


def page(protocol: Protocol, *content: Child, title: str, here: str) -> str:
    """Return a complete page. here: its path in the site. All references are relative."""
    root = "../" * here.count("/")
    links = [
        element("a", text, href=root + name, aria_current="page" if name == here else None) for name, text in PAGES
    ]
    search = element(
        "form",
        element(
            "input",
            id="q",
            type="search",
            placeholder="Search messages, structs, fields, keys",
            aria_label="Search messages, structs, fields and API keys",
            autocomplete="off",
            spellcheck="false",
        ),
        id="search",
        role="search",
        hidden="hidden",  # shown by the script
    )
    bar = element(
        "nav",
        element("a", protocol.title, href=f"{root}index.html", class_="home"),
        element("div", *links, class_="links"),
        search,
        class_="bar",
        aria_label="Site",
    )
    foot = f"Made by kwire {kwire.__version__} from {protocol.origin}. Names, types, versions and sizes only."
    body = element(
        "body",
        bar,
        element("section", " ", id="results", hidden="hidden", aria_live="polite"),
        element("main", *content),
        element("footer", element("p", foot)),
        data_root=root or None,
    )
    return html_page(
        title if title == protocol.title else f"{title} · {protocol.title}",
        element("link", rel="stylesheet", href=f"{root}site.css"),
        _script(f"{root}search-index.js"),
        _script(f"{root}site.js"),
        body=body,
        policy=OWN_FILES,
    )


def _script(source: str) -> Markup:
    # not empty: HTML requires the closing tag
    return element("script", " ", src=source, defer="defer")


def kind_text(entry: Entry) -> str:
    """Return the kind of a message as text: `request, API key 1`."""
    kind, key = entry.message.kind, entry.message.api_key
    words = {
        "metadata": "metadata record",
        "coordinator-key": "key of a coordinator record",
        "coordinator-value": "value of a coordinator record",
        "data": "data",
    }.get(kind, kind)
    if key is None:
        return words
    return f"{words}, {'API key' if kind in ('request', 'response') else 'type'} {key}"


def entry_link(entry: Entry, root: str = "", text: str | None = None, anchor: str | None = None) -> Markup:
    """Return a link to the page of a message, or to a field's row in it (anchor: the field's path)."""
    fragment = f"#f-{slug(anchor)}" if anchor is not None else ""
    return element("a", entry.name if text is None else text, href=f"{root}message/{entry.page}.html{fragment}")


def name_link(kind: str, name: str, text: Child, root: str = "") -> Markup:
    """Return a link to the uses of a name. kind: field or struct."""
    return element("a", text, href=f"{root}names.html#{kind}-{slug(name)}")


def legend(*entries: tuple[str, str]) -> Markup:
    """Return a legend of colors. entries: (CSS class, text)."""
    spans = (element("span", element("i", " ", class_=f"key {kind}"), text) for kind, text in entries)
    return element("div", *spans, class_="legend")


def table(heads: Sequence[str], rows: Iterable[Markup], class_: str) -> Markup:
    """Return a table of finished rows."""
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in heads)))
    return element("table", head, element("tbody", *rows), class_=class_)


CELLS_WIDTH = 160


def version_strip(valid: Versions, spans: Sequence[tuple[Versions, str]], title: str) -> Markup | None:
    """Return a small bar with one cell per valid version. spans: (versions, CSS class) drawn over it."""
    if not valid:
        return None
    cell = min(7.0, CELLS_WIDTH / len(valid))
    drawn = "cells" if cell == 7 else "cells fine"

    def bar(versions: Versions, class_: str) -> Markup | None:
        both = versions.intersect(valid)
        if not both:
            return None
        x = (both.lowest - valid.lowest) * cell
        return element("path", d=f"M{x:g} 4h{len(both) * cell - (cell == 7):g}", class_=f"{drawn} {class_}")

    width = f"{len(valid) * cell:g}"
    return element(
        "svg",
        element("title", title),
        bar(valid, "track"),
        join(*(bar(versions, class_) for versions, class_ in spans)),
        viewBox=f"0 0 {width} 8",
        width=width,
        height=8,
        role="img",
        class_="versions",
    )
