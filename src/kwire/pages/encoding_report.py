"""The encoding report: integer values of messages and the cost of each encoding, one panel per field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kwire
from kwire.pages.charts import ranked_bars
from kwire.pages.document import document, page_head
from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.quantities import bytes_text, count_text, percent_text

__all__ = ["render_encodings"]

MAX_FIELDS = 200

Row = dict[str, Any]


def render_encodings(rows: Sequence[Row], *, title: str, count: int, size_bytes: int) -> str:
    """Return the rows of `kwire schema advise`, or of the Spark job `advise`, as one HTML page.

    Rows are sorted by savings; the first MAX_FIELDS have charts. Rows of several messages have `message` and `version`
    too. count, size_bytes: number and size of the bodies.
    """
    ranked = sorted((row for row in rows if row["values"]), key=lambda row: -row["saved_bytes"])
    saved = sum(row["saved_bytes"] for row in ranked)
    share = percent_text(saved / size_bytes) if size_bytes else "nothing"
    facts = (
        f"{count_text(count)} bodies, {bytes_text(size_bytes)}; the best encodings save {bytes_text(saved)} ({share})"
    )
    body = element(
        "body",
        page_head("Integer encodings (KIP-625)", title, f"{facts}; counted by kwire {kwire.__version__}"),
        element(
            "main",
            element("section", element("h2", "Savings of the best encoding by field"), _savings(ranked)),
            element("section", element("div", *map(_panel, ranked[:MAX_FIELDS]), class_="panels")),
            _notes(),
        ),
    )
    return document(f"Integer encodings: {title}", body)


def _savings(rows: Sequence[Row]) -> Markup:
    shown = [
        (_label(row), row["saved_bytes"], f"{bytes_text(row['saved_bytes'])}, {row['best']}")
        for row in rows[:MAX_FIELDS]
        if row["saved_bytes"] > 0
    ]
    if not shown:
        return element("p", "None: every field has its best encoding.", class_="quiet")
    return ranked_bars(shown, "bytes saved by field")


def _path(row: Row) -> str:
    """Return the field path, after its message if there are several."""
    return f"{row['message']} {row['version']}: {row['path']}" if "message" in row else row["path"]


def _label(row: Row) -> Markup:
    """Return the label of a field, its name first: labels are cut at their end."""
    around, _, name = row["path"].rpartition(".")
    if "message" in row:
        around = f"{row['message']} {row['version']}{f', {around}' if around else ''}"
    return element("span", _code(name), f" in {around}" if around else None, title=_path(row))


def _panel(row: Row) -> Markup:
    own = [f"{form}{row['bits']}" for form in ("fixed", "packed", "upacked")]
    costs: list[tuple[Child, int, str]] = [
        (_cost_label(name, row), row["encodings"][name], bytes_text(row["encodings"][name])) for name in own
    ]
    sizes: list[tuple[Child, int, str]] = [
        (f"{size} byte{'s' if size != '1' else ''}", n, count_text(n)) for size, n in row["packed_sizes"].items()
    ]
    facts = f"{row['type']}, {count_text(row['values'])} values from {row['smallest']} to {row['largest']}"
    facts += f", {count_text(row['negative'])} negative" if row["negative"] else ", none negative"
    return element(
        "figure",
        element("figcaption", _code(_path(row))),
        element("p", facts, class_="quiet"),
        element("p", "bytes of all values by encoding", class_="small-caption"),
        ranked_bars(costs, f"{_path(row)}: bytes by encoding"),
        element("p", f"values by size as packed{row['bits']}", class_="small-caption"),
        ranked_bars(sizes, f"{_path(row)}: values by size"),
        class_="panel",
    )


def _cost_label(name: str, row: Row) -> Markup:
    if name == row["best"]:
        return element("b", f"{name}{', now' if name == row['encoding'] else ''}")
    return element("span", f"{name}{', now' if name == row['encoding'] else ''}")


def _code(text: str) -> Markup:
    return element("code", text)


def _notes() -> Markup:
    return element(
        "footer",
        element("h2", "How this was counted"),
        element(
            "ul",
            element("li", "Tagged fields count only where they were sent: a default is never on the wire."),
            element("li", "The best encoding has the width of the field. A narrower one would save the same, but "
                          "reject values that do not occur in these messages."),
            element("li", join("Unsigned packing (", _code("upacked"), ") gives every negative number its maximum "
                               "length: 5 bytes for 32 bits, 10 for 64.")),
        ),
    )  # fmt: skip
