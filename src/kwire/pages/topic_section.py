"""The section of a topic: records over time, bytes by codec, offsets, keys, record properties, transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.maintenance.statistics import MAX_KEYS, CodecCount, PartitionStatistics, TopicStatistics
from kwire.pages.charts import Bar, Part, ranked_bars, stacked_bar, strip, time_bars
from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.quantities import bytes_text, count_text, duration_text, percent_text, plural, ratio_text, time_text

__all__ = ["codec_parts", "topic_section"]

MAX_BARS = 90
MAX_STRIPS = 16
TOP_KEYS = 8
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMP_TYPES = {-1: ("none (magic 0)", "tone0"), 0: ("CreateTime", "tone2"), 1: ("LogAppendTime", "tone1")}


def topic_section(topic: TopicStatistics, anchor: str) -> Markup:
    """Return the section of a topic with at least one batch. anchor: its id."""
    span = ""
    if topic.timeline.first_ms is not None and topic.timeline.last_ms is not None:
        span = f" · {duration_text(topic.timeline.last_ms - topic.timeline.first_ms)} of records"
    partitions = plural(len(topic.partitions), "partition")
    return element(
        "section",
        element("h2", topic.topic),
        element(
            "p",
            f"{count_text(topic.records)} records · {bytes_text(topic.stored_bytes)} on disk · {partitions}{span}",
            class_="sub",
        ),
        element(
            "div",
            _time_panel(topic),
            _codec_panel(topic),
            _offset_panel(topic),
            _key_panel(topic),
            _record_panel(topic),
            _transaction_panel(topic),
            class_="panels",
        ),
        class_="topic",
        id=anchor,
    )


def _panel(title: str, *children: Child, class_: str = "panel") -> Markup:
    return element("figure", element("figcaption", title), *children, class_=class_)


def _facts(rows: Iterable[tuple[str, Child, Child]]) -> Markup:
    """Return a definition list of (name, figure, remark)."""
    lines = [
        join(element("dt", name), element("dd", value, element("small", remark) if remark else None))
        for name, value, remark in rows
    ]
    return element("dl", *lines)


def _share(part: int, whole: int) -> str:
    return percent_text(part / whole) if whole else ""


def _time_panel(topic: TopicStatistics) -> Markup:
    stretches, outside = topic.timeline.stretches(MAX_BARS)
    untimed = topic.timeline.untimed
    remarks = []
    if untimed:
        remarks.append(f"{count_text(untimed)} records without timestamp (-1, as in magic 0) are not in the chart.")
    if len(stretches) > 1:
        remarks.append("No records were written between these periods.")
    if outside:
        low, high = time_text(topic.timeline.first_ms), time_text(topic.timeline.last_ms)
        remarks.append(f"{count_text(outside)} records are far outside; the whole range is {low} to {high}.")
    charts = [
        time_bars(
            [
                Bar(start, n, f"{count_text(n)} records, {bytes_text(size)} of payload")
                for start, n, size in stretch.bars
            ],
            stretch.width_ms,
            f"{topic.topic}: records over time",
            "records",
        )
        for stretch in stretches
    ]
    if not topic.records:
        remarks = ["No data records."]
    return _panel(
        "Records over time",
        *charts,
        element("p", " ".join(remarks), class_="quiet") if remarks else None,
        class_="panel full",
    )


def codec_parts(codecs: Mapping[str, CodecCount]) -> list[Part]:
    """Return stored bytes by codec, in the order of Kafka's codec ids."""
    return [
        Part(name, codecs[name].stored_bytes, f"c-{name}", bytes_text(codecs[name].stored_bytes))
        for name in CODECS
        if name in codecs
    ]


