"""Timelines: what every rank computes at each step, and for how long it waits.

Owns the picture of a given table of work, step by rank: x is time, cut into steps, y is the rank.
Leaves out where the numbers come from. A step ends when its slowest rank, or its message, is done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from cpcore.ui.figure import Figure
from cpcore.ui.svg import (
    at,
    box,
    boxes,
    details,
    disc,
    filled,
    group,
    label,
    num,
    rank_color,
    svg,
    table,
    text_color,
)

LEFT, RIGHT = 36.0, 314.0  # where time begins, and where the longest panel ends
TOP, ROW, BAR = 24, 24, 15  # the first rank, one line, and the height of compute in it
DIGIT = 8.5  # width of a digit in the widest usual font
MOST_RANKS = 8  # each has a color of its own
WHITE = 'fill="#fff" stroke="currentColor" stroke-width=".8"'
THIN = 'fill="currentColor" fill-opacity=".6"'


@dataclass(frozen=True)
class Lanes:
    """One panel: work[step][rank], and how long the message of each step takes."""

    work: tuple[tuple[float, ...], ...]
    transfer: tuple[float, ...]

    @property
    def ranks(self) -> range:
        """Every rank."""
        return range(len(self.work[0]))

    @property
    def lasts(self) -> tuple[float, ...]:
        """How long each step takes: as long as its slowest rank, or its message."""
        return tuple(max(*row, sent) for row, sent in zip(self.work, self.transfer, strict=True))

    @property
    def starts(self) -> tuple[float, ...]:
        """When each step starts; one entry more, the end of the last."""
        return tuple(accumulate(self.lasts, initial=0.0))

    @property
    def waits(self) -> tuple[float, ...]:
        """How long each rank waits in all."""
        return tuple(self.starts[-1] - sum(row[rank] for row in self.work) for rank in self.ranks)


def timeline(
    panels: Mapping[str, Sequence[Sequence[float]]],
    *,
    alt: str,
    transfer: Sequence[float] | None = None,
    unit: str = "pairs",
) -> Figure:
    """One panel per title, all on one scale: work[step][rank] filled, waiting white.

    ``transfer`` is the time of each step's message, the same for every rank and panel, in the unit
    of the work: a thin bar below.

    Raises: ValueError without a panel, for work that is no table of 1 to 8 ranks, for a number
        that is negative or not finite, for transfers that are not one per step, or without alt.
    """
    lanes = {name: _lanes(work, transfer) for name, work in panels.items()}
    if not lanes:
        raise ValueError("panels: expected at least one, received none")
    scale = (RIGHT - LEFT) / (max(one.starts[-1] for one in lanes.values()) or 1.0)
    parts = [_panel(name, one, scale, alt, unit) for name, one in lanes.items()]
    facts = details(*(_table(name, one) for name, one in lanes.items()))
    return Figure("\n".join(('<div class="cp-figure">', *parts, facts, "</div>")))


def _lanes(work: Sequence[Sequence[float]], transfer: Sequence[float] | None) -> Lanes:
    rows = tuple(tuple(map(float, row)) for row in work)
    ranks = {len(row) for row in rows}
    if len(ranks) != 1 or not 1 <= max(ranks) <= MOST_RANKS:
        raise ValueError(
            f"panels: expected steps of 1 to {MOST_RANKS} ranks, received steps of {sorted(ranks)}"
        )
    sent = tuple(map(float, transfer)) if transfer is not None else (0.0,) * len(rows)
    if len(sent) != len(rows):
        raise ValueError(f"transfer: expected {len(rows)} numbers, received {len(sent)}")
    for value in chain(sent, *rows):
        if not (0 <= value < math.inf):
            raise ValueError(f"panels, transfer: expected finite numbers from 0, received {value}")
    return Lanes(rows, sent)


def _panel(name: str, lanes: Lanes, scale: float, alt: str, unit: str) -> str:
    """Title and total, a line per rank, the steps below, and what the boxes mean."""
    end, bottom = lanes.starts[-1], TOP + ROW * len(lanes.ranks)
    waits = ", ".join(map(num, lanes.waits))
    told = f"{alt} {name}: {num(end)} {unit} long; the ranks wait {waits}." if alt.strip() else ""
    parts = [
        label(0, 14, f"{name}: {num(end)} {unit}"),
        *chain.from_iterable(_lane(lanes, rank, scale) for rank in lanes.ranks),
        _steps(lanes, scale, bottom),
        _legend(bottom + 28, any(lanes.transfer)),
    ]
    return svg(bottom + 48, told, *parts)


def _lane(lanes: Lanes, rank: int, scale: float) -> list[str]:
    """One rank: compute in its color, waiting white, the messages thin below."""
    y = TOP + ROW * rank
    ink = f'fill="{text_color(rank_color(rank))}" text-anchor="middle"'
    busy, idle, sent, numbers = [], [], [], []
    steps = zip(lanes.starts, lanes.lasts, lanes.work, lanes.transfer, strict=False)
    for start, lasts, row, message in steps:
        x, width = LEFT + scale * start, scale * row[rank]
        busy.append((x, y, width, BAR))
        idle.append((x + width, y, scale * (lasts - row[rank]), BAR))
        sent.append((x, y + BAR + 2, scale * message - 1.5, 3))  # a gap between two
        if width > DIGIT * len(num(row[rank])) + 2:
            numbers.append(label(x + width / 2, y + 12, num(row[rank])))
    shown = boxes(busy, filled(rank)), boxes(idle, WHITE), boxes(sent, THIN), group(ink, *numbers)
    return [disc(12, y + BAR / 2, rank), *(part for part in shown if part)]


def _steps(lanes: Lanes, scale: float, bottom: float) -> str:
    """The number of each step that is long enough for it, between the borders of the steps."""
    path = "".join(f"M{at(LEFT + scale * x)} {TOP - 4}V{at(bottom)}" for x in lanes.starts)
    middles = [
        (LEFT + scale * (start + lasts / 2), str(step))
        for step, (start, lasts) in enumerate(zip(lanes.starts, lanes.lasts, strict=False))
        if scale * lasts > DIGIT * len(str(step))
    ]
    lines = f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".3"/>'
    names = group('text-anchor="middle"', *(label(x, bottom + 12, n) for x, n in middles))
    return lines + label(0, bottom + 12, "step") + names


def _legend(y: float, messages: bool) -> str:
    """What filled, white and thin stand for."""
    gray = 'fill="currentColor" fill-opacity=".45" stroke="currentColor" stroke-width=".8"'
    parts = [box(LEFT, y, 15, 12, gray), label(LEFT + 20, y + 11, "computes")]
    parts += [box(LEFT + 98, y, 15, 12, WHITE), label(LEFT + 118, y + 11, "waits")]
    if messages:
        parts += [box(LEFT + 172, y + 5, 15, 3, THIN), label(LEFT + 192, y + 11, "message")]
    return "".join(parts)


def _table(name: str, lanes: Lanes) -> str:
    """Step by step what each rank does, and below it what each one does and waits in all."""
    heads = [f"{name}, step", *(f"rank {rank}" for rank in lanes.ranks), "message", "lasts"]
    numbers = zip(lanes.work, lanes.transfer, lanes.lasts, strict=True)
    rows = [[str(t), *map(num, (*work, m, last))] for t, (work, m, last) in enumerate(numbers)]
    totals = [sum(row[rank] for row in lanes.work) for rank in lanes.ranks]
    end = num(lanes.starts[-1])
    rows.append(["computes", *map(num, totals), num(sum(lanes.transfer)), end])
    rows.append(["waits", *map(num, lanes.waits), "", ""])
    return table(heads, rows)
