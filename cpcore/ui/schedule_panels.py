"""The two panels of the schedule explorer: the ring with its bars, the positions with the grid."""

from __future__ import annotations

import math

from cpcore.schedule import Event
from cpcore.ui.schedule_facts import SEQ_LEN, Facts
from cpcore.ui.svg import (
    DOTS,
    at,
    box,
    boxes,
    disc,
    filled,
    group,
    label,
    rank_color,
    svg,
    text_color,
    tile,
)

CENTER, RADIUS, OUTSIDE = (165.0, 122.0), 72.0, 104.0
BARS, ROW = 282, 22  # where the bars begin, and one line of them
LEFT, TOP, MOST = 30, 92, 208  # the grid of score blocks
FADED = 'opacity=".4"'


def ring_panel(known: Facts) -> str:
    """Ranks on a circle, what each one holds, and the pairs of this step below."""
    what = "finished" if known.finished else f"step {known.now.step}"
    phase = known.direction if known.finished else known.now.phase
    parts = [
        f'<circle cx="165" cy="122" r="{at(RADIUS)}" fill="none" stroke="currentColor" '
        f'stroke-opacity=".3"/>',
        _arrows(known),
        *(disc(*_place(known, rank, RADIUS), rank) for rank in known.ranks),
        _held(known),
        label(165, 118, phase, anchor="middle") + label(165, 136, what, anchor="middle"),
        *_bars(known),
    ]
    alt = (
        f"Ring of {len(known.ranks)} ranks, {phase} {what}. Pairs per rank: "
        f"{', '.join(map(str, _pairs(known)))}."
    )
    return svg(BARS + ROW * len(known.ranks), alt, *(part for part in parts if part))


