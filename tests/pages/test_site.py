"""The protocol site: every page is well-formed, links resolve, and everything is escaped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from tests.cli.crafted import ACTED_ON, MARKUP, policy
from tests.schema.writing import common, field, message, request, tagged
from tests.waiting import HANG_S

from kwire.codegen import write_files
from kwire.messages import registry
from kwire.pages.site.diagram import NARROW, WIDE, draw
from kwire.pages.site.protocol import Protocol, kafka, of_definitions, slug
from kwire.pages.site.render import render_site
from kwire.schema import parse
from kwire.schema.layout import compare, layout, layouts

Site = dict[str, str]
Call = Callable[..., Any]
VOID = {"meta", "link", "input", "br", "hr"}
SVG = {"svg", "rect", "path", "g", "text", "title"}


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return kafka()


@pytest.fixture(scope="module")
def site(protocol: Protocol) -> Site:
    return render_site(protocol)


@pytest.fixture(scope="module")
def pages(site: Site) -> dict[str, ElementTree.Element]:
    return parsed(site)


def parsed(site: Site) -> dict[str, ElementTree.Element]:
    """Parse every page as XML; raises an error if a tag is not closed or a quote is missing."""
    return {
        path: ElementTree.fromstring(text.removeprefix("<!doctype html>\n"))
        for path, text in site.items()
        if path.endswith(".html")
    }


def links(root: ElementTree.Element) -> Iterator[str]:
    for node in root.iter():
        for name in ("href", "src"):
            if name in node.attrib:
                yield node.attrib[name]


def broken_links(pages: dict[str, ElementTree.Element], site: Site) -> list[tuple[str, str]]:
    """Return (page, link) of every broken reference."""
    ids = {path: {node.attrib["id"] for node in root.iter() if "id" in node.attrib} for path, root in pages.items()}
    broken = []
    for path, root in pages.items():
        for link in set(links(root)):
            name, _, fragment = link.partition("#")
            target = resolved(path, name)
            if target not in site or (fragment and fragment not in ids.get(target, set())):
                broken.append((path, link))
    return broken


def resolved(path: str, name: str) -> str:
    if not name:
        return path
    parts = list(PurePosixPath(path).parent.parts)
    for part in name.split("/"):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def text_of(node: ElementTree.Element) -> str:
    return " ".join("".join(node.itertext()).split())


def has_class(node: ElementTree.Element, name: str) -> bool:
    return name in node.attrib.get("class", "").split()


def index_of(site: Site) -> dict[str, Any]:
    script = site["search-index.js"]
    assert script.startswith("var KWIRE_INDEX = ")
    index: dict[str, Any] = json.loads(script.removeprefix("var KWIRE_INDEX = ").removesuffix(";\n"))
    return index


@pytest.mark.slow
def test_every_message_has_a_page(site: Site) -> None:
    assert {f"message/{name}.html" for name in registry.names()} <= site.keys()
    others = {path for path in site if not path.startswith("message/")}
    assert others == {"index.html", "versions.html", "names.html", "search-index.js", "site.js", "site.css"}


def test_every_link_resolves(pages: dict[str, ElementTree.Element], site: Site) -> None:
    assert broken_links(pages, site) == []
    assert sum(1 for root in pages.values() for _ in links(root)) > 9_000


def test_broken_links_are_detected(pages: dict[str, ElementTree.Element], site: Site) -> None:
    without = {path: text for path, text in site.items() if path != "message/FetchRequest.html"}
    assert ("index.html", "message/FetchRequest.html") in broken_links(pages, without)


def test_pages_load_only_files_of_the_site(pages: dict[str, ElementTree.Element]) -> None:
    for path, page in pages.items():
        directives = policy(page).split("; ")
        assert directives[0] == "default-src 'none'", path
        assert "script-src 'self' file:" in directives, path
        assert not any(node.tag == "script" and (node.text or "").strip() for node in page.iter()), path


def test_pages_refer_to_nothing_outside_the_site(pages: dict[str, ElementTree.Element], site: Site) -> None:
    for path, root in pages.items():
        assert not {node.tag for node in root.iter()} & {"img", "iframe", "object", "embed", "use", "image", "base"}
        assert all(not re.match(r"[a-z]+:|/", link) for link in links(root)), path
        assert not any(name.lower().startswith("on") for node in root.iter() for name in node.attrib)
    for name in ("site.css", "site.js", "index.html"):
        assert "http" not in site[name].replace("http-equiv", "")
    assert "url(" not in site["site.css"]
    assert "@import" not in site["site.css"]
    # A page from a file may neither fetch nor be served modules.
    for word in ("fetch(", "XMLHttpRequest", "import ", "innerHTML", "eval(", "document.write"):
        assert word not in site["site.js"]


def test_every_page_is_well_formed_html(pages: dict[str, ElementTree.Element], site: Site) -> None:
    for path, root in pages.items():
        assert site[path].startswith('<!doctype html>\n<html lang="en"><head>')
        ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
        assert len(ids) == len(set(ids)), path
    closed = set(re.findall(r"<([a-z0-9]+)[^<>]*/>", "".join(site[path] for path in pages)))
    assert closed <= VOID | SVG, closed


@pytest.mark.slow
def test_the_same_definitions_give_the_same_bytes(protocol: Protocol, site: Site) -> None:
    again = kafka()
    assert [entry.page for entry in again.entries] == [entry.page for entry in protocol.entries]
    files = render_site(again)
    assert files.keys() == site.keys()
    assert [path for path in files if files[path] != site[path]] == []


def test_every_version_has_a_wide_and_a_narrow_diagram(pages: dict[str, ElementTree.Element]) -> None:
    for name in registry.names():
        root = pages[f"message/{name}.html"]
        runs = layouts(registry.get(name).SPEC)
        drawings = [node for node in root.iter("svg") if has_class(node, "layout")]
        titles = [text_of(drawing[0]) for drawing in drawings]
        assert len(drawings) == 2 * len(runs), name
        assert [title.split()[-1] for title in titles[::2]] == [str(run.versions) for run in reversed(runs)]
        assert titles[::2] == titles[1::2]
        for run in runs:
            assert any(node.attrib.get("id") == f"v{run.versions.lowest}" for node in root.iter("div"))


def boxes(drawing: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, tuple[float, ...]]]:
    """Return every box's group with x, y, width and height."""
    for group in drawing.iter("g"):
        rect = group.find("rect")
        assert rect is not None
        yield group, tuple(float(rect.attrib[side]) for side in ("x", "y", "width", "height"))


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_boxes_stay_inside_their_parent_without_overlap(width: int) -> None:
    for name in (
        "MetadataResponse",
        "FetchResponse",
        "StreamsGroupDescribeResponse",
        "ConsumerGroupMemberMetadataValue",
    ):
        spec = registry.get(name).SPEC
        found = layout(spec, spec.valid.highest)
        drawing = ElementTree.fromstring(draw(compare(None, found), width, name))
        _, _, right, bottom = map(float, drawing.attrib["viewBox"].split())
        check_inside(drawing, (0, 0, right, bottom))
        slots = sum(1 for top in compare(None, found) for _ in top.walk())
        assert len(list(drawing.iter("g"))) == slots


