"""The page of a message: facts, a diagram of each version, its fields, and other uses of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwire.pages.markup import Child, Markup, element, join, listed
from kwire.pages.quantities import plural
from kwire.pages.site.diagram import NARROW, WIDE, draw, width_text
from kwire.pages.site.fields import field_section
from kwire.pages.site.frame import entry_link, kind_text, legend, name_link, page, version_strip
from kwire.pages.site.protocol import Entry, Protocol
from kwire.schema.layout import Layout, Mark, Marked, Run, compare, layouts
from kwire.schema.versions import Versions

__all__ = ["message_page"]

MAX_DRAWN = 5_000
"""Maximum number of boxes on a page, newest versions first. Kafka's largest page has fewer than 2,000."""


def message_page(protocol: Protocol, entry: Entry) -> str:
    """Return the complete page."""
    runs = layouts(entry.message)
    return page(
        protocol,
        _head(protocol, entry),
        _versions(protocol, entry, runs),
        field_section(protocol, entry),
        _structs(protocol, entry),
        title=entry.name,
        here=f"message/{entry.page}.html",
    )


def _head(protocol: Protocol, entry: Entry) -> Markup:
    message = entry.message
    facts: list[tuple[str, Child]] = [("versions", str(message.valid)), ("flexible", str(message.flexible))]
    if message.deprecated:
        facts.append(("deprecated", str(message.deprecated)))
    if message.latest_version_unstable:
        facts.append(("unstable", f"version {message.valid.highest}"))
    if message.listeners:
        facts.append(("listeners", ", ".join(message.listeners)))
    if entry.module:
        facts.append(("module" if protocol.releases else "folder", entry.module))
    others = [
        other
        for pair in (*protocol.apis, *protocol.records)
        if entry in pair.entries
        for other in pair.entries
        if other is not entry
    ]
    facts += [(other.message.kind.removeprefix("coordinator-"), entry_link(other, "../")) for other in others]
    return element(
        "header",
        element("p", kind_text(entry), class_="eyebrow"),
        element("h1", entry.name),
        element("dl", *(join(element("dt", k), element("dd", v)) for k, v in facts), class_="facts"),
        _releases(protocol, entry),
    )


def _releases(protocol: Protocol, entry: Entry) -> Markup | None:
    """Return the versions by release, and the differences between releases."""
    if not protocol.releases:
        return None
    rows = []
    for release in protocol.releases:
        own = entry.releases.get(release)
        versions = own.valid if own is not None else Versions(0, -1)
        text = str(versions) if own is not None else "missing"
        title = f"Kafka {release}: {text}"
        rows.append(
            element(
                "li",
                element("b", release),
                version_strip(entry.message.valid, [(versions, "there")], title),
                element("span", text if versions or own is None else "removed"),
            )
        )
    return join(
        element("ul", *rows, class_="releases"),
        element(
            "details",
            element("summary", f"{plural(len(entry.conflicts), 'difference')} between releases"),
            element("ul", *(element("li", conflict) for conflict in entry.conflicts)),
            class_="conflicts",
        )
        if entry.conflicts
        else None,
    )


def _versions(protocol: Protocol, entry: Entry, runs: Sequence[Run]) -> Markup:
    chips = [
        element("a", str(run.versions), href=f"#v{run.versions.lowest}", title=_run_title(run, entry)) for run in runs
    ]
    key = legend(
        ("new", "+ new"),
        ("changed", "~ changed"),
        ("removed", "− removed"),
        ("head", "length, count, presence"),
        ("tag", "tag and size"),
        ("value", "value; pale: optional"),
    )
    blocks: list[Markup] = []
    drawn = 0
    for i in range(len(runs) - 1, -1, -1):
        before = runs[i - 1].layout if i else None
        marked = compare(before, runs[i].layout)
        drawn += sum(1 for top in marked for _ in top.walk())
        blocks.append(
            _run(protocol, entry, runs[i], before, marked, is_open=i == len(runs) - 1, is_drawn=drawn <= MAX_DRAWN)
        )
    return element(
        "section",
        element("h2", "On the wire"),
        element("p", _frame_text(entry), class_="sub"),
        element("nav", *chips, class_="chips", aria_label="Versions") if len(chips) > 1 else None,
        key if runs else element("p", "This message has no versions."),
        *blocks,
        id="wire",
    )


def _frame_text(entry: Entry) -> str | None:
    if entry.message.kind in ("request", "response"):
        return f"A frame is a size of 4 bytes, the {entry.message.kind} header, then this body. Newest version first."
    return "Newest version first."


def _run_title(run: Run, entry: Entry) -> str:
    return f"{'version' if len(run.versions) == 1 else 'versions'} {run.versions} of {entry.name}"