def grid_panel(known: Facts) -> str:
    """Who owns which position, and every score block: done, this step or to come."""
    count = len(known.ranks)
    side = min(52, MOST // count)
    parts = [
        label(0, 12, f"Owner of each position, 0 to {SEQ_LEN - 1}"),
        _strip(known),
        label(0, 62, "Score blocks: queries down, keys right, by rank"),
        *(disc(LEFT + side * (r + 0.5), TOP - 12, r) for r in known.ranks),
        *(disc(12, TOP + side * (r + 0.5), r) for r in known.ranks),
        *(_diagonal(known, step, side) for step in range(count)),
        _legend(),
    ]
    alt = f"Score blocks of {count} ranks: {known.computed} of {count} steps of compute are done."
    return svg(TOP + max(side * count, 140) + 4, alt, *parts)


def _pairs(known: Facts) -> tuple[int, ...]:
    """Pairs of this step; none once finished."""
    return (0,) * len(known.ranks) if known.finished else known.now.pairs


def _place(known: Facts, rank: float, radius: float) -> tuple[float, float]:
    """Where a rank sits: rank 0 on top, clockwise."""
    angle = 2 * math.pi * rank / len(known.ranks)
    return CENTER[0] + radius * math.sin(angle), CENTER[1] - radius * math.cos(angle)


def _arrows(known: Facts) -> str:
    """An arc from every rank that sends in this step to its neighbor."""
    senders = [e.rank for e in known.now.events if e.send_to is not None and not known.finished]
    gap = 0.22 * len(known.ranks) / (2 * math.pi)  # radians beside a disc, in ranks
    path = ""
    for rank in senders:
        x0, y0 = _place(known, rank + gap, RADIUS)
        x1, y1 = _place(known, rank + 1 - gap, RADIUS)
        inner, outer = (_place(known, rank + 1 - 1.5 * gap, RADIUS + d) for d in (-5, 5))
        path += f"M{at(x0)} {at(y0)}A{at(RADIUS)} {at(RADIUS)} 0 0 1 {at(x1)} {at(y1)}"
        path += f"M{at(inner[0])} {at(inner[1])}L{at(x1)} {at(y1)}L{at(outer[0])} {at(outer[1])}"
    return path and f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="2"/>'


def _held(known: Facts) -> str:
    """The block, or the gradient, of this step outside its rank; at the end, gradients home."""
    if known.finished:
        home = known.direction == "backward"
        return "".join(_gradient(*_place(known, r, OUTSIDE), r) for r in known.ranks if home)
    draw = _gradient if known.now.phase == "return" else _block
    return "".join(draw(*_place(known, e.rank, OUTSIDE), e.owner) for e in known.now.events)


def _block(x: float, y: float, owner: int) -> str:
    """Keys and values: a square in the owner's color, with the owner's number."""
    ink = f'fill="{text_color(rank_color(owner))}"'
    return box(x - 10, y - 10, 20, 20, filled(owner)) + label(
        x, y + 4.5, str(owner), anchor="middle", more=ink
    )


def _gradient(x: float, y: float, owner: int) -> str:
    """The gradient of a block: a ring in the owner's color between two lines of ink."""
    spot = f'cx="{at(x)}" cy="{at(y)}"'
    ring = f'<circle {spot} r="10" stroke="{rank_color(owner)}" stroke-width="5"/>'
    ink = "".join(f'<circle {spot} r="{r}" stroke="currentColor"/>' for r in (7.5, 12.5))
    return group('fill="none" stroke-width=".8"', ring, ink) + label(
        x, y + 4.5, str(owner), anchor="middle"
    )


def _bars(known: Facts) -> list[str]:
    """One line per rank: pairs as a bar, waiting as a dotted one, and both as numbers."""
    heads = (
        (28, "pairs, then waiting", ""),
        (236, "pairs", "end"),
        (280, "waits", "end"),
        (328, "so far", "end"),
    )
    names = [label(x, BARS - 12, name, anchor=anchor) for x, name, anchor in heads]
    lines, pairs = [*names], _pairs(known)
    for rank, mine in enumerate(pairs):
        y, unit = BARS + ROW * rank, 164 / known.peak
        wait = max(pairs) - mine
        waiting = [(28 + mine * unit, y, wait * unit, 14)]
        numbers = ((236, mine), (280, wait), (328, known.so_far[rank]))
        lines += [
            disc(12, y + 7, rank)
            + boxes([(28, y, mine * unit, 14)], filled(rank))
            + boxes(waiting, f'fill="none" stroke="currentColor" {DOTS}'),
            group('text-anchor="end"', *(label(x, y + 11.5, str(n)) for x, n in numbers)),
        ]
    return lines


def _strip(known: Facts) -> str:
    """Every position in its owner's color; runs that are wide enough carry the number."""
    cell, bars, texts = 328 / SEQ_LEN, [], []
    for rank, owned in enumerate(known.layout.owned):
        spots, color = [int(p) for p in owned], rank_color(rank)
        starts = [p for p in spots if p - 1 not in spots]
        stops = [p + 1 for p in spots if p + 1 not in spots]
        runs = list(zip(starts, stops, strict=True))
        cells = [(1 + a * cell, 18, (b - a) * cell, 16) for a, b in runs]
        bars.append(boxes(cells, f'fill="{color}"'))
        ink = f'fill="{text_color(color)}"'
        texts += [label(x + w / 2, 30.5, str(rank), more=ink) for x, _, w, _ in cells if w > 9]
    if not texts:
        texts = [label(164, 47, "dealt to the ranks in turn, starting with 0")]
    outline = 'stroke="currentColor" stroke-width=".8"'
    return group(outline, *bars) + group('text-anchor="middle"', *texts)


def _diagonal(known: Facts, step: int, side: int) -> str:
    """The blocks of one step, one per rank: done, now or to come."""
    events = [e for e in known.blocks.values() if e.step == step]
    corners = [(e, LEFT + side * e.owner, TOP + side * e.rank) for e in events]
    squares = [(x, y, side, side) for _, x, y in corners]
    now = step == known.computed and not known.finished
    if step > known.computed or (step == known.computed and not now):
        return boxes(squares, f'fill="none" stroke="currentColor" {DOTS}')
    outline = 'fill="none" stroke="currentColor" stroke-width='
    drawn = boxes(squares, f'{outline}".8"') + "".join(_inside(*c, side) for c in corners)
    return drawn + boxes(squares, f'{outline}"3"') if now else f"<g {FADED}>{drawn}</g>"


def _inside(event: Event, x: int, y: int, side: int) -> str:
    """What `tile` draws inside a block's outline, in fewer bytes: a state has up to 64 of them."""
    fill, half = f'fill="{rank_color(event.owner)}"', side // 2
    if event.verdict == "full":
        return f'<path d="M{x} {y}h{side}v{side}h-{side}z" {fill}/>'
    if event.verdict == "partial":
        return f'<path d="M{x} {y}l{side} {side}h-{side}z" {fill}/>'
    hatch = f"M{x} {y + half}l{half}-{half}M{x} {y + side}l{side}-{side}"
    hatch += f"M{x + half} {y + side}l{half}-{half}"
    return f'<path d="{hatch}" stroke="currentColor" stroke-width=".5"/>'


def _legend() -> str:
    """What a tile can look like."""
    x, y = 250, TOP
    thick = box(x + 1, y + 97, 13, 13, 'fill="none" stroke="currentColor" stroke-width="3"')
    faded = f"<g {FADED}>{tile(x, y + 120, 15, 'full', 0)}</g>"
    marks = [tile(x, y + 24 * i, 15, k) for i, k in enumerate(("full", "partial", "skipped"))]
    marks += [tile(x, y + 72, 15, "empty"), thick, faded]
    names = ("full", "partial", "skipped", "to come", "this step", "done")
    return "".join(marks) + "".join(
        label(x + 22, y + 12 + 24 * i, name) for i, name in enumerate(names)
    )