def check_inside(parent: ElementTree.Element, outer: tuple[float, ...]) -> None:
    x, y, width, height = outer
    places = [next(boxes(group))[1] for group in parent.findall("g")]
    for group, (bx, by, bw, bh) in zip(parent.findall("g"), places, strict=True):
        assert x <= bx
        assert y <= by
        assert bx + bw <= x + width + 0.2
        assert by + bh <= y + height + 0.2
        for text in group.findall("text"):  # by the width of a monospace letter
            size = 7.6 if text.attrib["class"] == "name" else 6.4
            assert float(text.attrib["x"]) + len(text.text or "") * size <= bx + bw + 0.2, text.text
        check_inside(group, (bx, by, bw, bh))
    for i, (ax, ay, aw, ah) in enumerate(places):
        for bx, by, bw, bh in places[i + 1 :]:
            assert ax + aw <= bx + 0.2 or bx + bw <= ax + 0.2 or ay + ah <= by + 0.2 or by + bh <= ay + 0.2


def drawn(spec_text: str, version: int, width: int = WIDE) -> dict[str, tuple[set[str], list[str], int]]:
    """Return the boxes of a version by tooltip: classes, lines of text, cells of the strip."""
    spec = parse(spec_text)
    before = layout(spec, version - 1) if version else None
    drawing = ElementTree.fromstring(draw(compare(before, layout(spec, version)), width, "x"))
    found = {}
    for group in drawing.iter("g"):
        lines = [text_of(text) for text in group.findall("text")]
        strips = [path for path in group.findall("path") if has_class(path, "bytes")]
        cells = sum((int(strip.attrib["d"].partition("h")[2]) + 1) // 7 for strip in strips)
        found[text_of(group.findall("title")[0]).partition(":")[0]] = (set(group.attrib["class"].split()), lines, cells)
    return found


def test_a_box_shows_name_type_and_size_and_marks_changes() -> None:
    text = message(
        field("uuid", "Id"),
        field("string", "Name", nullableVersions="2+"),
        field("int32", "Old", "0-1"),
        field("[]int64", "Ids", "2+"),
        tagged(0, versions="2+", taggedVersions="2+"),
    )
    first, second = drawn(text, 0), drawn(text, 2)
    assert first["Id"] == ({"box", "same"}, ["Id", "uuid · 16 bytes"], 16)
    assert first["Name"] == ({"box", "same"}, ["Name", "string · 2 + n bytes"], 2 + 6)
    assert second["Name"] == ({"box", "changed"}, ["~ Name", "string or null · 1-3 + n bytes"], 3 + 6)
    assert second["Old"][:2] == ({"box", "removed"}, ["− Old", "int32 · 4 bytes"])
    assert second["Ids"] == ({"box", "new"}, ["+ Ids", "[]int64 · 1-5 + n × 8 bytes"], 5 + 8 + 6)
    assert second["Tagged0"] == ({"box", "new"}, ["+ Tagged0", "tag 0 · int32 · 4 bytes"], 2 + 4 + 4)
    section = second["tag section of message"]
    assert section[0] == {"box", "around", "same", "section"}
    assert section[1][1] == "count 1-5 bytes · then tag, size, value of each"


def test_a_version_lists_its_changes(pages: dict[str, ElementTree.Element]) -> None:
    root = pages["message/MetadataResponse.html"]
    said = {}
    for block in root.iter("div"):
        if re.fullmatch(r"v\d+", block.attrib.get("id", "")):
            said[block.attrib["id"]] = [text_of(item) for item in block.iter("li")]
    assert said["v13"] == ["new: ErrorCode, int16"]
    assert said["v12"] == ["Topics.Name: may be null"]
    assert said["v11"] == ["removed: ClusterAuthorizedOperations"]
    assert said["v9"] == [
        "flexible since this version: varint lengths and counts, a tag section in every struct",
        "header 1, was 0",
        "6 fields: count as varint, was int32",
        "4 fields: length as varint, was int16",
    ]
    assert said["v0"] == []


def test_the_table_has_every_field_with_its_attributes(pages: dict[str, ElementTree.Element]) -> None:
    root = pages["message/FetchRequest.html"]
    rows = {row.attrib["id"]: row for row in root.iter("tr") if "id" in row.attrib}
    cells = {
        cell.attrib["data-label"]: text_of(cell) for cell in rows["f-Topics_2ePartitions_2eHighWatermark"].findall("td")
    }
    assert cells["Type"] == "int64"
    assert cells["Versions"].startswith("18+")
    assert cells["Tag"] == "1 in 18+"
    assert cells["Default"] == "9223372036854775807"
    assert cells["Notes"] == "ignorable"

    def count(struct: Any) -> int:
        return sum(1 + (count(f.struct) if f.struct else 0) for f in struct.fields)

    assert len(rows) == count(registry.get("FetchRequest").SPEC.struct)


def test_the_releases_page_lists_the_versions_of_each_release(pages: dict[str, ElementTree.Element]) -> None:
    rows = {}
    for row in pages["versions.html"].iter("tr"):
        if row.find("th/a") is not None:
            name = row.find("th/a").attrib["href"].removeprefix("message/").removesuffix(".html")  # type: ignore[union-attr]
            rows[name] = [text_of(cell.find("span")) for cell in row.findall("td")[1:]]  # type: ignore[arg-type]
    for name in registry.names():
        if not name.endswith("Request"):
            continue
        for i, release in enumerate(("2.8.2", "3.9.2", "4.4.0")):
            own = registry.get(name, release).SPEC if name in registry.names(release) else None
            if own is None or not own.valid:
                assert rows[name][i] in ("–", "removed", "no versions")
            else:
                assert rows[name][i].rstrip("*") == str(own.valid), (name, release)
    assert rows["FetchRequest"] == ["0-12", "0-17", "4-18"]
    assert rows["StopReplicaRequest"] == ["0-3", "0-4", "removed"]


def test_the_search_index_has_every_message_and_use_of_a_name(site: Site) -> None:
    index = index_of(site)
    assert [name for name, *_ in index["messages"]] == registry.names()
    numbers = {name: i for i, (name, *_) in enumerate(index["messages"])}
    fields = dict(index["fields"])
    assert [numbers["FetchRequest"], "Topics.TopicId", "uuid", "13+"] in fields["TopicId"]
    assert [numbers["FetchResponse"], "Responses.Partitions.CurrentLeader", "LeaderIdAndEpoch", "12+"] in dict(
        index["structs"]
    )["LeaderIdAndEpoch"]
    assert site["search-index.js"].isascii()


def test_names_link_to_other_messages(pages: dict[str, ElementTree.Element]) -> None:
    root = pages["names.html"]
    epoch = next(node for node in root.iter("details") if node.attrib["id"] == "struct-LeaderIdAndEpoch")
    assert {a.text for a in epoch.iter("a")} == {
        name
        for name in registry.names()
        for struct in registry.get(name).SPEC.structs
        if struct.name == "LeaderIdAndEpoch"
    }
    assert len(list(epoch.iter("a"))) > 3


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--virtual-time-budget=2000", "--dump-dom"),
)


