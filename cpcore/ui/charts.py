"""Two still charts: lines with points on log axes, and horizontal bars from zero.

Owns axes, marks, the legend and the table of the same numbers. Leaves out where numbers come from.
Series differ by mark and by name, never by color: color is kept for ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from cpcore.ui.figure import Figure
from cpcore.ui.svg import FONT, at, box, details, filled, group, label, table

WIDTH, SHOWN_WIDTH = 360, 480  # drawn for a phone; a wide page scales it up, letters included
LEFT, RIGHT, TOP, PLOT = 46.0, 346.0, 34.0, 210.0
ROW = 20.0  # one line of the legend
MAX_DECADES = 6  # labels on the vertical axis, at most
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MARKS = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-4-4h8v8h-8z",
    "triangle": "M0-5l5 9h-10z",
    "diamond": "M0-6l5 6l-5 6l-5-6z",
}


@dataclass(frozen=True)
class Series:
    """One line: its points are drawn with ``mark``, solid or hollow (then the line is dashed).

    Raises: ValueError for lengths that differ, no point, numbers that a log axis cannot place, or
        an unknown mark.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    mark: str = "circle"
    hollow: bool = False

    def __post_init__(self) -> None:
        if self.mark not in MARKS:
            raise ValueError(f"mark: expected one of {', '.join(MARKS)}, received {self.mark!r}")
        if len(self.x) != len(self.y) or not self.x:
            received = f"{len(self.x)} and {len(self.y)}"
            raise ValueError(f"x, y: expected equally many points, received {received}")
        for value in (*self.x, *self.y):
            if not (0 < value < math.inf):
                raise ValueError(f"x, y: expected positive finite numbers, received {value}")


@dataclass(frozen=True)
class Bar:
    """One bar; with a rank it has that rank's color.

    Raises: ValueError for a length that is negative or not finite.
    """

    name: str
    value: float
    rank: int | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.value < math.inf):
            raise ValueError(f"value: expected a finite number from 0, received {self.value}")


def line_chart(series: Sequence[Series], *, x_label: str, y_label: str, alt: str) -> Figure:
    """Lines over two log axes: every x given is a tick, and y has whole powers of ten.

    Raises: ValueError without any series, or without alt text.
    """
    if not series:
        raise ValueError("series: expected at least one, received none")
    xs = sorted({float(x) for line in series for x in line.x})
    decades = _decades([y for line in series for y in line.y])
    across = _log_axis(xs[0], xs[-1], LEFT + 12, RIGHT - 12)
    down = _log_axis(10.0 ** decades[0], 10.0 ** decades[-1], TOP + PLOT, TOP)
    floor = TOP + PLOT
    lines = [_line(one, across, down) for one in series]
    legend = [
        _mark(one, LEFT + 6, floor + 62 + ROW * i)
        + label(LEFT + 20, floor + 66 + ROW * i, one.name)
        for i, one in enumerate(series)
    ]
    names = [label(across(x), floor + 18, f"{x:g}") for x in xs]
    ticks = group('text-anchor="middle" font-size="12"', *names)
    picture = _picture(
        floor + 62 + ROW * len(series) - 6, alt,
        label(0, 14, y_label), _grid(decades, down), ticks,
        label((LEFT + RIGHT) / 2, floor + 38, x_label, anchor="middle"), *lines, *legend,
    )  # fmt: skip
    return _figure(picture, table([x_label, *(one.name for one in series)], _rows(series, xs)))


def bar_chart(bars: Sequence[Bar], *, unit: str, alt: str) -> Figure:
    """Horizontal bars on one linear scale from zero, each with its name above and value behind.

    Raises: ValueError without any bar, or without alt text.
    """
    if not bars:
        raise ValueError("bars: expected at least one, received none")
    longest = max(bar.value for bar in bars) or 1.0
    parts = [label(0, 14, unit)]
    for i, bar in enumerate(bars):
        top = 28.0 + 42 * i
        length = 270 * bar.value / longest
        fill = 'fill="currentColor" fill-opacity=".45"' if bar.rank is None else filled(bar.rank)
        parts += [
            label(0, top + 10, bar.name),
            box(0, top + 15, length, 14, fill),
            label(length + 6, top + 27, _plain(bar.value)),
        ]
    rows = [[bar.name, _plain(bar.value)] for bar in bars]
    return _figure(_picture(30.0 + 42 * len(bars), alt, *parts), table(["", unit], rows))


