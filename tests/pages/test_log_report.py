"""The HTML report: well-formed, self-contained, escaped, with the right numbers."""

from __future__ import annotations

import datetime
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.crafted import ACTED_ON, MARKUP, hostile_log, policy, segment
from tests.records.building import batch, record

from kwire.maintenance.statistics import TopicStatistics
from kwire.pages.charts import Bar, nice_ceiling, stacked_bar, time_bars
from kwire.pages.charts import Part as StackPart
from kwire.pages.log_report import render_report
from kwire.pages.markup import Markup, element, join

NOW = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)


def parsed(page: str) -> ElementTree.Element:
    """Parse a page as XML; raises an error if a tag is not closed or a quote is missing."""
    assert page.startswith("<!doctype html>\n")
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def text_of(node: ElementTree.Element) -> str:
    """Return the text of a node, with numbers without thin spaces."""
    return " ".join(" ".join(node.itertext()).replace("\u202f", "").split())


@pytest.fixture
def report(kwire: Callable, tmp_path: Path) -> Callable[..., str]:
    """Function that returns the page of `kwire log report`."""

    def write(path: Path, *, code: int = 0) -> str:
        target = tmp_path / "report.html"
        assert kwire("log", "report", path, "-o", target).code == code
        return target.read_text("utf-8")

    return write


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ["modern", "modern44", "legacy"])
def test_the_page_is_well_formed_and_self_contained(
    archive: str, kafka_logs: dict[str, Path], report: Callable
) -> None:
    page = report(kafka_logs[archive] / "data")
    root = parsed(page)
    names = {node.tag for node in root.iter()}
    assert policy(root).startswith("default-src 'none'; base-uri 'none'; form-action 'none'; style-src")
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "use", "image", "foreignObject"}
    assert "url(" not in page
    assert "@import" not in page
    assert "http" not in page.replace("http-equiv", "")
    links = [node.attrib["href"] for node in root.iter() if "href" in node.attrib]
    ids = {node.attrib["id"] for node in root.iter() if "id" in node.attrib}
    assert links
    assert {link.removeprefix("#") for link in links} <= ids
    assert not any(name.lower().startswith("on") for node in root.iter() for name in node.attrib)


def test_every_chart_has_a_title_and_every_mark_a_value(kafka_logs: dict[str, Path], report: Callable) -> None:
    root = parsed(report(kafka_logs["modern"] / "data"))
    charts = list(root.iter("svg"))
    assert len(charts) > 40
    for chart in charts:
        assert chart.attrib["role"] == "img"
        assert chart[0].tag == "title"
        assert chart[0].text
        if chart.attrib["class"] != "spark":
            assert all(mark[0].tag == "title" and mark[0].text for mark in chart.iter("rect"))


def test_the_numbers_equal_the_logs(kafka_logs: dict[str, Path], report: Callable) -> None:
    root = parsed(report(kafka_logs["modern"] / "data"))
    sections = {
        text_of(node.find("h2")): text_of(node)  # type: ignore[arg-type]
        for node in root.iter("section")
        if node.attrib.get("class") == "topic"
    }
    orders = sections["orders"]
    assert "20001 records" in orders
    assert "No gaps: each of the 20001 offsets has a record." in orders
    assert "tombstones 765" in orders
    compacted = sections["compacted"]
    assert "4338 of 5332 offsets (81.4 %) have no record" in compacted
    assert "commit markers" in sections["txn"]


def test_data_is_escaped_as_text(report: Callable, tmp_path: Path) -> None:
    page = report(hostile_log(tmp_path / "data"))
    assert "<script" not in page
    assert not any(character in page for character in ACTED_ON)
    shown = text_of(parsed(page))
    assert MARKUP.replace("/", "") in shown  # the topic's name, as text
    assert MARKUP[:48] in shown  # a key, as text
    assert "a\\x1b]0;owned" in shown


