"""The chart of docs/compression.md: ratio by compression speed, with a panel for each kind of data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.records.compression import Figure

PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP, GAP = 300, 260, 46, 54, 40
MIDDLE = 'text-anchor="middle"'
COLORS = {"snappy": "#8a6d00", "lz4": "#1769aa", "gzip": "#b0413e", "zstd": "#2e7d32"}
SPEEDS = (10, 30, 100, 300, 1000)  # MB/s, of the grid lines
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600 } .axis { fill: #57606a }
.grid { stroke: #d0d7de; stroke-width: 1 } .line { fill: none; stroke-width: 1.5; opacity: .55 }
.back { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { fill: #9198a1 } .grid { stroke: #3d444d } .back { fill: #0d1117 }
  .snappy { --c: #d9b43a } .lz4 { --c: #5ab0f0 } .gzip { --c: #f0837f } .zstd { --c: #6cc070 }
}
"""


def chart(figures: list[Figure]) -> str:
    """Return the SVG document."""
    kinds = list(dict.fromkeys(figure.kind for figure in figures))
    width = LEFT + len(kinds) * (PANEL_WIDTH + GAP)
    height = TOP + PANEL_HEIGHT + 50
    body = [
        panel(kind, [f for f in figures if f.kind == kind], LEFT + i * (PANEL_WIDTH + GAP))
        for i, kind in enumerate(kinds)
    ]
    legend = "".join(
        f'<circle class="{codec}" cx="{LEFT + 8 + i * 80}" cy="14" r="5" style="fill: var(--c, {color})"/>'
        f'<text x="{LEFT + 18 + i * 80}" y="18">{codec}</text>'
        for i, (codec, color) in enumerate(COLORS.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Compression ratio over speed by codec and level"><style>{STYLE}</style>'
        f'<rect class="back" width="{width}" height="{height}"/>{legend}{"".join(body)}</svg>\n'
    )


def panel(kind: str, figures: list[Figure], left: float) -> str:
    """Return the panel of a kind of data: x is the speed (logarithmic), y the ratio."""
    top_ratio = math.ceil(max(figure.ratio for figure in figures) + 0.3)
    low, high = math.log(min(SPEEDS) * 0.6), math.log(max(SPEEDS) * 1.6)

    def x(speed: float) -> float:
        share = (math.log(speed) - low) / (high - low)
        return left + min(max(share, 0), 1) * PANEL_WIDTH

    def y(ratio: float) -> float:
        return TOP + PANEL_HEIGHT * (1 - (ratio - 1) / (top_ratio - 1))

    parts = [f'<text class="title" x="{left}" y="{TOP - 12}">{kind}: bytes before by bytes after</text>']
    for speed in SPEEDS:
        parts.append(
            f'<line class="grid" x1="{x(speed):.1f}" x2="{x(speed):.1f}" y1="{TOP}" y2="{TOP + PANEL_HEIGHT}"/>'
        )
        parts.append(f'<text class="axis" x="{x(speed):.1f}" y="{TOP + PANEL_HEIGHT + 16}" {MIDDLE}>{speed}</text>')
    step = 1 if top_ratio <= 6 else 2
    for ratio in range(1, top_ratio + 1, step):
        parts.append(
            f'<line class="grid" x1="{left}" x2="{left + PANEL_WIDTH}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}"/>'
        )
        parts.append(f'<text class="axis" x="{left - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio}</text>')
    parts.append(
        f'<text class="axis" x="{left + PANEL_WIDTH / 2}" y="{TOP + PANEL_HEIGHT + 36}" {MIDDLE}>'
        "MB/s of CPU, compressing</text>"
    )
    for codec, color in COLORS.items():
        points = sorted((f for f in figures if f.codec.text == codec), key=lambda f: f.compress)
        path = " ".join(f"{x(f.compress):.1f},{y(f.ratio):.1f}" for f in points)
        parts.append(f'<polyline class="line {codec}" points="{path}" style="stroke: var(--c, {color})"/>')
        for f in points:
            place = f'cx="{x(f.compress):.1f}" cy="{y(f.ratio):.1f}" r="4" style="fill: var(--c, {color})"'
            parts.append(f'<circle class="{codec}" {place}><title>{tip(f)}</title></circle>')
            if codec != "snappy":  # without levels; at the position of lz4's default
                label = "default" if f.level is None else str(f.level)
                below = 16 if codec == "lz4" else -7
                parts.append(f'<text x="{x(f.compress):.1f}" y="{y(f.ratio) + below:.1f}" {MIDDLE}>{label}</text>')
    return "".join(parts)


def tip(figure: Figure) -> str:
    """Return the tooltip of a point."""
    return f"{figure.label}: ratio {figure.ratio:.2f}, {figure.compress:.0f} MB/s"
