"""The log report: totals, an overview of the topics, a section per topic, and how the figures were counted."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from kwire.maintenance.statistics import TopicStatistics
from kwire.pages.charts import sparkline, stacked_bar
from kwire.pages.document import document, made_by, page_head, tiles
from kwire.pages.markup import Child, Markup, element, join, listed
from kwire.pages.quantities import bytes_text, count_text, percent_text, plural, ratio_text, time_text
from kwire.pages.topic_section import codec_parts, topic_section

__all__ = ["render_report"]

DETAILED_TOPICS = 60  # further topics are in the overview only


def render_report(topics: Sequence[TopicStatistics], *, source: str, made_at: datetime.datetime) -> str:
    """Return the report as one HTML page, without scripts or external resources.

    source: the path or URL given by the user. Topics are sorted by size, internal ones (`__...`) last.
    """
    ranked = sorted(topics, key=lambda t: (t.topic.startswith("__"), -t.stored_bytes, t.topic))
    filled = [t for t in ranked if t.batches or t.unread]
    detailed = filled[:DETAILED_TOPICS]
    body = element(
        "body",
        page_head("Kafka log report", source, f"read from the segment files {made_by(made_at)}, without a broker"),
        element(
            "main",
            _damage(ranked),
            _tiles(ranked),
            _overview(ranked, {t.topic: f"topic-{i}" for i, t in enumerate(detailed)}),
            *(topic_section(t, f"topic-{i}") for i, t in enumerate(detailed)),
            _notes(len(filled) - len(detailed)),
        ),
    )
    return document(f"Kafka log report: {source}", body)


def _damage(topics: Sequence[TopicStatistics]) -> Markup | None:
    lines = [line for topic in topics for line in topic.unread]
    if not lines:
        return None
    shown = [element("li", line) for line in lines[:20]]
    more = element("li", f"… and {count_text(len(lines) - 20)} more") if len(lines) > 20 else None
    title = plural(len(lines), "unreadable part")
    return element(
        "section",
        element("h2", title),
        element("p", "The figures below do not include their records."),
        element("ul", *shown, more),
        class_="damage",
    )


def _tiles(topics: Sequence[TopicStatistics]) -> Markup:
    partitions = sum(len(t.partitions) for t in topics)
    records, stored, payload = (
        (sum(values) for values in zip(*((t.records, t.stored_bytes, t.payload_bytes) for t in topics), strict=True))
        if topics
        else (0, 0, 0)
    )
    times = [t.timeline for t in topics if not t.topic.startswith("__")]
    first = min((t.first_ms for t in times if t.first_ms is not None), default=None)
    last = max((t.last_ms for t in times if t.last_ms is not None), default=None)
    totals = [
        ("topics", count_text(len(topics)), f"{count_text(partitions)} partitions"),
        ("records", count_text(records), "without control records"),
        ("on disk", bytes_text(stored), "complete batches in .log files"),
        ("payload", bytes_text(payload), "keys, values and headers, decompressed"),
    ]
    if stored:
        totals.append(("payload per stored byte", ratio_text(payload / stored), "compression ratio"))
    if first is not None and last is not None:
        totals.append(("record timestamps", *_time_span(first, last)))
    return tiles(totals)


def _time_span(first_ms: int, last_ms: int) -> tuple[str, str]:
    first, last = time_text(first_ms) or "none", time_text(last_ms) or "none"
    if first[:10] == last[:10]:
        return first[:10], f"{first[11:16]} to {last[11:16]} UTC"
    return first[:10], f"to {last[:10]}"


def _overview(topics: Sequence[TopicStatistics], anchors: dict[str, str]) -> Markup:
    heads = [
        element("th", "topic", scope="col"),
        element("th", "records over time", scope="col", class_="wide"),
        element("th", "bytes by codec", scope="col"),
        *(element("th", text, scope="col", class_="n") for text in ("records", "on disk")),
        *(
            element("th", text, scope="col", class_="n wide")
            for text in ("payload per stored byte", "gaps", "partitions")
        ),
    ]
    filled = [t for t in topics if t.batches or t.unread]
    empty = [t for t in topics if not (t.batches or t.unread)]
    rows = [_overview_row(topic, anchors.get(topic.topic)) for topic in filled]
    nothing = None
    if empty:
        names = [join(element("code", t.topic), f" ({len(t.partitions)})") for t in empty[:40]]
        more = f" and {count_text(len(empty) - 40)} more" if len(empty) > 40 else ""
        nothing = element("p", "Topics without records (partitions): ", listed(names), more, class_="quiet")
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows), class_="overview")
    return element(
        "section",
        element("h2", "Topics"),
        element("div", table, class_="scroll") if rows else None,
        nothing,
    )


def _overview_row(topic: TopicStatistics, anchor: str | None) -> Markup:
    name: Child = element("a", topic.topic, href=f"#{anchor}") if anchor else topic.topic
    stretches, _ = topic.timeline.stretches(28)
    values: list[int] = []
    for stretch in topic.timeline.stretches(28 // max(len(stretches), 1))[0]:
        values += ([0] if values else []) + [n for _, n, _ in stretch.bars]
    spark = sparkline(values, f"{topic.topic}: records over time") if values else "no timestamps"
    span = sum(p.span for p in topic.partitions)
    gaps = percent_text(topic.holes / span) if topic.holes and span else "none"
    return element(
        "tr",
        element("th", name, scope="row"),
        element("td", spark, class_="wide"),
        element("td", stacked_bar(codec_parts(topic.codecs), f"{topic.topic}: bytes by codec", "stack small")),
        element("td", count_text(topic.records), class_="n"),
        element("td", bytes_text(topic.stored_bytes), class_="n"),
        element("td", ratio_text(topic.ratio) if topic.ratio is not None else "-", class_="n wide"),
        element("td", gaps, class_="n wide"),
        element("td", count_text(len(topic.partitions)), class_="n wide"),
    )


def _notes(undetailed: int) -> Markup:
    notes: list[str] = []
    if undetailed:
        notes.append(f"{count_text(undetailed)} smaller topics are in the table above only.")
    notes += [
        "On disk: bytes of complete batches in the segments of the log, without indexes and incomplete tails.",
        "Payload: keys, values and headers, decompressed. Payload per stored byte is the effect of compression and "
        "batching together. It is below 1 for uncompressed topics, because every batch and record has a header.",
        "Gaps: offsets between log start and log end with neither a data record nor a control record. They come from "
        "compaction and a few of Kafka's own writes.",
        "Times are record timestamps: of the producer, or of the broker if the type is LogAppendTime.",
        "A tombstone is a record with a null value. Control records (transaction markers) are counted separately.",
    ]
    return element("footer", element("h2", "How this was counted"), element("ul", *(element("li", n) for n in notes)))
