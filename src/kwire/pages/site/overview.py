"""The pages about all messages: the index, versions by release, and uses of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.quantities import plural
from kwire.pages.site.frame import entry_link, legend, page, table, version_strip
from kwire.pages.site.protocol import Api, Entry, Place, Protocol, slug
from kwire.schema.model import Message
from kwire.schema.rendering import versions_text
from kwire.schema.versions import NONE, Versions

__all__ = ["index_page", "names_page", "versions_page"]


def index_page(protocol: Protocol) -> str:
    """Return the index page: all messages by purpose."""
    stable = sum(len(entry.message.valid) for entry in protocol.entries)
    tiles = [
        (str(len(protocol.apis)), "APIs"),
        (str(len(protocol.entries)), "messages"),
        (str(stable), "message versions"),
        (str(sum(map(len, protocol.fields.values()))), "fields"),
    ]
    sections = [
        _section("APIs", "apis", _api_table(protocol)),
        _section("Records of the coordinators", "records", _record_tables(protocol)),
        _section("Records of the metadata log", "metadata", _entry_list(protocol.of_kind("metadata"))),
        _section("Headers", "headers", _entry_list(protocol.of_kind("header"))),
        _section("Other data", "data", _entry_list(protocol.of_kind("data"))),
    ]
    shown = [section for section in sections if section is not None]
    return page(
        protocol,
        element(
            "header",
            element("h1", protocol.title),
            element("p", f"Every version of every message, byte by byte: {protocol.origin}.", class_="sub"),
            element(
                "div",
                *(
                    element(
                        "div",
                        element("div", n, class_="tile-value"),
                        element("div", what, class_="tile-label"),
                        class_="tile",
                    )
                    for n, what in tiles
                    if n != "0"
                ),
                class_="tiles",
            ),
        ),
        *shown,
        title=protocol.title,
        here="index.html",
    )


def _section(title: str, anchor: str, content: Markup | None) -> Markup | None:
    return element("section", element("h2", title), content, id=anchor) if content else None


def _api_table(protocol: Protocol) -> Markup | None:
    if not protocol.apis:
        return None
    newest = protocol.releases[-1] if protocol.releases else None
    rows = []
    for api in protocol.apis:
        removed = newest is not None and not any(_has_versions(entry, newest) for entry in api.entries)
        state = _last_release(protocol, api) if removed else None
        flexible = element("td", _flexible(api.entries), data_label="flexible")
        rows.append(_pair_row(api, ("request", "response"), flexible, state=state))
    return join(
        table(("Key", "API", "Request", "Response", "Flexible"), rows, "apis"),
        legend(("there", "version"), ("flexible", "flexible version")),
    )


def _pair_row(pair: Api, labels: tuple[str, str], *cells: Markup, state: str | None = None) -> Markup:
    """Return the row of two messages. state: the end of a removed API."""
    note = element("small", state) if state else None
    messages = zip(labels, (pair.first, pair.second), strict=True)
    return element(
        "tr",
        element("td", pair.key, class_="n"),
        element("th", entry_link(pair.entries[0], text=pair.name), note, scope="row"),
        *(element("td", *_range(entry), data_label=label) for label, entry in messages),
        *cells,
        class_="past" if state else None,
    )


def _has_versions(entry: Entry, release: str) -> bool:
    own = entry.releases.get(release)
    return own is not None and bool(own.valid)


def _last_release(protocol: Protocol, api: Api) -> str | None:
    having = [release for release in protocol.releases if any(_has_versions(entry, release) for entry in api.entries)]
    return f"last in {having[-1]}" if having else "no versions"


def _range(entry: Entry | None) -> Iterator[Child]:
    if entry is None:
        return
    message = entry.message
    yield entry_link(entry, text=f"{message.valid}" if message.valid else "none")
    flexible = message.flexible.intersect(message.valid)
    yield version_strip(
        Versions(0, message.valid.highest),
        [(message.valid, "there"), (flexible, "flexible")],
        f"{entry.name}: versions {message.valid}, flexible {message.flexible}",
    )


def _flexible(entries: Sequence[Entry]) -> str:
    texts = {versions_text(e.message.flexible, e.message.valid) for e in entries if e.message.valid}
    return " / ".join(sorted(texts))


def _record_tables(protocol: Protocol) -> Markup | None:
    modules: dict[str, list[Api]] = {}
    for record in protocol.records:
        modules.setdefault(record.entries[0].module, []).append(record)
    blocks = []
    for module, records in modules.items():
        rows = [_pair_row(record, ("key", "value")) for record in records]
        blocks.append(join(element("h3", module), table(("Type", "Record", "Key", "Value"), rows, "apis")))
    return join(*blocks) if blocks else None


def _entry_list(entries: Sequence[Entry]) -> Markup | None:
    if not entries:
        return None
    rows = [
        element(
            "li",
            element("span", entry.message.api_key, class_="quiet") if entry.message.api_key is not None else None,
            entry_link(entry),
            element("span", f"{entry.message.valid}", class_="quiet"),
        )
        for entry in entries
    ]
    return element("ul", *rows, class_="entries")


def versions_page(protocol: Protocol) -> str:
    """Return the page of APIs and records by release; of versions only, for users' own definitions."""
    releases = protocol.releases
    groups: list[tuple[str, list[tuple[int | None, str, Entry]]]] = [
        ("Requests", [(a.key, a.name, a.first) for a in protocol.apis if a.first is not None]),
        (
            "Responses with other versions than their requests",
            [
                (a.key, a.name, a.second)
                for a in protocol.apis
                if a.second is not None and (a.first is None or not _same_ranges(a.first, a.second))
            ],
        ),
        ("Records of the coordinators", [(r.key, e.name, e) for r in protocol.records for e in r.entries]),
        ("Records of the metadata log", [(e.message.api_key, e.name, e) for e in protocol.of_kind("metadata")]),
        ("Headers and other data", [(None, e.name, e) for kind in ("header", "data") for e in protocol.of_kind(kind)]),
    ]
    key = legend(
        ("there", "unchanged"),
        ("added", "new in that release"),
        ("dropped", "dropped"),
        ("unstable", "not enabled by default"),
    )
    body: list[Child] = []
    for title, lines in groups:
        if not lines:
            continue
        heads = ("Key", "Message", *releases) if releases else ("Key", "Message", "Versions")
        rows = [_matrix_row(protocol, key, name, entry) for key, name, entry in lines]
        body.append(
            element(
                "section", element("h2", title), table(heads, rows, "matrix"), id=slug(title.lower().replace(" ", ""))
            )
        )
    what = f"Versions in Kafka {', '.join(releases)}" if releases else "The versions of every message"
    return page(
        protocol,
        element(
            "header",
            element("h1", "APIs and releases" if releases else "Versions"),
            element("p", f"{what}; one cell per version, from 0.", class_="sub"),
            _changes_summary(protocol) if releases else None,
            key if releases else None,
        ),
        *body,
        title="APIs and releases" if releases else "Versions",
        here="versions.html",
    )