def test_damage_is_reported_at_the_top_and_by_the_exit_code(kafka_logs: dict[str, Path], report: Callable) -> None:
    page = report(kafka_logs["unclean"] / "damaged" / "data", code=1)
    box = next(node for node in parsed(page).iter("section") if node.attrib.get("class") == "damage")
    shown = text_of(box)
    assert "2 unreadable parts" in shown
    assert "in the batch at byte 29993 (offset 203)" in shown


def test_an_empty_log_directory_has_a_report(report: Callable, tmp_path: Path) -> None:
    segment(tmp_path / "data" / "quiet-0")
    assert "Topics without records" in text_of(parsed(report(tmp_path / "data")))


def test_records_without_a_timestamp_are_reported(report: Callable, kafka_logs: dict[str, Path]) -> None:
    page = report(kafka_logs["legacy"] / "data" / "v0-0")
    assert "records without timestamp" in text_of(parsed(page))


def test_one_stray_timestamp_does_not_flatten_the_chart(report: Callable, tmp_path: Path) -> None:
    """A record from 1970 among a thousand of one minute, as from a producer with a wrong clock."""
    records = b"".join(record(i, i * 60) for i in range(1000))
    stray = record(1000, -1_700_000_000_000)
    day = 1_700_000_000_000
    data = batch(records + stray, count=1001, base_timestamp=day, max_timestamp=day + 60_000)
    segment(tmp_path / "data" / "t-0", data)
    root = parsed(report(tmp_path / "data"))
    chart = next(svg for svg in root.iter("svg") if svg.attrib["class"] == "bars")
    assert len(list(chart.iter("rect"))) > 30
    assert "1 records are far outside" in text_of(root)


def test_more_topics_than_sections_are_still_listed() -> None:
    topics = []
    for i in range(70):
        topic = TopicStatistics(f"topic-{i}")
        topic.batches = topic.stored_bytes = i + 1
        topics.append(topic)
    page = render_report(topics, source="x", made_at=NOW)
    root = parsed(page)
    assert sum(1 for node in root.iter("section") if node.attrib.get("class") == "topic") == 60
    assert "10 smaller topics are in the table above only" in text_of(root)
    assert "topic-0" in text_of(root)


def test_markup_is_escaped_unless_it_is_markup() -> None:
    made = element("td", "<b>", element("i", "&"), None, 3, title='"', class_="n")
    assert made == '<td title="&quot;" class="n">&lt;b&gt;<i>&amp;</i>3</td>'
    assert isinstance(made, Markup)
    assert join("<", made) == "&lt;" + made


@pytest.mark.parametrize(
    ("value", "top"), [(1, 1), (2, 2), (3, 3), (7, 8), (11, 12), (99, 100), (101, 120), (4321, 5000)]
)
def test_axes_end_at_round_values(value: int, top: int) -> None:
    assert nice_ceiling(value) == top


def test_bar_heights_are_proportional_to_values() -> None:
    chart = parsed(
        "<!doctype html>\n" + time_bars([Bar(0, 5, "five"), Bar(1000, 0, ""), Bar(2000, 10, "ten")], 1000, "t", "u")
    )
    heights = [float(rect.attrib["height"]) for rect in chart.iter("rect")]
    assert heights == [50, 100]
    tips = [title.text for rect in chart.iter("rect") for title in rect]
    assert tips[0] == "1970-01-01 00:00:00 (+1 s): five"


def test_the_parts_of_a_stacked_bar_fill_it_and_stay_visible() -> None:
    bar = stacked_bar([StackPart("a", 1, "x", "1"), StackPart("b", 10**9, "y", "2"), StackPart("c", 0, "z", "0")], "t")
    widths = [float(width) for width in re.findall(r'width="([0-9.]+)"', bar)]
    assert len(widths) == 2
    assert min(widths) >= 0.5
    assert sum(widths) == pytest.approx(100, abs=0.1)