def _log_axis(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    """The function from a value to its coordinate; one single value sits in the middle."""
    span = math.log(high / low)

    def place(value: float) -> float:
        share = math.log(value / low) / span if span else 0.5
        return start + (stop - start) * share

    return place


def _decades(values: Sequence[float]) -> list[int]:
    """Exponents of the horizontal lines: they enclose all values, evenly spaced."""
    # Rounded, so that noise in the last bits of a power of ten adds no decade on some machine.
    low = math.floor(round(math.log10(min(values)), 9))
    high = max(math.ceil(round(math.log10(max(values)), 9)), low + 1)
    step = math.ceil((high - low) / MAX_DECADES)
    count = math.ceil((high - low) / step)
    return [low + step * i for i in range(count + 1)]


def _grid(decades: Sequence[int], down: Callable[[float], float]) -> str:
    """Faint lines at whole powers of ten, named at the left."""
    places = [(down(10.0**n), f"10{str(n).translate(SUPERSCRIPT)}") for n in decades]
    path = "".join(f"M{at(LEFT)} {at(y)}H{at(RIGHT)}" for y, _ in places)
    return f'<path d="{path}" stroke="currentColor" stroke-opacity=".25" fill="none"/>' + group(
        'text-anchor="end" font-size="12"', *(label(LEFT - 6, y + 4, n) for y, n in places)
    )


def _line(one: Series, across: Callable[[float], float], down: Callable[[float], float]) -> str:
    """The points of a series, joined from left to right."""
    points = [(across(x), down(y)) for x, y in sorted(zip(one.x, one.y, strict=True))]
    path = "L".join(f"{at(x)} {at(y)}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if one.hollow else ""
    joined = f'<path d="M{path}" fill="none" stroke="currentColor"{dash}/>'
    return joined + "".join(itertools.starmap(lambda x, y: _mark(one, x, y), points))


def _mark(one: Series, x: float, y: float) -> str:
    fill = 'fill="none" stroke-width="1.5"' if one.hollow else 'fill="currentColor"'
    where = f'transform="translate({at(x)} {at(y)})"'
    return f'<path d="{MARKS[one.mark]}" {where} {fill} stroke="currentColor"/>'


def _rows(series: Sequence[Series], xs: Sequence[float]) -> list[list[str]]:
    """A row per x; a series without a point there has an empty cell."""
    known = [dict(zip(map(float, one.x), one.y, strict=True)) for one in series]
    return [[f"{x:g}", *(_small(points[x]) if x in points else "" for points in known)] for x in xs]


def _small(value: float) -> str:
    """Two digits, with an exponent only where the number needs one."""
    if 0.01 <= value < 10000:
        return f"{value:.2g}" if value < 99 else f"{value:.0f}"
    return f"{value:.1e}".replace("-", "\N{MINUS SIGN}")


def _plain(value: float) -> str:
    """Whole numbers in full, others with at most six digits; thousands apart."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{float(f'{value:.6g}'):,.3f}".rstrip("0").rstrip(".")


def _picture(height: float, alt: str, *parts: str) -> str:
    """The svg element; a chart is wider than the panel of an explorable."""
    if not alt.strip():
        raise ValueError(f"alt: expected a sentence about the picture, received {alt!r}")
    head = (
        f'<svg role="img" aria-label="{escape(alt)}" viewBox="0 0 {WIDTH} {at(height)}" '
        f'width="{SHOWN_WIDTH}" font-size="{FONT}" font-family="sans-serif" fill="currentColor">'
    )
    return "\n".join((head, *parts, "</svg>"))


def _figure(picture: str, facts: str) -> Figure:
    return Figure(f'<div class="cp-figure">\n{picture}\n{details(facts)}\n</div>')
