"""Still pictures of chapter 6: a row against a column of blocks, and the gradients' trip home.

`trips` reads from the events whose shares a traveling gradient holds at each hop; the rest draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from cpcore.schedule import Event
from cpcore.ui.figure import Figure
from cpcore.ui.svg import (
    DOTS,
    arrow,
    box,
    details,
    disc,
    filled,
    group,
    label,
    rank_color,
    svg,
    table,
    text_color,
    tile,
)

SIDE, LEFT, TOP = 48, 74, 58  # the grid of score blocks
COLUMN, LINE, CHIP = 34, 52, 13  # width before the first hop, height of a trip, width of a share
WIDE = 330 - COLUMN


class Stop(NamedTuple):
    """A rank that is about to send the sum for an owner; at the end, the owner itself."""

    rank: int
    shares: tuple[int, ...]  # ranks whose turn the sum holds, in the order in which they joined
    nothing: tuple[int, ...]  # those of them that see none of the owner's keys: they added 0


def trips(events: Iterable[Event]) -> list[list[Stop]]:
    """For each owner the stops of the return, hop by hop, and its home.

    Raises: ValueError for a stream without a return, or one that cuts shards into pieces.
    """
    replay: dict[tuple[int, int], Event] = {}
    steps: dict[int, dict[int, Event]] = {}
    for event in events:
        if event.phase == "replay":
            replay[event.rank, event.owner] = event
        if event.phase == "return":
            if event.rank in steps.setdefault(event.step, {}):
                raise ValueError("events: expected whole shards, received pieces of one")
            steps[event.step][event.rank] = event
    if not steps:
        raise ValueError("events: expected a return of gradients, received none")
    held: dict[tuple[int, int], tuple[int, ...]] = {key: (key[0],) for key in replay}
    found: list[list[Stop]] = [[] for _ in steps[max(steps)]]

    def stop(rank: int, owner: int, shares: tuple[int, ...]) -> None:
        nothing = tuple(r for r in shares if replay[r, owner].verdict == "empty")
        found[owner].append(Stop(rank, shares, nothing))

    for step in sorted(steps):
        moved = [(e, held.pop((e.rank, e.owner))) for e in steps[step].values()]
        for event, shares in moved:
            stop(event.rank, event.owner, shares)
            there = event.send_to if event.send_to is not None else event.rank
            held[there, event.owner] = shares + held.get((there, event.owner), ())
    for owner in range(len(found)):
        stop(owner, owner, held[owner, owner])
    return found


def trip_home(streams: Mapping[str, Iterable[Event]]) -> Figure:
    """One panel per stream: who holds which sum of whose gradient at every hop.

    Raises: ValueError as `trips`.
    """
    panels, tables = [], []
    for name, events in streams.items():
        found = trips(events)
        hops = len(found[0]) - 1
        columns = [f"{name}, gradient of", *(f"hop {n}" for n in range(1, hops + 1)), "home"]
        rows = [[f"rank {o}", *map(_words, stops)] for o, stops in enumerate(found)]
        panels.append(_trip_panel(name, found, hops))
        tables.append(table(columns, rows))
    return _figure(*panels, details(*tables))


def _words(stop: Stop) -> str:
    """A stop as a cell of the table."""
    added = " + ".join(str(r) for r in stop.shares if r not in stop.nothing)
    empty = ", ".join(map(str, stop.nothing))
    return f"rank {stop.rank}: {added or 'zeros'}" + f"; nothing from {empty}" * bool(empty)


def _trip_panel(name: str, found: list[list[Stop]], hops: int) -> str:
    pitch = WIDE / (hops + 1)
    middles = [COLUMN + pitch * (n + 0.5) for n in range(hops + 1)]
    heads = [*(f"hop {n}" for n in range(1, hops + 1)), "home"]
    parts = [label(0, 14, f"{name}: {hops} hops")]
    parts += [label(x, 36, head, anchor="middle") for x, head in zip(middles, heads, strict=True)]
    for owner, stops in enumerate(found):
        y = 58.0 + LINE * owner
        parts.append(_gradient(13, y + 8, owner))
        parts += [_stop(x, y, stop) for x, stop in zip(middles, stops, strict=True)]
        parts += [
            arrow(a + 12, y, b - 12, y)
            for (a, here), (b, there) in pairwise(zip(middles, stops, strict=True))
            if set(here.shares) <= set(there.shares)  # the sum travels on
        ]
    floor = 58 + LINE * len(found) - 6
    parts += [
        _chip(0, floor, 1, filled_in=True) + label(CHIP + 6, floor + 12, "share in the sum"),
        _chip(165, floor, 1, filled_in=False) + label(184, floor + 12, "had nothing to add"),
    ]
    alt = f"{name}: the gradient of each rank's keys gathers shares over {hops} hops; " + "; ".join(
        f"rank {o} through " + ", ".join(str(s.rank) for s in stops[:-1])
        for o, stops in enumerate(found)
    )
    return svg(floor + 20, f"{alt}.", *parts)


def _stop(x: float, y: float, stop: Stop) -> str:
    """The rank that holds the sum, and a chip for each share in it."""
    start = x - CHIP * len(stop.shares) / 2
    chips = (
        _chip(start + CHIP * i, y + 12, rank, filled_in=rank not in stop.nothing)
        for i, rank in enumerate(stop.shares)
    )
    return disc(x, y, stop.rank) + "".join(chips)


def _chip(x: float, y: float, rank: int, *, filled_in: bool) -> str:
    """One rank's share: in its color, or dotted where it added nothing."""
    look = filled(rank) if filled_in else f'fill="none" stroke="currentColor" {DOTS}'
    ink = f'fill="{text_color(rank_color(rank))}"' if filled_in else ""
    return box(x, y, CHIP, 16, look) + label(
        x + CHIP / 2, y + 12.5, str(rank), anchor="middle", more=ink
    )


