"""Still pictures of messages: ticks of a run that ends, waits of one that hangs.

Draws the messages and the pending calls that it is given; it plays no program itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
)

Messages = Sequence[tuple[int, int]]  # (sender, receiver) of every message of one tick
Calls = Sequence[tuple[int, str, int]]  # (rank, "send" or "recv", peer) of every call that waits
MOST_RANKS, MOST_TICKS = 4, 5


def message_panels(panels: Mapping[str, tuple[Sequence[Messages], Calls]], ranks: int) -> Figure:
    """How orders of calls end: the ticks of one that finishes, or who waits for whom.

    Each panel is (messages of every tick, calls that are never met).

    Raises: ValueError for more than four ranks, or a panel that finishes in over five ticks.
    """
    if not 1 < ranks <= MOST_RANKS:
        raise ValueError(f"ranks: expected 2 to {MOST_RANKS}, received {ranks}")
    drawn, rows = [], []
    for name, (ticks, waiting) in panels.items():
        if waiting:
            drawn.append(_circle(name, sum(map(len, ticks)), waiting, ranks))
        elif len(ticks) > MOST_TICKS:
            raise ValueError(f"{name}: expected at most {MOST_TICKS} ticks, received {len(ticks)}")
        else:
            drawn.append(_ticks(name, ticks, ranks))
        rows += [
            [f"{name}, tick {n}", ", ".join(f"{a} to {b}" for a, b in met)]
            for n, met in enumerate(ticks, start=1)
        ]
        rows += [[f"{name}, rank {rank} waits", f"{kind} {peer}"] for rank, kind, peer in waiting]
    shown = "\n".join((*drawn, details(table(["when", "what"], rows))))
    return Figure(f'<div class="cp-figure">\n{shown}\n</div>')


def _circle(name: str, delivered: int, waiting: Calls, ranks: int) -> str:
    """Ranks on a circle; an arrow leads from a rank that waits to the rank that it waits for."""

    def place(rank: float, radius: float) -> tuple[float, float]:
        angle = 2 * math.pi * rank / ranks
        return 165 + radius * math.sin(angle), 128 - radius * math.cos(angle)

    parts = [label(0, 14, name), label(0, 32, f"\N{BALLOT X} stuck, {delivered} delivered")]
    for rank, _, peer in waiting:
        (x0, y0), (x1, y1) = place(rank, 58), place(peer, 58)
        ux, uy = ((b - a) / math.hypot(x1 - x0, y1 - y0) for a, b in ((x0, x1), (y0, y1)))
        parts.append(arrow(x0 + 13 * ux, y0 + 13 * uy, x1 - 13 * ux, y1 - 13 * uy))
    for rank in range(ranks):
        x, y = place(rank, 58)
        calls = " ".join(_call(kind, peer) for r, kind, peer in waiting if r == rank) or "done"
        shift = 0 if rank % 2 == 0 and ranks == 4 else math.copysign(18, x - 164.9)
        above = -18 if y < 120 else 26
        anchor = "middle" if not shift else ("end" if shift < 0 else "")
        spot = (x, y + above) if not shift else (x + shift, y + 4.5)
        parts += [disc(x, y, rank), label(*spot, calls, anchor=anchor)]
    waits = ", ".join(f"rank {rank} for rank {peer}" for rank, _, peer in waiting)
    return svg(218, f"{name}: stuck after {delivered} messages. Waits: {waits}.", *parts)


def _call(kind: str, peer: int) -> str:
    return f"\N{RIGHTWARDS ARROW}{peer}" if kind == "send" else f"\N{LEFTWARDS ARROW}{peer}"


def _ticks(name: str, ticks: Sequence[Messages], ranks: int) -> str:
    """Ticks run right, ranks down; a filled cell is a rank whose call is met."""
    last = {r: max((n for n, met in enumerate(ticks) if r in sum(met, ())), default=-1)
            for r in range(ranks)}  # fmt: skip
    parts = [label(0, 14, name), label(0, 32, f"\N{CHECK MARK} done, ticks: {len(ticks)}")]
    for rank in range(ranks):
        y = 44.0 + 30 * rank
        parts.append(disc(12, y + 12, rank))
        for n, met in enumerate(ticks):
            x = 30.0 + 60 * n
            calls = [_call("send", b) for a, b in met if a == rank]
            calls += [_call("recv", a) for a, b in met if b == rank]
            if calls:
                ink = f'text-anchor="middle" fill="{text_color(rank_color(rank))}"'
                parts.append(box(x, y, 56, 24, filled(rank)))
                parts.append(group(ink, label(x + 28, y + 16.5, " ".join(calls))))
            elif n < last[rank]:
                parts.append(box(x, y, 56, 24, f'fill="none" stroke="currentColor" {DOTS}'))
                parts.append(label(x + 28, y + 16.5, "waits", anchor="middle"))
    total = sum(map(len, ticks))
    return svg(48 + 30 * ranks, f"{name}: {total} messages in {len(ticks)} ticks.", *parts)
