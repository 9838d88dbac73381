"""Still pictures of chapter 4: who holds which shard when, and who sees whom.

Each function draws the events or relations that it is given; none computes attention or a schedule,
so a picture cannot disagree with the cell that made its facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cpcore.layouts import Layout
from cpcore.schedule import Event
from cpcore.ui.figure import Figure
from cpcore.ui.svg import (
    DOTS,
    at,
    box,
    details,
    disc,
    filled,
    label,
    rank_color,
    svg,
    table,
    text_color,
    tile,
)

CELL = 26.0  # of one (query, key) pair
OUTLINE = 'fill="none" stroke="currentColor"'
MOST_POSITIONS = 8


def shard_timeline(events: Iterable[Event]) -> Figure:
    """Every turn of a forward pass: the shard that a rank holds, and what it does with its block.

    Steps run right, ranks down. A bar below a turn says that the shard is sent on.

    Raises: ValueError unless one to four ranks each have one event per step.
    """
    turns = {(e.rank, e.step): e for e in events if e.phase == "forward"}
    count = max((rank for rank, _ in turns), default=-1) + 1
    if set(turns) != {(r, t) for r in range(count) for t in range(count)} or not 0 < count <= 4:
        raise ValueError(f"events: expected 1 to 4 ranks, one per step, received {sorted(turns)}")
    pitch, row, left, top = 72.0, 58.0, 34.0, 28.0
    parts = [label(0, 14, "step")]
    for step in range(count):
        parts.append(label(left + pitch * step + 33, 14, str(step), anchor="middle"))
    for (rank, step), event in sorted(turns.items()):
        x, y = left + pitch * step, top + row * rank
        parts += [disc(12, y + 16, rank)] if step == 0 else []
        parts.append(_shard(x + 2, y + 5, event.owner))
        parts.append(tile(x + 32, y, 32, _kind(event), event.owner))
        if event.send_to is not None:
            parts.append(box(x + 2, y + 38, 62, 6, filled(event.owner)))
    foot = top + row * count
    parts += [box(2, foot + 7, 18, 18, OUTLINE), label(25, foot + 21, "shard it holds")]
    parts += [tile(134, foot + 5, 22, "partial", 0), label(160, foot + 21, "block")]
    parts += [box(214, foot + 13, 40, 6, filled(0)), label(260, foot + 21, "sent on")]
    alt = (
        f"Forward pass of {count} ranks: at step t a rank holds the shard of the rank t places "
        f"behind it. {sum(e.verdict == 'empty' for e in turns.values())} of {len(turns)} blocks "
        "are skipped; bars show that shards are sent on after every step but the last."
    )
    rows = [
        [f"rank {rank}", *(_turn(turns[rank, step]) for step in range(count))]
        for rank in range(count)
    ]
    steps = ["", *(f"step {step}" for step in range(count))]
    return _figure(svg(foot + 32, alt, *parts), details(table(steps, rows)))


def _shard(x: float, y: float, owner: int) -> str:
    """Keys and values on their way: a square with the owner's color and number."""
    ink = f'fill="{text_color(rank_color(owner))}"'
    shape = box(x, y, 22, 22, filled(owner))
    return shape + label(x + 11, y + 15.5, str(owner), anchor="middle", more=ink)


def _kind(event: Event) -> str:
    return "skipped" if event.verdict == "empty" else event.verdict


def _turn(event: Event) -> str:
    """One turn in words."""
    sent = "" if event.send_to is None else f", sent to {event.send_to}"
    return f"shard {event.owner}, {_kind(event)}{sent}"