@pytest.fixture(scope="module")
def opened(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Function that opens a page from the file system in a browser and returns it after its scripts have run."""
    if BROWSER is None:
        pytest.skip("no Chromium here")
    folder = tmp_path_factory.mktemp("site")
    write_files(site, folder / "site")

    def dump(address: str) -> str:
        profile = f"--user-data-dir={folder / 'profile'}"
        url = f"file://{folder}/site/{address}"
        return subprocess.run([BROWSER, *FLAGS, profile, url], capture_output=True, text=True, timeout=HANG_S).stdout

    return dump


def found(page: str, title: str) -> list[str]:
    """Return the search results below a title."""
    _, _, rest = page.partition(f"<h2>{title}<small>")
    items = re.findall(r"<li><a [^>]*>(.*?)</a>", re.sub(r'<ul class="places">.*?</ul>', "", rest.partition("<h2>")[0]))
    return [re.sub(r"<.*?>", "", item) for item in items]


@pytest.mark.slow
def test_search_works_on_pages_opened_from_files(opened: Callable[[str], str]) -> None:
    page = opened("index.html#q=leader_epoch")
    assert found(page, "Messages")[:1] == ["OffsetForLeaderEpochRequest"]
    assert found(page, "Fields")[:2] == ["LeaderEpoch", "leaderEpoch"]
    words = opened("message/FetchRequest.html#q=Fetch%20topicid")
    assert found(words, "Fields") == ["TopicId"]
    assert 'href="../message/FetchRequest.html#f-Topics_2eTopicId"' in words
    assert found(opened("names.html#q=18"), "Messages")[:2] == ["ApiVersionsRequest", "ApiVersionsResponse"]
    assert "No results." in opened("index.html#q=%3Cb%3Enothing")


@pytest.mark.slow
def test_a_url_fragment_opens_its_version(opened: Callable[[str], str]) -> None:
    page = opened("message/MetadataResponse.html#v6")  # 5 and 6 are the same bytes
    runs = re.findall(r'<details class="run"( open="[^"]*")?><summary><b>Versions? (\S+)</b>', page)
    assert len(runs) == 12
    assert {versions for is_open, versions in runs if is_open} == {"13", "5-6"}


HOSTILE = "Evil<b>&\"'" + "".join(ACTED_ON)


def test_names_of_definitions_are_escaped_in_markup_and_paths(tmp_path: Path) -> None:
    name = f"../../{MARKUP}{HOSTILE}"
    text = message(
        field("string", "Note", about=f"<script>{MARKUP}</script>", default=HOSTILE),
        field("[]Elements", "Items", fields=[field()]),
        field("Shared", "One"),
        field("[]Shared", "Two"),
        commonStructs=[common("Shared", field("int8", "A"))],
    )
    # such a name does not get through the parser; the site does not rely on that
    files = render_site(of_definitions([replace(parse(text, f"{tmp_path}/{MARKUP}.json"), name=name)]))
    pages = parsed(files)
    assert broken_links(pages, files) == []
    assert all(re.fullmatch(r"(message/)?[A-Za-z0-9_.-]+", path) for path in files)
    for page in pages.values():
        assert sum(1 for _ in page.iter("script")) == 2
        assert not list(page.iter("b")) or all("Version" in text_of(b) for b in page.iter("b"))
    for path, text in files.items():
        assert not any(character in text for character in ACTED_ON if character not in "\n\t"), path
    assert index_of(files)["messages"][0][0] == name


def test_names_that_differ_only_in_case_have_separate_files() -> None:
    files = render_site(of_definitions([parse(message(field(), name=name)) for name in ("Order", "ORDER", "order")]))
    messages = [path.lower() for path in files if path.startswith("message/")]
    assert len(messages) == len(set(messages)) == 3


def test_long_names_have_short_file_names() -> None:
    names = ["A" * 5000, "A" * 4999 + "B"]
    assert all(len(slug(name)) < 100 for name in names)
    assert len({slug(name) for name in names}) == 2


def test_a_message_without_fields_or_versions_has_a_page() -> None:
    files = render_site(
        of_definitions(
            [parse(message(name="Empty", flexibleVersions="none")), parse(message(name="Gone", validVersions="none"))]
        )
    )
    assert "no bytes" in files["message/Empty.html"]
    assert "has no versions" in files["message/Gone.html"]
    assert broken_links(parsed(files), files) == []


@pytest.mark.slow
def test_a_message_with_too_many_fields_has_a_note_instead_of_a_diagram() -> None:
    inner = [common(f"S{i}", *(field(f"S{i + 1}", f"F{n}") for n in range(3))) for i in range(8)]
    text = message(field("S0", "Top"), commonStructs=[*inner, common("S8", field("int8", "A"))])
    files = render_site(of_definitions([parse(text)]))
    assert "Too many fields to draw" in files["message/Order.html"]
    assert "<rect" not in files["message/Order.html"]


@pytest.mark.slow
def test_docs_writes_kafkas_protocol_without_a_path(kwire: Call, tmp_path: Path, site: Site) -> None:
    result = kwire("schema", "docs", "-o", tmp_path / "site")
    assert (result.code, result.err) == (0, f"kwire: {len(site)} files written\n")
    assert {p.relative_to(tmp_path / "site").as_posix() for p in (tmp_path / "site").rglob("*") if p.is_file()} == set(
        site
    )
    assert (tmp_path / "site" / "message" / "FetchRequest.html").read_text("utf-8") == site["message/FetchRequest.html"]


def test_docs_accepts_custom_definitions(kwire: Call, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "OrderRequest.json").write_text(
        request(field("string", "Name", about="who is to be told"), listeners=["broker"])
    )
    (folder / "OrderResponse.json").write_text(request(field(), type="response", name="OrderResponse"))
    out = tmp_path / "site"
    result = kwire("schema", "docs", folder, "-o", out, "--format", "json")
    assert result.code == 0
    assert str(out / "message" / "OrderRequest.html") in json.loads(result.out)
    files = {path.relative_to(out).as_posix(): path.read_text("utf-8") for path in out.rglob("*") if path.is_file()}
    pages = parsed(files)
    assert broken_links(pages, files) == []
    assert "who is to be told" in files["message/OrderRequest.html"]
    assert "Kafka" not in text_of(pages["versions.html"])
    assert "request header 2" in text_of(pages["message/OrderRequest.html"])


def test_docs_rejects_invalid_definitions(kwire: Call, tmp_path: Path) -> None:
    out = tmp_path / "site"
    assert kwire("schema", "docs", tmp_path / "gone.json", "-o", out).code == 2
    assert kwire("schema", "docs", tmp_path, "-o", out).code == 2
    (tmp_path / "bad.json").write_text("{")
    result = kwire("schema", "docs", tmp_path, "-o", out)
    assert (result.code, "[E-01]" in result.err) == (1, True)
    (tmp_path / "bad.json").write_text(message(field()))
    (tmp_path / "again.json").write_text(message(field()))
    assert kwire("schema", "docs", tmp_path, "-o", out).code == 2
    assert not out.exists()
