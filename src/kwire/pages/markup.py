"""HTML from elements, with text escaped by construction.

A plain str is data and is escaped. Only `Markup`, which `element` and `join` return, is inserted unchanged. The output
is valid XML too (every element closed, attributes quoted), so tests can parse it strictly.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from kwire.pages.escaping import printable

__all__ = ["Child", "Markup", "element", "join", "listed"]


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Child = str | int | float | None

# HTML requires a closing tag for these, even if they are empty
_NEVER_SELF_CLOSING = {"div", "span", "td", "th", "p", "section", "dd", "title", "a", "figure", "style", "code"}


def element(name: str, /, *children: Child, **attributes: Child) -> Markup:
    """Return an element. Children are escaped unless Markup; children and attributes that are None are omitted.

    In attribute names a trailing `_` is dropped (class_) and other `_` become `-`.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*children)
    if not inner and name not in _NEVER_SELF_CLOSING:
        return Markup(f"<{name}{pairs}/>")
    return Markup(f"<{name}{pairs}>{inner}</{name}>")


def join(*children: Child) -> Markup:
    """Concatenate children. They are escaped unless Markup; None is omitted."""
    return Markup("".join(c if isinstance(c, Markup) else _escaped(c) for c in children if c is not None))


def listed(children: Iterable[Child]) -> Markup:
    """Join children with commas."""
    return Markup(", ".join(map(join, children)))


def _escaped(value: Child) -> str:
    return html.escape(printable(str(value)), quote=True)