def _same_ranges(a: Entry, b: Entry) -> bool:
    return {r: m.valid for r, m in a.releases.items()} == {r: m.valid for r, m in b.releases.items()} and (
        a.message.valid == b.message.valid
    )


def _changes_summary(protocol: Protocol) -> Markup:
    """Return the number of added, removed and changed APIs by release."""
    items = []
    for before, after in zip(protocol.releases, protocol.releases[1:], strict=False):
        added = removed = more = fewer = 0
        for api in protocol.apis:
            if api.first is None:
                continue
            old, new = (_versions_in(api.first, release) for release in (before, after))
            added += bool(new and not old)
            removed += bool(old and not new)
            if old and new:
                more += new.highest > old.highest
                fewer += new.lowest > old.lowest
        items.append(
            element(
                "li",
                element("b", f"{before} to {after}: "),
                f"{plural(added, 'API')} added, {removed} removed, {more} with new versions, {fewer} without old ones",
            )
        )
    return element("ul", *items, class_="summary")


def _versions_in(entry: Entry, release: str) -> Versions:
    own = entry.releases.get(release)
    return own.valid if own is not None else NONE


def _matrix_row(protocol: Protocol, key: int | None, name: str, entry: Entry) -> Markup:
    cells = []
    previous: Message | None = None
    axis = Versions(0, max([entry.message.valid.highest, *(m.valid.highest for m in entry.releases.values())]))
    if not protocol.releases:
        strip = version_strip(axis, [(entry.message.valid, "there")], f"{entry.name}: {entry.message.valid}")
        cells.append(element("td", element("span", str(entry.message.valid)), strip, data_label="versions"))
    for i, release in enumerate(protocol.releases):
        own = entry.releases.get(release)
        cells.append(
            element("td", *_matrix_cell(entry, release, own, previous, axis, first=i == 0), data_label=release)
        )
        previous = own
    return element(
        "tr",
        element("td", key, class_="n"),
        element("th", entry_link(entry, text=name), scope="row"),
        *cells,
    )