def relation_panels(layout: Layout, right: Any, panels: Mapping[str, Any]) -> Figure:
    """Who sees whom, pair by pair, in the order in which ranks store positions.

    Shapes: right and each panel bool (S, S) in logical order; S at most 8.
    Raises: ValueError for a layout that is too long, or a shape that is not (S, S).
    """
    size = layout.seq_len
    if not 0 < size <= MOST_POSITIONS:
        raise ValueError(f"layout: expected 1 to {MOST_POSITIONS} positions, received {size}")
    for name, seen in {"right": right, **panels}.items():
        if (len(seen), len(seen[0])) != (size, size):
            raise ValueError(f"{name}: expected shape ({size}, {size}), received {len(seen)} rows")
    order = [int(p) for p in layout.permutation]
    drawn, rows = [], []
    for name, seen in panels.items():
        marks = {(i, j): _mark(bool(seen[i][j]), bool(right[i][j])) for i in order for j in order}
        drawn.append(_relation(name, layout, order, marks))
        rows += [[f"{name}, query {i}", *(marks[i, j] for j in order)] for i in order]
    heads = ["keys in stored order", *(f"key {j}" for j in order)]
    return _figure(*drawn, details(table(heads, rows)))


def _mark(seen: bool, right: bool) -> str:
    """What is true of a pair, in a word."""
    if seen:
        return "seen" if right else "seen, wrongly"
    return "missed" if right else "hidden"


def _relation(
    name: str, layout: Layout, order: Sequence[int], marks: Mapping[tuple[int, int], str]
) -> str:
    left, top = 54.0, 60.0
    side = CELL * len(order)
    owner = {int(p): rank for rank, owned in enumerate(layout.owned) for p in owned}
    wrong = sum(mark == "seen, wrongly" for mark in marks.values())
    missed = sum(mark == "missed" for mark in marks.values())
    sign = "\N{BALLOT X} wrong" if wrong or missed else "\N{CHECK MARK} right"
    parts = [label(0, 14, f"{name}: {sign}"), label(0, 52, "query")]
    start = 0
    for rank, length in enumerate(layout.lengths):
        middle = CELL * (start + length / 2)
        if length:
            parts += [disc(left + middle, 34, rank), disc(12, top + middle, rank)]
        start += length
    for n, p in enumerate(order):
        middle = CELL * (n + 0.5)
        parts.append(label(left + middle, 56, str(p), anchor="middle"))
        parts.append(label(left - 6, top + middle + 4.5, str(p), anchor="end"))
    for n, i in enumerate(order):
        for m, j in enumerate(order):
            parts.append(_pair(left + CELL * m, top + CELL * n, marks[i, j], owner[j]))
    cuts = [CELL * sum(layout.lengths[:rank]) for rank in range(1, layout.cp_size)]
    lines = "".join(
        f"M{at(left + c)} {at(top)}v{at(side)}M{at(left)} {at(top + c)}h{at(side)}" for c in cuts
    )
    parts.append(f'<path d="{lines}" {OUTLINE} stroke-width="2.5"/>' if lines else "")
    for n, (mark, words) in enumerate(
        (("seen, wrongly", f"sees the future: {wrong}"), ("missed", f"misses the past: {missed}"))
    ):
        y = top + side + 10 + 30 * n
        parts += [_pair(left, y, mark, 0), label(left + 36, y + 17.5, words)]
    alt = (
        f"{name}: of {len(marks)} pairs, {wrong} are seen although the key lies in the future, "
        f"and {missed} of the past are missed."
    )
    return svg(top + side + 68, alt, *filter(None, parts))


def _pair(x: float, y: float, mark: str, owner: int) -> str:
    """One pair: filled if seen, with a cross if it must not be, a ring if it is missing."""
    if mark == "hidden":
        return box(x, y, CELL, CELL, f'{OUTLINE} stroke-width=".3"')
    if mark == "missed":
        ring = f'<circle cx="{at(x + CELL / 2)}" cy="{at(y + CELL / 2)}" r="6" {OUTLINE}/>'
        return box(x, y, CELL, CELL, f"{OUTLINE} {DOTS}") + ring
    cell = box(x, y, CELL, CELL, filled(owner))
    if mark == "seen":
        return cell
    cross = f"M{at(x + 7)} {at(y + 7)}l12 12m0-12l-12 12"
    return cell + f'<path d="{cross}" stroke="{text_color(rank_color(owner))}" stroke-width="2"/>'


def _figure(*parts: str) -> Figure:
    return Figure("\n".join(('<div class="cp-figure">', *parts, "</div>")))