def _run(
    protocol: Protocol,
    entry: Entry,
    run: Run,
    before: Layout | None,
    marked: Sequence[Marked],
    *,
    is_open: bool,
    is_drawn: bool,
) -> Markup:
    versions = run.versions
    names = "Version" if len(versions) == 1 else "Versions"
    counts = {mark: sum(1 for top in marked for m in top.walk() if m.mark is mark) for mark in Mark}
    badges = [
        element("span", f"{sign}{counts[mark]}", class_=f"count {mark.value}", title=f"{counts[mark]} {mark.value}")
        for mark, sign in ((Mark.NEW, "+"), (Mark.CHANGED, "~"), (Mark.REMOVED, "−"))
        if counts[mark]
    ]
    facts = [width_text(run.layout.width), "flexible" if run.layout.is_flexible else None]
    if versions.intersect(entry.message.deprecated):
        facts.append("deprecated")
    if entry.message.latest_version_unstable and entry.message.valid.highest in versions:
        facts.append("unstable" if len(versions) == 1 else f"{versions.highest} is unstable")
    summary = element(
        "summary",
        element("b", f"{names} {versions}"),
        element("span", " · ".join(fact for fact in facts if fact), class_="quiet"),
        *badges,
    )
    title = f"Layout of {entry.name} {names.lower()} {versions}"
    drawings: list[Child] = (
        [draw(marked, WIDE, title), draw(marked, NARROW, title)]
        if is_drawn
        else [element("p", "Too many fields to draw; see the table below.", class_="quiet")]
    )
    return element(
        "details",
        summary,
        element(
            "div",
            _header_line(protocol, entry, run),
            *_changes(before, run, marked),
            *drawings,
            id=f"v{versions.lowest}",
        ),
        class_="run",
        open="open" if is_open else None,
    )


def _header_line(protocol: Protocol, entry: Entry, run: Run) -> Markup | None:
    number = run.layout.header_version
    if number is None:
        return None
    name = "RequestHeader" if entry.message.kind == "request" else "ResponseHeader"
    text = f"{entry.message.kind} header {number}"
    header = protocol.by_name.get(name)
    link: Child = text
    if header is not None and any(number in header_run.versions for header_run in layouts(header.message)):
        start = next(r.versions.lowest for r in layouts(header.message) if number in r.versions)
        link = element("a", text, href=f"{header.page}.html#v{start}")
    return element("p", "After ", link, ".", class_="quiet")


def _changes(before: Layout | None, run: Run, marked: Sequence[Marked]) -> Iterator[Markup]:
    """Yield the changes of a version as text. Changes shared by many fields are on one line."""
    if before is None:
        yield element("p", "First version.", class_="quiet")
        return
    lines: list[Markup] = []
    if run.layout.is_flexible and not before.is_flexible:
        lines.append(
            element("li", "flexible since this version: varint lengths and counts, a tag section in every struct")
        )
    if run.layout.header_version != before.header_version:
        lines.append(element("li", f"header {run.layout.header_version}, was {before.header_version}"))
    shared: dict[str, list[str]] = {}
    for m in (m for top in marked for m in top.walk()):
        if m.slot.field is None:
            continue
        path = ".".join(m.slot.path)
        if m.mark is Mark.NEW:
            lines.append(element("li", "new: ", element("code", path), f", {m.slot.field.type_text}", class_="new"))
        elif m.mark is Mark.REMOVED:
            lines.append(element("li", "removed: ", element("code", path), class_="removed"))
        for what in m.what:
            shared.setdefault(what, []).append(path)
    for what, paths in shared.items():
        if len(paths) > 3 and what.endswith(("as varint, was int16", "as varint, was int32")):
            lines.append(element("li", f"{plural(len(paths), 'field')}: {what}", class_="changed"))
            continue
        names = (element("code", path) for path in paths)
        lines.append(element("li", listed(names), f": {what}", class_="changed"))
    if lines:
        yield element("ul", *lines, class_="changes")
    else:
        yield element("p", "Same bytes as the previous version.", class_="quiet")


def _structs(protocol: Protocol, entry: Entry) -> Markup | None:
    """Return the structs of a message, and other messages with structs of the same name."""
    rows = []
    for struct in sorted(entry.message.structs, key=lambda s: s.name):
        places = protocol.structs.get(struct.name, [])
        here = [".".join(p.path) for p in places if p.entry is entry and p.field.struct is struct]
        others = {p.entry: p.field.struct for p in places if p.entry is not entry}
        shape = [(f.name, f.type_text) for f in struct.fields]
        links = [
            join(
                entry_link(other, "../"),
                ""
                if theirs is not None and [(f.name, f.type_text) for f in theirs.fields] == shape
                else " (other fields)",
            )
            for other, theirs in others.items()
        ]
        shown = listed(links[:8])
        more = join(", ", name_link("struct", struct.name, f"{len(links) - 8} more", "../")) if len(links) > 8 else None
        rows.append(
            element(
                "li",
                element("code", struct.name),
                element(
                    "span",
                    "type of ",
                    listed(element("code", path) for path in here) if here else "not used",
                ),
                element("span", "elsewhere: ", shown, more) if links else None,
                id=f"s-{struct.name}" if struct.name.isascii() and struct.name.isalnum() else None,
            )
        )
    if not rows:
        return None
    return element("section", element("h2", "Structs"), element("ul", *rows, class_="structs"))
