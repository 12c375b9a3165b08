"""What every HTML page that kwire writes begins with: one place for its head and for what it may load.

The Content-Security-Policy lets a page load nothing but what it names here: names and values out of a log or a
definition are escaped, and should one not be, it can neither run nor send anything.
"""

from __future__ import annotations

from kwire.pages.markup import Child, Markup, element

__all__ = ["INLINE_STYLE", "OWN_FILES", "html_page"]

ALWAYS = "default-src 'none'; base-uri 'none'; form-action 'none'"
INLINE_STYLE = "style-src 'unsafe-inline'"
"""A page in one file, without scripts."""
OWN_FILES = "script-src 'self' file:; style-src 'self' file:; style-src-attr 'unsafe-inline'"
"""A page of several, with scripts and styles beside it; `file:` where it is opened without a server."""


def html_page(title: str, *head: Child, body: Markup, policy: str) -> str:
    """A whole page. head: what else the head holds. policy: INLINE_STYLE or OWN_FILES."""
    whole_head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=f"{ALWAYS}; {policy}"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        *head,
    )
    return "<!doctype html>\n" + element("html", whole_head, body, lang="en") + "\n"
