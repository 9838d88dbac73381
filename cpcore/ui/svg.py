"""Small SVG and HTML strings: the visual language of the book, without any drawing library.

Owns colors, cells, arrows, marks and the table under a picture. Leaves out what any picture
means. Styling is by presentation attributes, so a stored notebook looks the same where no style
sheet of ours is loaded; the only ink is ``currentColor``, so it follows light and dark pages.
Element ids are never needed, so two pictures on one page cannot clash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape

RANK_COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#999999",
)
WIDTH = 330  # one panel: fits a 360 px phone at almost full size, two fit side by side on a desk
FONT = 13.2  # 12 px where a 360 px phone leaves 302 for a panel; no label is smaller
DOTS = 'stroke-dasharray="2 3"'


def rank_color(rank: int) -> str:
    """The color a rank keeps in the whole book."""
    return RANK_COLORS[rank % len(RANK_COLORS)]


def luminance(color: str) -> float:
    """Relative luminance of a ``#rrggbb`` or ``#rgb`` color (WCAG 2, sRGB)."""
    digits = color.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * d for d in digits)
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colors, from 1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@lru_cache(4096)
def text_color(fill: str) -> str:
    """Whichever of near-black and white reads better on ``fill``."""
    return max(("#111", "#fff"), key=lambda ink: contrast(ink, fill))


@lru_cache(4096)
def num(value: float, digits: int = 3) -> str:
    """A number as the book prints it: at most three decimals, a real minus sign.

    The value is first snapped to six significant digits. Without that, a tie such as 0.0625 could
    be printed as 0.062 on one machine and 0.063 on another.
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "\N{MINUS SIGN}inf"
    snapped = float(f"{value:.6g}")
    if abs(snapped) >= 1e5:
        shown = f"{snapped:.2e}"
    else:
        shown = f"{snapped:.{digits}f}"
        shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return "0" if shown == "-0" else shown.replace("-", "\N{MINUS SIGN}")


@lru_cache(4096)
def at(value: float) -> str:
    """A coordinate: one decimal is finer than a pixel, and keeps the strings short and equal."""
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def svg(height: float, alt: str, *parts: str) -> str:
    """One panel. ``alt`` says in words what the picture shows; an empty one is refused.

    Each part is a line of its own: lines that many states share are stored once for the page.
    """
    if not alt.strip():
        raise ValueError(f"alt: expected a sentence about the picture, received {alt!r}")
    return (
        f'<svg role="img" aria-label="{escape(alt)}" viewBox="0 0 {WIDTH} {at(height)}" '
        f'width="{WIDTH}" font-size="{FONT}" font-family="sans-serif" fill="currentColor">'
        + "\n".join(("", *parts, "</svg>"))
    )


def group(attributes: str, *parts: str) -> str:
    """Parts that share presentation attributes; nothing at all when there are no parts."""
    body = "".join(parts)
    return f"<g {attributes}>{body}</g>" if body else ""


def label(x: float, y: float, content: str, *, anchor: str = "", more: str = "") -> str:
    """One line of text at its baseline; ``anchor`` is "", "middle" or "end"."""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    extra = f" {more}" if more else ""
    return f'<text x="{at(x)}" y="{at(y)}"{placed}{extra}>{escape(content, quote=False)}</text>'


def box(x: float, y: float, width: float, height: float, more: str = "") -> str:
    """A rectangle."""
    extra = f" {more}" if more else ""
    return f'<rect x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}"{extra}/>'


def boxes(places: Iterable[tuple[float, float, float, float]], more: str) -> str:
    """Many rectangles (x, y, width, height) as one path: a third of the bytes of as many rects."""
    path = "".join(
        f"M{at(x)} {at(y)}h{at(w)}v{at(h)}h{at(-w)}z" for x, y, w, h in places if w > 0 and h > 0
    )
    return f'<path d="{path}" {more}/>' if path else ""


def filled(rank: int) -> str:
    """Attributes of an area in a rank's color; the ink outline keeps pale colors visible."""
    return f'fill="{rank_color(rank)}" stroke="currentColor" stroke-width=".8"'


def disc(x: float, y: float, rank: int) -> str:
    """A numbered marker: the rank by color and by number."""
    fill = rank_color(rank)
    return f'<circle cx="{at(x)}" cy="{at(y)}" r="9" {filled(rank)}/>' + label(
        x, y + 4.5, str(rank), anchor="middle", more=f'fill="{text_color(fill)}"'
    )


def arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    """A straight arrow with an open head."""
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    ux, uy = 6 * (x1 - x0) / length, 6 * (y1 - y0) / length
    head = (
        f"M{at(x1 - ux - uy * 0.6)} {at(y1 - uy + ux * 0.6)}L{at(x1)} {at(y1)}"
        f"L{at(x1 - ux + uy * 0.6)} {at(y1 - uy - ux * 0.6)}"
    )
    return (
        f'<path d="M{at(x0)} {at(y0)}L{at(x1)} {at(y1)}{head}" fill="none" '
        'stroke="currentColor" stroke-width="1.3"/>'
    )


def tile(x: float, y: float, side: float, kind: str, rank: int = 0) -> str:
    """A score block: full, partial (filled below its diagonal), skipped (hatched) or empty."""
    bottom, right = y + side, x + side
    if kind == "full":
        return box(x, y, side, side, filled(rank))
    if kind == "empty":
        return box(x, y, side, side, f'fill="none" stroke="currentColor" {DOTS}')
    frame = box(x, y, side, side, 'fill="none" stroke="currentColor" stroke-width=".8"')
    if kind == "partial":
        corner = f"M{at(x)} {at(y)}L{at(right)} {at(bottom)}H{at(x)}z"
        return frame + f'<path d="{corner}" {filled(rank)}/>'
    if kind == "skipped":
        lines = "".join(
            f"M{at(x + side * f)} {at(bottom)}L{at(right)} {at(y + side * f)}"
            f"M{at(x)} {at(bottom - side * f)}L{at(right - side * f)} {at(y)}"
            for f in (0, 1 / 3, 2 / 3)
        )
        return frame + f'<path d="{lines}" stroke="currentColor" stroke-width=".5"/>'
    raise ValueError(f"kind: expected full, partial, skipped or empty, received {kind!r}")


def verdict(right: bool) -> str:
    """Tick or cross, always with its word."""
    return "\N{CHECK MARK} right" if right else "\N{BALLOT X} wrong"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column and first row are headers."""
    head = "".join(f'<th scope="col">{escape(c, quote=False)}</th>' for c in columns)
    body = "\n".join(
        f'<tr><th scope="row">{escape(first, quote=False)}</th>'
        + "".join(f"<td>{escape(cell, quote=False)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f"<table><tr>{head}</tr>\n{body}\n</table>"


def details(*tables: str) -> str:
    """The collapsed table of the facts a picture shows.

    A wide table scrolls in its own box, which therefore takes the focus: keys can scroll it too.
    """
    return (
        "<details><summary>Table of the same facts</summary>"
        '<div class="cp-table" role="group" aria-label="Tables" tabindex="0">\n'
        f"{''.join(tables)}</div></details>"
    )
