"""Shared parts of the reports: the document, the header, the tiles of totals."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from importlib import resources

import kwire
from kwire.pages.html_page import INLINE_STYLE, html_page
from kwire.pages.markup import Markup, element

__all__ = ["document", "made_by", "page_head", "tiles"]


def document(title: str, body: Markup) -> str:
    """Return a complete page: one file without external resources."""
    return html_page(title, element("style", _style()), body=body, policy=INLINE_STYLE)


@functools.cache
def _style() -> Markup:
    return Markup(resources.files(__package__).joinpath("style.css").read_text("utf-8"))


def page_head(kind: str, title: str, below: str) -> Markup:
    """Return the header of a page: its kind, its title and a subtitle."""
    return element(
        "header",
        element("p", kind, class_="eyebrow"),
        element("h1", title),
        element("p", below, class_="sub"),
    )


def made_by(made_at: datetime.datetime) -> str:
    """Return the version of kwire and the time, for a subtitle."""
    return f"by kwire {kwire.__version__} on {made_at.astimezone(datetime.UTC).strftime('%Y-%m-%d %H:%M UTC')}"


def tiles(totals: Sequence[tuple[str, str, str]]) -> Markup:
    """Return totals side by side, each of label, value and note."""
    return element(
        "section",
        *(
            element(
                "div",
                element("div", label, class_="tile-label"),
                element("div", value, class_="tile-value"),
                element("div", note, class_="tile-note"),
                class_="tile",
            )
            for label, value, note in totals
        ),
        class_="tiles",
        aria_label="Totals",
    )
