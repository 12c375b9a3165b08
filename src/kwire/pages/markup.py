"""HTML built from elements, so that text is escaped by construction.

A plain str is always data: it is made printable and escaped. Only `Markup`, which `element` and `join` return, goes in
as it is. The output is XML as well as HTML (every element closed, attributes quoted), so a test can parse it strictly.
"""

from __future__ import annotations

import html

from kwire.pages.escaping import printable

__all__ = ["Child", "Markup", "element", "join"]


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


Child = str | int | float | None

_VOID = {"meta", "link", "br", "hr"}
# HTML wants these closed by a tag of their own even when they are empty
_NEVER_SELF_CLOSING = {"div", "span", "td", "th", "p", "section", "dd", "title", "a", "figure", "style", "code"}


def element(name: str, /, *children: Child, **attributes: Child) -> Markup:
    """One element; children are escaped unless Markup, None is left out.

    Attribute names: a trailing `_` is dropped (class_), other `_` become `-`, except in SVG's camel-case names, which
    have none. An attribute that is None is left out.
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
    """Children side by side, escaped unless Markup; None is left out."""
    return Markup("".join(c if isinstance(c, Markup) else _escaped(c) for c in children if c is not None))


def _escaped(value: Child) -> str:
    return html.escape(printable(str(value)), quote=True)
