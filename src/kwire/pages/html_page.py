"""The frame of every HTML page: its head and its Content-Security-Policy.

The policy is a second line of defense. Names and values from logs and definitions are escaped; if one were not, it
could neither run nor send anything.
"""

from __future__ import annotations

from kwire.pages.markup import Child, Markup, element

__all__ = ["INLINE_STYLE", "OWN_FILES", "html_page"]

ALWAYS = "default-src 'none'; base-uri 'none'; form-action 'none'"
INLINE_STYLE = "style-src 'unsafe-inline'"
"""Policy of a page in one file, without scripts."""
OWN_FILES = "script-src 'self' file:; style-src 'self' file:; style-src-attr 'unsafe-inline'"
"""Policy of a site with its own scripts and styles; `file:` allows opening it without a server."""


def html_page(title: str, *head: Child, body: Markup, policy: str) -> str:
    """Return a complete page. head: further elements of its head. policy: INLINE_STYLE or OWN_FILES."""
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