def _matrix_cell(
    entry: Entry, release: str, own: Message | None, previous: Message | None, axis: Versions, *, first: bool
) -> Iterator[Child]:
    before = previous.valid if previous is not None else NONE
    now = own.valid if own is not None else NONE
    if not now:
        text = "removed" if before else ("no versions" if own is not None else "–")
        yield element("span", text, class_="quiet")
        if before:
            yield version_strip(axis, [(before, "dropped")], f"{entry.name} in Kafka {release}: dropped {before}")
        return
    assert own is not None
    spans = [(now, "there")]
    words = [f"versions {now}"]
    if not first:
        added = [Versions(max(now.lowest, before.highest + 1), now.highest)] if before else [now]
        if before and now.lowest < before.lowest:
            added.append(Versions(now.lowest, before.lowest - 1))
        dropped = [Versions(before.lowest, now.lowest - 1), Versions(now.highest + 1, before.highest)] if before else []
        for ranges, kind in ((added, "added"), (dropped, "dropped")):
            for versions in ranges:
                if versions:
                    spans.append((versions, kind))
                    words.append(f"{kind} {versions}")
    if own.latest_version_unstable:
        spans.append((Versions(now.highest, now.highest), "unstable"))
        words.append(f"{now.highest} is unstable")
    yield element("span", f"{now}{'*' if own.latest_version_unstable else ''}")
    yield version_strip(axis, spans, f"{entry.name} in Kafka {release}: {', '.join(words)}")


def names_page(protocol: Protocol) -> str:
    """Return the page of struct and field names with their uses."""
    blocks = []
    for kind, names in (("struct", protocol.structs), ("field", protocol.fields)):
        letters = sorted({name[0].upper() for name in names})
        jumps = [element("a", letter, href=f"#{kind}-letter-{slug(letter)}") for letter in letters]
        items: list[Markup] = []
        letter = ""
        for name, places in names.items():
            if name[0].upper() != letter:
                letter = name[0].upper()
                items.append(element("h3", letter, id=f"{kind}-letter-{slug(letter)}"))
            items.append(_name(kind, name, places))
        if items:
            blocks.append(
                element(
                    "section",
                    element("h2", f"{plural(len(names), kind)}"),
                    element("nav", *jumps, class_="chips", aria_label=f"{kind}s by letter"),
                    *items,
                    id=f"{kind}s",
                )
            )
    return page(
        protocol,
        element(
            "header",
            element("h1", "Names"),
            element(
                "p",
                "Uses of each struct and field name. A name may have different meanings in two messages.",
                class_="sub",
            ),
        ),
        *blocks,
        title="Names",
        here="names.html",
    )


OPEN_PLACES = 6


def _name(kind: str, name: str, places: Sequence[Place]) -> Markup:
    entries = list(dict.fromkeys(place.entry for place in places))
    types = list(dict.fromkeys(place.field.type_text for place in places))
    uses_text = f"{plural(len(places), 'use')} in {plural(len(entries), 'message')}" if len(places) > 1 else "1 use"
    if kind == "field":
        uses_text += ": " + ", ".join(types[:4]) + (" …" if len(types) > 4 else "")
    uses = element("ul", *_uses(places))
    summary = element("summary", element("code", name), element("span", uses_text, class_="quiet"))
    return element(
        "details",
        summary,
        uses,
        class_="name",
        id=f"{kind}-{slug(name)}",
        open="open" if len(entries) <= OPEN_PLACES and kind == "struct" else None,
    )


def _uses(places: Iterable[Place]) -> Iterator[Markup]:
    for place in places:
        path = ".".join(place.path)
        valid = place.entry.message.valid
        yield element(
            "li",
            entry_link(place.entry, anchor=path),
            " ",
            element("code", path),
            element("span", f" {place.field.type_text}, {versions_text(place.field.versions, valid)}", class_="quiet"),
        )