def _codec_panel(topic: TopicStatistics) -> Markup:
    rows = []
    for part in codec_parts(topic.codecs):
        count = topic.codecs[part.label]
        cells = (
            bytes_text(count.stored_bytes),
            bytes_text(count.payload_bytes),
            ratio_text(count.ratio) if count.ratio is not None else "-",
            count_text(count.batches),
        )
        name = element("th", element("span", class_=f"key {part.kind}"), part.label, scope="row")
        rows.append(element("tr", name, *(element("td", cell, class_="n") for cell in cells)))
    heads = [element("th", "codec", scope="col")] + [
        element("th", text, scope="col", class_="n") for text in ("on disk", "payload", "ratio", "batches")
    ]
    return _panel(
        "Bytes by codec",
        stacked_bar(codec_parts(topic.codecs), f"{topic.topic}: bytes on disk by codec"),
        element("table", element("thead", element("tr", *heads)), element("tbody", *rows)),
    )


def _offset_panel(topic: TopicStatistics) -> Markup:
    partitions = [p for p in topic.partitions if p.span]
    strips = [_offset_strip(topic.topic, p) for p in partitions[:MAX_STRIPS]]
    more = len(partitions) - MAX_STRIPS
    holes, span = topic.holes, sum(p.span for p in topic.partitions)
    if holes:
        text = f"{count_text(holes)} of {count_text(span)} offsets ({_share(holes, span)}) have no record"
        text += ", including unreadable ones." if topic.unread else "."
    else:
        text = f"No gaps: each of the {count_text(span)} offsets has a record."
    legend = [element("span", element("span", class_=f"key d{i}"), label) for i, label in _SHADES] if holes else []
    return _panel(
        "Offsets with a record",
        element("div", *strips, class_="strips"),
        element("p", f"{count_text(more)} more partitions are not shown.", class_="quiet") if more > 0 else None,
        element("div", *legend, class_="legend") if legend else None,
        element("p", text, class_="quiet"),
    )


_SHADES = ((0, "none"), (1, "few"), (3, "half"), (4, "most"), (5, "all"))


def _offset_strip(topic: str, partition: PartitionStatistics) -> Markup:
    def describe(start: int, end: int, filled: int) -> str:
        have = f"{count_text(filled)} of {count_text(end - start)} have a record"
        return f"offsets {count_text(start)} to {count_text(end - 1)}: {have}"

    ends = f"{count_text(partition.log_start_offset)} … {count_text(partition.log_end_offset)}"
    return join(
        element("div", f"partition {partition.partition}", class_="strip-name"),
        strip(partition.bins(), f"{topic}, partition {partition.partition}: share of offsets with a record", describe),
        element("div", ends, class_="strip-ends"),
    )


def _key_panel(topic: TopicStatistics) -> Markup:
    keys = topic.keys
    distinct = count_text(keys.distinct) if keys.complete else f"more than {count_text(keys.distinct)}"
    rows: list[tuple[str, Child, Child]] = [("distinct keys", distinct, None)]
    if not keys.complete:
        rows.append(
            (
                "not counted",
                count_text(keys.uncounted),
                f"records with keys after the first {count_text(MAX_KEYS)}",
            )
        )
    rows.append(("without key", count_text(keys.null), _share(keys.null, topic.records)))
    if keys.empty:
        rows.append(("empty key", count_text(keys.empty), _share(keys.empty, topic.records)))
    top = keys.top(TOP_KEYS)
    ranked: list[tuple[Child, int, str]] = [
        (_key_label(head, cut), n, f"{count_text(n)} ({_share(n, topic.records)})") for head, cut, n in top
    ]
    caption = "most frequent keys, by records" + (
        "" if keys.complete else f" (among the first {count_text(MAX_KEYS)} seen)"
    )
    return _panel(
        "Keys",
        _facts(rows),
        element("p", caption, class_="small-caption") if ranked else None,
        ranked_bars(ranked, f"{topic.topic}: {caption}") if ranked else None,
    )


def _key_label(head: bytes, cut: bool) -> Markup:
    """Return the key as text if it is printable UTF-8, else in hex."""
    try:
        text = head.decode() if not cut else head.decode("utf-8", "ignore")
        plain = bool(text) and text.isprintable()
    except UnicodeDecodeError:
        plain, text = False, ""
    if not head:
        return element("span", "(empty)", class_="quiet")
    if not plain:
        text = "0x" + head[:20].hex() + ("…" if len(head) > 20 or cut else "")
    elif cut:
        text += "…"
    return element("code", text)


