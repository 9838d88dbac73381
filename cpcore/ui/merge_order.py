"""Merge-order explorer: one merge, four orders, three precisions, and the error that each leaves.

The numbers come from the core by way of `order_facts`; this module draws them and puts the words
and the table to the picture.
"""

from __future__ import annotations

import math

from cpcore.ui.controls import Choice
from cpcore.ui.explorable import Explorable
from cpcore.ui.order_facts import COUNTS, EPS, ORDERS, PRECISIONS, Facts, arrival, facts
from cpcore.ui.svg import (
    at,
    boxes,
    details,
    label,
    rank_color,
    svg,
    table,
    text_color,
)

SHOWN = 8  # chunks in the drawing of the order
ORDER_TEXTS = ("chain, chunk 0 first", "chain, last chunk first", "tree", "chain, random order")
CONTROLS = (
    Choice("order", "Order", tuple(zip(ORDERS, ORDER_TEXTS, strict=True))),
    Choice(
        "precision",
        "Precision of the state",
        (
            ("float64", "float64"),
            ("float32", "float32"),
            ("float16", "16 bits, rounded each merge"),
        ),
    ),
    Choice("chunks", "Chunks", tuple((str(n), str(n)) for n in COUNTS)),
)
LOW, HIGH = -17, 0  # decades of the axis


def draw(order: str, precision: str, chunks: str) -> tuple[str, ...]:
    """Caption, order, errors and table of one state."""
    known = facts(precision, int(chunks))
    return (
        f"<p>{_caption(known, order)}</p>",
        _order_panel(order),
        _error_panel(known, order),
        _table(known),
    )


def _caption(known: Facts, order: str) -> str:
    best, worst = (pick(known.errors, key=known.errors.__getitem__) for pick in (min, max))
    return (
        f"{known.chunks} chunks, {known.precision}, {order}: largest error "
        f"{short(known.errors[order])}. Exact arithmetic would give one result for all four; here "
        f"{worst} is worst with {short(known.errors[worst])}, {best} best with "
        f"{short(known.errors[best])}."
    )


def short(error: float) -> str:
    """One digit and an exponent: the size of a rounding error, no more."""
    return "0" if error == 0 else f"{error:.0e}".replace("-", "\N{MINUS SIGN}")


def _order_panel(order: str) -> str:
    """Eight chunks in order of arrival, and who is merged with whom."""
    xs = [20.0 + 40 * i for i in range(SHOWN)]
    places = [(x, 60.0) for x in xs]
    lines = ""
    while len(places) > 1:
        step = 2 if order == "tree" else len(places)  # a chain merges only its first two
        merged = []
        for i in range(0, len(places), step):
            (x0, y0), (x1, y1) = places[i], places[i + 1]
            x, y = ((x0 + x1) / 2, y0 + 44) if order == "tree" else (x1, max(y0, y1) + 22)
            lines += f"M{at(x0)} {at(y0)}V{at(y)}H{at(x1)}V{at(y1)}"
            merged.append((x, y))
        places = merged if order == "tree" else merged + places[2:]
    (x, y), chunks = places[0], arrival(order, SHOWN)
    leaves = [
        boxes([(x0 - 11, 38, 22, 22)], f'fill="{rank_color(c)}" stroke="currentColor"')
        + label(x0, 53.5, str(c), anchor="middle", more=f'fill="{text_color(rank_color(c))}"')
        for x0, c in zip(xs, chunks, strict=True)
    ]
    parts = [
        label(0, 14, f"Who is merged with whom, drawn for {SHOWN} chunks"),
        f'<path d="{lines}M{at(x)} {at(y)}V{at(y + 16)}" fill="none" stroke="currentColor"/>',
        *leaves,
        label(x, y + 32, "divide once", anchor="end" if x > 250 else "middle"),
    ]
    return svg(264, f"Order {order}: chunks {', '.join(map(str, chunks))}.", *parts)


def _error_panel(known: Facts, order: str) -> str:
    """The error of each order on one log axis; the chosen one is outlined."""
    parts = [label(0, 14, f"Largest error, {known.chunks} chunks, {known.precision}")]
    for i, name in enumerate(ORDERS):
        y, error = 28.0 + 50 * i, known.errors[name]
        length = 328 * _share(error)
        edge = 3 if name == order else 0.8
        style = f'fill="currentColor" fill-opacity=".4" stroke="currentColor" stroke-width="{edge}"'
        parts += [
            label(1, y + 13, f"{name}: {short(error)}"),
            boxes([(1, y + 20, length, 14)], style),
        ]
    x = at(1 + 328 * _share(EPS[known.precision]))
    marks = "".join(f"M{x} {44 + 50 * i}v22" for i in range(len(ORDERS)))  # at bars, not at words
    ticks = [
        label(1 + 328 * (n - LOW) / (HIGH - LOW), 254, text, anchor="middle")
        for n, text in ((-15, "1e\N{MINUS SIGN}15"), (-10, "1e\N{MINUS SIGN}10"),
                        (-5, "1e\N{MINUS SIGN}5"))
    ]  # fmt: skip
    parts += [
        '<path d="M1 236H329" stroke="currentColor"/>',
        f'<path d="{marks}" stroke="currentColor" stroke-width="2" stroke-dasharray="3 3"/>',
        *ticks,
        label(1, 276, f"dotted: eps of this precision, {short(EPS[known.precision])}"),
    ]
    shown = ", ".join(f"{name} {short(error)}" for name, error in known.errors.items())
    return svg(284, f"Bars of the largest error: {shown}.", *(part for part in parts if part))


def _share(error: float) -> float:
    """Where an error lies on the axis, 0 to 1."""
    if error == 0:
        return 0.0
    return min(1.0, max(0.0, (math.log10(error) - LOW) / (HIGH - LOW)))


def _table(known: Facts) -> str:
    """Every order in every precision, for this number of chunks."""
    every = [facts(precision, known.chunks) for precision in PRECISIONS]
    rows = [[name, *(short(one.errors[name]) for one in every)] for name in ORDERS]
    rows.append(["eps", *(short(EPS[precision]) for precision in PRECISIONS)])
    return details(table([f"{known.chunks} chunks", *PRECISIONS], rows))


merge_order = Explorable(
    name="merge-order",
    title="Merge-order explorer",
    summary=(
        "Summaries of one key each are merged in four orders. The merge is associative and "
        "commutative in exact arithmetic; rounding is neither. The error is the largest over "
        "16 queries, against 40-digit arithmetic."
    ),
    controls=CONTROLS,
    drawing=draw,
)
