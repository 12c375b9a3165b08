"""The damage report: totals, each damaged log as a strip of its segments, and all findings."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence

from kwire.errors import counted
from kwire.log.files.damage import Damage, Severity
from kwire.maintenance.verify import DirectoryFindings, PartitionFindings
from kwire.pages.charts import HEIGHT, rect, svg
from kwire.pages.document import document, made_by, page_head, tiles
from kwire.pages.markup import Markup, element, join
from kwire.pages.quantities import bytes_text, count_text, plural

__all__ = ["render_damage"]

MAX_STRIPS = 200
MAX_ROWS = 2000
MIN_MARK = 0.7  # of a strip's 100: one damaged byte in a terabyte stays visible


def render_damage(findings: DirectoryFindings, *, source: str, root: str, made_at: datetime.datetime) -> str:
    """Return the page. source: the path given by the user. root: prefix of the files of the findings."""
    damages = [each for each in findings.damages if not each.is_harmless]
    notes = [each for each in findings.damages if each.is_harmless]
    body = element(
        "body",
        page_head(
            "Kafka log verification",
            source,
            f"every batch, index, snapshot and checkpoint, verified {made_by(made_at)}; nothing was changed",
        ),
        element(
            "main",
            _tiles(findings, damages, notes),
            _strips(findings.partitions, damages),
            _damages(damages, root),
            _notes(notes, root),
            _legend(),
        ),
    )
    return document(f"Kafka log verification: {source}", body)


def _tiles(findings: DirectoryFindings, damages: Sequence[Damage], notes: Sequence[Damage]) -> Markup:
    segments = sum(len(each.segments) for each in findings.partitions)
    damaged = {(each.topic, each.partition) for each in damages if each.topic is not None}
    worst = max((each.severity for each in damages), default=None)
    lost = sum(last - first + 1 for first, last in _offset_ranges(damages))
    read_in = f"not checked: {findings.unchecked}" if findings.unchecked else f"in {count_text(segments)} segments"
    totals = [
        ("findings", count_text(len(damages)), f"and {count_text(len(notes))} notes"),
        ("worst", worst.text if worst is not None else "none", worst.meaning if worst is not None else ""),
        ("affected offsets", count_text(lost), "lost or unreadable"),
        ("logs with damage", count_text(len(damaged)), f"of {count_text(len(findings.partitions))} partitions"),
        ("read", bytes_text(sum(each.size_bytes for each in findings.partitions)), read_in),
    ]
    return tiles(totals)


def _offset_ranges(damages: Sequence[Damage]) -> list[tuple[int, int]]:
    """Return the affected offsets, merged so that each is counted once."""
    merged: list[tuple[int, int]] = []
    by_log: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for each in damages:
        if each.topic is None or each.partition is None or each.offsets is None:
            continue
        if each.severity >= Severity.STOPS_CONSUMERS:
            by_log.setdefault((each.topic, each.partition), []).append(each.offsets)
    for ranges in by_log.values():
        start = len(merged)
        for first, last in sorted(ranges):
            if len(merged) > start and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
    return merged


def _strips(partitions: Sequence[PartitionFindings], damages: Sequence[Damage]) -> Markup | None:
    by_log: dict[tuple[str | None, int | None], list[Damage]] = {}
    for each in damages:
        by_log.setdefault((each.topic, each.partition), []).append(each)
    damaged = [each for each in partitions if (each.log.topic, each.log.partition) in by_log]
    if not damaged:
        return None
    damaged.sort(key=lambda each: -max(d.severity for d in by_log[each.log.topic, each.log.partition]))
    rows = [_strip(each, by_log[each.log.topic, each.log.partition]) for each in damaged[:MAX_STRIPS]]
    fine = len(partitions) - len(damaged)
    left = len(damaged) - MAX_STRIPS
    rest = [f"{count_text(left)} more damaged logs are not shown"] if left > 0 else []
    rest += [f"{count_text(fine)} logs without damage are not shown"] if fine else []
    return element(
        "section",
        element("h2", "Damaged logs"),
        element("p", "One strip per log: its segments from the oldest to the newest.", class_="sub"),
        element("div", *rows, class_="logs"),
        element("p", "; ".join(rest), class_="quiet") if rest else None,
    )


def _strip(partition: PartitionFindings, damages: Sequence[Damage]) -> Markup:
    """Return segments as blocks by size, with marks for damaged bytes, and below for damaged other files."""
    total = sum(segment.size_bytes for segment in partition.segments)
    gap = min(0.4, 20 / max(len(partition.segments), 1))
    room = 100 - gap * max(len(partition.segments) - 1, 0)
    blocks: list[Markup] = []
    marks: list[Markup] = []
    x = 0.0
    for segment in partition.segments:
        share = segment.size_bytes / total if total else 1 / len(partition.segments)
        width = share * room
        base = segment.segment.base_offset
        tip = f"from offset {base}, {bytes_text(segment.size_bytes)}"
        blocks.append(rect(x, 0, max(width, 0.3), HEIGHT, tip, "segment"))
        stem = f"{segment.segment.base_offset:020d}"
        for each in damages:
            name = each.name
            if name.partition(".")[0] != stem:
                continue
            if name.partition(".")[2].startswith("log") and each.position is not None and segment.size_bytes:
                at = x + each.position / segment.size_bytes * width
                span = max((each.size_bytes or 0) / segment.size_bytes * width, MIN_MARK)
                at = min(at, max(x + width - span, x))
                marks.append(rect(at, 0, span, HEIGHT, f"{name}: {each.cause}", f"hit s{each.severity.value}"))
            else:
                span = max(width, MIN_MARK)
                marks.append(rect(x, 78, span, 22, f"{name}: {each.cause}", f"hit s{each.severity.value}"))
        x += width + gap
    findings, segments = counted(len(damages), "finding"), counted(len(partition.segments), "segment")
    title = f"{partition.log.topic}-{partition.log.partition}: {findings} in {segments}"
    return join(
        element("div", f"{partition.log.topic}-{partition.log.partition}", class_="name"),
        svg(100, title, *blocks, *marks, class_="segments"),
        element("div", plural(len(damages), "finding"), class_="many"),
    )


def _damages(damages: Sequence[Damage], root: str) -> Markup:
    if not damages:
        text = "All checksums match, all records decode, and all indexes and checkpoints match their logs."
        return element("section", element("div", element("h2", "No damage"), element("p", text), class_="fine"))
    left = len(damages) - MAX_ROWS
    more = element("p", f"{count_text(left)} more are not shown", class_="quiet") if left > 0 else None
    counts = Counter(each.severity for each in damages)
    kinds = [
        element("span", _badge(severity), f" {count_text(n)}") for severity, n in sorted(counts.items(), reverse=True)
    ]
    return element(
        "section",
        element("h2", "Findings, worst first"),
        element("div", *kinds, class_="kinds"),
        element("div", *(_finding(each, root) for each in damages[:MAX_ROWS]), class_="findings"),
        more,
    )


def _finding(each: Damage, root: str) -> Markup:
    place = each.file.removeprefix(root).lstrip("/") or each.file
    facts = []
    if each.position is not None:
        size = "" if not each.size_bytes else f", {bytes_text(each.size_bytes)}"
        facts.append(f"from byte {count_text(each.position)}{size}")
    if each.offsets is not None:
        first, last = each.offsets
        facts.append(f"offset {first}" if first == last else f"offsets {first} to {last}")
    return element(
        "div",
        element("div", _badge(each.severity), " ", element("code", place), class_="where"),
        element("p", each.cause),
        element("p", " · ".join(facts), class_="facts") if facts else None,
        element("p", element("b", "Kafka: "), each.effect, class_="then") if each.effect else None,
        element("p", element("b", "Remedy: "), each.hint, class_="then") if each.hint else None,
        class_=f"finding s{each.severity.value}",
    )


def _badge(severity: Severity) -> Markup:
    return element("span", severity.text, class_=f"badge s{severity.value}", title=severity.meaning)


def _notes(notes: Sequence[Damage], root: str) -> Markup | None:
    if not notes:
        return None
    shown = [_finding(each, root) for each in notes[:MAX_ROWS]]
    return element(
        "section",
        element("h2", plural(len(notes), "note")),
        element("p", "Not damage: traces of an unclean shutdown or of unfinished work.", class_="sub"),
        element("details", element("summary", "Show"), element("div", *shown, class_="findings"), class_="more"),
    )


def _legend() -> Markup:
    return element(
        "footer",
        element("h2", "How to read this"),
        element(
            "ul",
            *(
                element("li", _badge(severity), f" {severity.meaning}")
                for severity in sorted(Severity, reverse=True)
            ),
            element("li", "In a strip, a full-height mark is damage in the records of a segment; a mark along the "
                          "lower edge is damage in its indexes or snapshot."),
            element("li", "Affected offsets: of findings that stop consumers or lose records, each counted once."),
        ),
    )  # fmt: skip
