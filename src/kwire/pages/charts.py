"""Charts as inline SVG: bars over time, one stacked bar, strips of density, sparklines.

Marks are SVG and stretch with the page (preserveAspectRatio none). Labels are HTML beside them and keep their size on a
phone. Every chart and every mark has a <title>, which browsers show as a tooltip and screen readers read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.quantities import count_text, duration_text, percent_text

__all__ = [
    "Bar",
    "Part",
    "nice_ceiling",
    "ranked_bars",
    "rect",
    "sparkline",
    "stacked_bar",
    "strip",
    "svg",
    "time_bars",
]

HEIGHT = 100  # of every viewBox: heights are percentages


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar over time. tip: text of its tooltip after the time."""

    start_ms: int
    value: int
    tip: str


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a stacked bar. kind: the CSS class of its color."""

    label: str
    value: int
    kind: str
    tip: str


def svg(width: float, title: str, *marks: Child, class_: str) -> Markup:
    """Return marks as an image, width by HEIGHT, that is stretched to its place."""
    return element(
        "svg",
        element("title", title),
        *marks,
        viewBox=f"0 0 {_number(width)} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        class_=class_,
    )


def rect(x: float, y: float, width: float, height: float, tip: str, class_: str = "mark") -> Markup:
    """Return a mark with a tooltip."""
    sides = {"x": _number(x), "y": _number(y), "width": _number(width), "height": _number(height)}
    return element("rect", element("title", tip), **sides, class_=class_)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def nice_ceiling(value: int) -> int:
    """Return a round upper bound of an axis: 1, 1.2, 1.6, 2, 3, 4, 5, 6, 8 or 10 times a power of ten."""
    if value <= 2:
        return max(value, 1)
    power = 10 ** (len(str(value)) - 1)
    return next(int(step * power) for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * power >= value)


def time_bars(bars: Sequence[Bar], width_ms: int, title: str, unit: str) -> Markup:
    """Return bars of equal width over time, with a y axis in `unit`. bars: contiguous, at least one."""
    top = nice_ceiling(max(bar.value for bar in bars))
    step = 10.0
    total = step * len(bars)
    marks = []
    for i, bar in enumerate(bars):
        if bar.value:
            height = max(bar.value / top * HEIGHT, 0.8)  # a single record stays visible
            span = f"{_moment(bar.start_ms, width_ms)} (+{duration_text(width_ms)})"
            marks.append(rect(i * step + 0.6, HEIGHT - height, step - 1.2, height, f"{span}: {bar.tip}"))
    lines = [element("line", x1=0, x2=_number(total), y1=y, y2=y, class_="grid") for y in (0, HEIGHT // 2, HEIGHT)]
    ticks = (top, top / 2, 0)
    labels = [element("span", count_text(int(t)) if t == int(t) else f"{t:g}") for t in ticks]
    starts = [bars[0].start_ms, bars[len(bars) // 2].start_ms, bars[-1].start_ms + width_ms]
    days = {_day(start) for start in starts}
    times = [element("span", _axis_time(start, width_ms, with_day=len(days) > 1)) for start in starts]
    day = f", {days.pop()}" if len(days) == 1 else ""
    return element(
        "div",
        element("div", unit, class_="axis-unit"),
        element("div", *labels, class_="axis-y"),
        svg(total, title, *lines, *marks, class_="bars"),
        element("div", *times, class_="axis-x"),
        element("div", f"time in UTC{day} · one bar is {duration_text(width_ms)}", class_="axis-name"),
        class_="plot",
    )


def sparkline(values: Sequence[int], title: str) -> Markup:
    """Return bars without axes, for the shape only."""
    top = max(values, default=0) or 1
    marks = [
        element("rect", x=i * 10 + 1, y=_number(HEIGHT - h), width=8, height=_number(h), class_="mark")
        for i, h in ((i, max(v / top * HEIGHT, 4)) for i, v in enumerate(values) if v)
    ]
    return svg(10 * max(len(values), 1), title, *marks, class_="spark")


def stacked_bar(parts: Sequence[Part], title: str, class_: str = "stack") -> Markup:
    """Return the parts of a whole side by side. Empty parts are omitted; small ones stay visible."""
    total = sum(part.value for part in parts) or 1
    shown = [part for part in parts if part.value]
    least = 0.6  # of 100
    scale = (100 - least * len(shown)) / 100
    marks, x = [], 0.0
    for part in shown:
        width = least + part.value / total * 100 * scale
        tip = f"{part.label}: {part.tip} ({percent_text(part.value / total)})"
        marks.append(rect(x, 0, width, HEIGHT, tip, class_=f"part {part.kind}"))
        x += width
    return svg(100, title, *marks, class_=class_)


def strip(cells: Sequence[tuple[int, int, int]], title: str, describe: Callable[[int, int, int], str]) -> Markup:
    """Return a strip of density: the fuller a cell, the stronger its color.

    cells: [(start, end, filled)]; equal neighbors are merged. describe(start, end, filled): the tooltip.
    """
    runs: list[list[int]] = []  # from, to, filled, shade, cells
    for start, end, filled in cells:
        shade = _shade(filled, end - start)
        if runs and runs[-1][3] == shade:
            runs[-1][1], runs[-1][2], runs[-1][4] = end, runs[-1][2] + filled, runs[-1][4] + 1
        else:
            runs.append([start, end, filled, shade, 1])
    marks, x = [], 0
    for start, end, filled, shade, n in runs:
        marks.append(rect(x, 0, n, HEIGHT, describe(start, end, filled), class_=f"mark d{shade}"))
        x += n
    return svg(max(len(cells), 1), title, *marks, class_="strip")


def _shade(filled: int, of: int) -> int:
    """Return 0 (exactly empty) to 5 (exactly full)."""
    if not filled:
        return 0
    return 5 if filled >= of else min(1 + filled * 4 // of, 4)


def ranked_bars(rows: Sequence[tuple[Child, int, str]], title: str) -> Markup:
    """Return horizontal bars. rows: [(label, value, value as text)], longest first."""
    top = max((value for _, value, _ in rows), default=0) or 1
    lines = [
        join(
            element("div", label, class_="rank-label"),
            svg(100, text, rect(0, 0, max(value / top * 100, 0.6), HEIGHT, text), class_="rank-bar"),
            element("div", text, class_="rank-value"),
        )
        for label, value, text in rows
    ]
    return element("div", *lines, class_="rank", role="group", aria_label=title)


def _utc(ms: int) -> datetime.datetime | None:
    try:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=ms)
    except OverflowError:
        return None


def _day(ms: int) -> str:
    moment = _utc(ms)
    return moment.strftime("%Y-%m-%d") if moment else ""


def _axis_time(ms: int, width_ms: int, *, with_day: bool) -> str:
    moment = _utc(ms)
    if moment is None:
        return f"{ms} ms"
    if width_ms >= 86_400_000:
        return moment.strftime("%Y-%m-%d")
    clock = "%H:%M" if width_ms >= 60_000 else "%H:%M:%S"
    fraction = f".{moment.microsecond // 1000:03d}" if width_ms < 1000 else ""
    return moment.strftime(("%m-%d " if with_day else "") + clock) + fraction


def _moment(ms: int, width_ms: int) -> str:
    day = _day(ms)
    return (
        f"{day} {_axis_time(ms, width_ms, with_day=False)}"
        if width_ms < 86_400_000 and day
        else _axis_time(ms, width_ms, with_day=False)
    )
