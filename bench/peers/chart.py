"""Draws the comparison as an SVG: for each shape of the cluster a group of bars, one for each system."""

import html
import math
from collections.abc import Callable

import report

WIDTH, LABELS, RIGHT = 880, 250, 130  # pixels: all, the names at the left, the figures at the right
ROW, BAR, GROUP, TOP, BOTTOM = 24, 14, 40, 62, 44
PLOT = WIDTH - LABELS - RIGHT
# The picture brings its own background, so that text can be read wherever it is shown.
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; } .group { font-weight: 600; } .small, .tick { font-size: 11px; }
  .tick, .small { fill: #59636e; } .tick { text-anchor: middle; } .name { text-anchor: end; }
  .page { fill: #ffffff; stroke: #d1d9e0; } .grid { stroke: #d1d9e0; }
  .limit { stroke: #1a7f37; stroke-dasharray: 4 3; }
  .ours { fill: #0969da; } .peer { fill: #bc8c5f; } .whisker { stroke: #1f2328; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .tick, .small { fill: #9198a1; } .page { fill: #0d1117; stroke: #3d444d; }
    .grid { stroke: #3d444d; } .limit { stroke: #3fb950; } .ours { fill: #4493f8; } .peer { fill: #a1764c; }
    .whisker { stroke: #e6edf3; }
  }
"""


def ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, ... from the last that is at most `low` to the first that is at least `high`."""
    steps = [digit * 10.0 ** power for power in range(-4, 8) for digit in (1, 2, 5)]
    first = max(step for step in steps if step <= low)
    last = min(step for step in steps if step >= high)
    return [step for step in steps if first <= step <= last]


def draw(results: report.Results) -> str:
    systems, shapes = results["systems"], report.shapes(results)
    found = {(system["key"], shape): report.times(results, system["key"], shape)
             for system in systems for shape in shapes}
    limits = {shape: report.add_ms(results, shape) for shape in shapes}
    seen = [end for value in found.values() if value for end in (value.low, value.high)]
    seen += [limit for limit in limits.values() if limit]
    # The lowest bar gets some length: the axis begins well under it.
    marks = ticks(min(seen, default=1) / 1.5, max(seen, default=10))
    begin, scale = math.log(marks[0]), PLOT / (math.log(marks[-1]) - math.log(marks[0]))

    def x(ms: float) -> str:
        return f"{LABELS + (math.log(ms) - begin) * scale:.1f}"

    height = TOP + sum(GROUP + ROW * len(systems) for _ in shapes) + BOTTOM
    size_mb, rounds = results["conditions"]["size_mb"], results["conditions"]["rounds"]
    title = f"Push, add and pull of {size_mb:g} MB: ms per iteration, less is better"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           f'role="img" aria-label="{title}">', f"<style>{STYLE}</style>",
           f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
           f'<text class="title" x="20" y="30">{title}</text>',
           f'<text class="small" x="20" y="50">Bars: median of {rounds} rounds; whiskers: lowest and highest round. '
           f'Each step of the axis is a factor: a logarithmic scale.'
           f'{" Dashed: the additions alone, in place." if any(limits.values()) else ""}</text>']
    bottom = height - BOTTOM
    for mark in marks:
        out.append(f'<line class="grid" x1="{x(mark)}" x2="{x(mark)}" y1="{TOP + 6}" y2="{bottom + 4}"/>')
        out.append(f'<text class="tick" x="{x(mark)}" y="{bottom + 20}">{mark:g} ms</text>')
    y = TOP
    for shape in shapes:
        out.append(f'<text class="group" x="20" y="{y + 28}">{report.shape_name(shape)}</text>')
        y += GROUP
        if limits[shape]:
            at = x(limits[shape])
            out.append(f'<line class="limit" x1="{at}" x2="{at}" y1="{y - 4}" y2="{y + ROW * len(systems)}"/>')
        for system in systems:
            out += bar(system, found[system["key"], shape], y, x)
            y += ROW
    return "\n".join([*out, "</svg>", ""])


def bar(system: dict[str, object], value: report.Spread | None, y: int,
        x: Callable[[float], str]) -> list[str]:
    middle, name = y + ROW / 2, html.escape(str(system["label"]))
    out = [f'<text class="name" x="{LABELS - 10}" y="{middle + 4:g}">{name}</text>']
    if value is None:
        return [*out, f'<text class="small" x="{LABELS + 6}" y="{middle + 4:g}">failed</text>']
    kind = "ours" if system["ours"] else "peer"
    length = float(x(value.median)) - LABELS
    out.append(f'<rect class="{kind}" x="{LABELS}" y="{middle - BAR / 2:g}" width="{length:.1f}" height="{BAR}" '
               f'rx="2"/>')
    out.append(f'<path class="whisker" fill="none" d="M{x(value.low)} {middle:g}H{x(value.high)}'
               + "".join(f'M{x(end)} {middle - 4:g}v8' for end in (value.low, value.high)) + '"/>')
    end = float(x(value.high)) + 8
    return [*out, f'<text x="{end:.1f}" y="{middle + 4:g}">{report.number(value.median)} ms</text>']