def _record_panel(topic: TopicStatistics) -> Markup:
    records = topic.records
    mean_key = topic.key_bytes / (records - topic.keys.null) if records > topic.keys.null else 0
    valued = records - topic.tombstones
    per_batch = records / topic.batches if topic.batches else 0
    rows: list[tuple[str, Child, Child]] = [
        ("tombstones", count_text(topic.tombstones), _share(topic.tombstones, records)),
        ("empty values", count_text(topic.empty_values), _share(topic.empty_values, records)),
        ("with headers", count_text(topic.with_headers), _share(topic.with_headers, records)),
        ("mean key, value", f"{bytes_text(mean_key)}, {bytes_text(topic.value_bytes / valued if valued else 0)}", None),
        ("largest value", bytes_text(topic.largest_value_bytes), None),
        ("records per batch", f"{per_batch:.1f}", f"{count_text(topic.batches)} batches"),
        ("largest batch", bytes_text(topic.largest_batch_bytes), None),
    ]
    if topic.empty_batches:
        why = "emptied by compaction, or unreadable" if topic.unread else "kept by compaction for producer state"
        rows.append(("batches without records", count_text(topic.empty_batches), why))
    magics = [
        Part(f"magic {magic}", n, f"tone{min(max(magic, 0), 2)}", f"{count_text(n)} records")
        for magic, n in sorted(topic.magics.items())
    ]
    types = [
        Part(TIMESTAMP_TYPES[kind][0], n, TIMESTAMP_TYPES[kind][1], f"{count_text(n)} records")
        for kind, n in sorted(topic.timestamp_types.items())
        if kind in TIMESTAMP_TYPES
    ]
    return _panel(
        "Records",
        _facts(rows),
        _mix("record format", magics, f"{topic.topic}: records by format"),
        _mix("timestamp type", types, f"{topic.topic}: records by timestamp type"),
    )


def _mix(caption: str, parts: list[Part], title: str) -> Markup | None:
    if not any(part.value for part in parts):
        return None
    shown = [part for part in parts if part.value]
    if len(shown) == 1:
        return element("p", f"{caption}: ", element("b", f"all {shown[0].label}"), class_="small-caption")
    total = sum(part.value for part in parts)
    legend = [
        element("span", element("span", class_=f"key {part.kind}"), f"{part.label} {percent_text(part.value / total)}")
        for part in parts
    ]
    return join(
        element("p", caption, class_="small-caption"),
        stacked_bar(parts, title, "stack small"),
        element("div", *legend, class_="legend"),
    )


def _transaction_panel(topic: TopicStatistics) -> Markup | None:
    if not (topic.commits or topic.aborts or topic.transactional_records or topic.other_control):
        return None
    rows: list[tuple[str, Child, Child]] = [
        ("commit markers", count_text(topic.commits), None),
        ("abort markers", count_text(topic.aborts), None),
    ]
    if topic.other_control:
        rows.append(("other control records", count_text(topic.other_control), "of the metadata quorum"))
    rows.append(("in transactions", count_text(topic.transactional_records), f"of {count_text(topic.records)} records"))
    rows.append(("producer ids", count_text(len(topic.producers)), None))
    parts = []
    if topic.committed_records is not None:
        aborted = topic.records - topic.committed_records - topic.undecided_records
        parts = [
            Part("readable", topic.committed_records, "tone1", f"{count_text(topic.committed_records)} records"),
            Part("aborted", aborted, "bad", f"{count_text(aborted)} records"),
            Part("undecided", topic.undecided_records, "tone0", f"{count_text(topic.undecided_records)} records"),
        ]
    caption = "read_committed (undecided: from the first open transaction)"
    return _panel("Transactions", _facts(rows), _mix(caption, parts, f"{topic.topic}: records for read_committed"))