def _gradient(x: float, y: float, owner: int) -> str:
    """The gradient of a rank's keys: a ring in the owner's color between two lines of ink."""
    spot = f'cx="{x:g}" cy="{y:g}"'
    ring = f'<circle {spot} r="10" stroke="{rank_color(owner)}" stroke-width="5"/>'
    ink = "".join(f'<circle {spot} r="{r}" stroke="currentColor"/>' for r in (7.5, 12.5))
    return group('fill="none" stroke-width=".8"', ring, ink) + label(
        x, y + 4.5, str(owner), anchor="middle"
    )


def row_and_column(ranks: int, rank: int, owner: int) -> Figure:
    """Causal score blocks twice: the row that makes dQ of `rank`, the column of `owner`'s dK, dV.

    Raises: ValueError unless the grid has 2 to 5 ranks, and both ranks are in it.
    """
    if ranks not in range(2, 6) or not {rank, owner} <= set(range(ranks)):
        received = f"{ranks!r}, {rank!r}, {owner!r}"
        raise ValueError(f"ranks: expected 2 to 5 with rank and owner in it, received {received}")
    row = {(rank, k) for k in range(rank + 1)}
    column = {(q, owner) for q in range(owner, ranks)}
    names = f"dQ of rank {rank}: one row", f"dK, dV of rank {owner}: one column"
    told = [
        ["dQ", f"rank {rank}", ", ".join(f"keys of {k}" for _, k in sorted(row)), f"rank {rank}"],
        ["dK, dV", f"rank {owner}", ", ".join(f"queries of {q}" for q, _ in sorted(column)),
         ", ".join(f"rank {q}" for q, _ in sorted(column))],
    ]  # fmt: skip
    facts = table(["gradient", "belongs to", "sum over", "computed on"], told)
    panels = [_blocks(*each, ranks) for each in zip(names, (row, column), strict=True)]
    return _figure(*panels, details(facts))


def _blocks(title: str, chosen: set[tuple[int, int]], ranks: int) -> str:
    """The grid with the chosen blocks in full color, each with the rank that computes it."""
    parts = [label(0, 14, title), label(LEFT, 32, "keys of rank"), label(0, TOP + 14, "queries")]
    parts.append(label(0, TOP + 30, "of rank"))
    for q in range(ranks):
        parts.append(disc(LEFT - 12, TOP + SIDE * (q + 0.5), q))
        parts.append(disc(LEFT + SIDE * (q + 0.5), TOP - 12, q))
        for k in range(ranks):
            x, y = LEFT + SIDE * k, TOP + SIDE * q
            kind = "skipped" if k > q else "partial" if k == q else "full"
            drawn = tile(x, y, SIDE - 3, kind, k)
            if (q, k) not in chosen:
                parts.append(group('opacity=".3"', drawn))
                continue
            across, down = (16, 40) if kind == "partial" else (22, 27)
            ink = f'fill="{text_color(rank_color(k))}"'
            parts.append(drawn + label(x + across, y + down, f"on {q}", anchor="middle", more=ink))
    where = ", ".join(f"queries of {q} with keys of {k}" for q, k in sorted(chosen))
    return svg(TOP + SIDE * ranks + 4, f"{title} of the score blocks: {where}.", *parts)


def _figure(*parts: str) -> Figure:
    return Figure("\n".join(('<div class="cp-figure">', *parts, "</div>")))
