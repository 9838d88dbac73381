"""Still pictures of chapter 2: who needs whose keys, mass per rank, and a scorecard of tests.

Each function draws the numbers it is given and puts a table of the same facts below. None
computes attention: a picture cannot disagree with the cell that made its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpcore.ui.figure import Figure
from cpcore.ui.svg import (
    DOTS,
    at,
    box,
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
    tile,
    verdict,
)

SIDE = 51  # of a score block: its longest word fits, and five blocks fit a panel
BAR = 88  # height of the longest bar
ROUNDING = 1e-12  # a share computed in float64 may pass one by this much


def ownership(ranks: int) -> Figure:
    """Score blocks of a sequence cut over ``ranks``, in full and in causal attention.

    Raises: ValueError unless the grid has 2 to 5 ranks, so that its words stay readable.
    """
    if ranks not in range(2, 6):
        raise ValueError(f"ranks: expected 2 to 5, received {ranks!r}")
    full = [["full"] * ranks for _ in range(ranks)]
    causal = [
        ["skipped" if k > q else "partial" if k == q else "full" for k in range(ranks)]
        for q in range(ranks)
    ]
    columns = ["queries of", *(f"keys of rank {k}" for k in range(ranks))]
    rows = [
        [f"rank {q}, {name}", *(_place(kind, q == k) for k, kind in enumerate(row))]
        for name, kinds in (("full", full), ("causal", causal))
        for q, row in enumerate(kinds)
    ]
    panels = _blocks("Full attention", full), _blocks("Causal attention", causal)
    return _figure(*panels, details(table(columns, rows)))


def _place(kind: str, home: bool) -> str:
    """What a block needs, in words."""
    if kind == "skipped":
        return "nothing visible"
    return "own" if home else "remote"


def _blocks(title: str, kinds: Sequence[Sequence[str]]) -> str:
    """One grid: queries down, keys right, each block in its key owner's color."""
    left, top = 70, 58
    parts = [label(0, 14, title), label(left, 32, "keys of rank"), label(0, top + 14, "queries")]
    parts.append(label(0, top + 30, "of rank"))
    for q, row in enumerate(kinds):
        y = top + SIDE * q
        parts.append(disc(left - 12, y + SIDE / 2, q))
        parts.append(disc(left + SIDE * q + SIDE / 2, top - 12, q))
        for k, kind in enumerate(row):
            x = left + SIDE * k
            parts.append(tile(x, y, SIDE - 3, kind, k))
            if kind != "skipped":
                parts.append(_word(x, y, k, kind, q == k))
    alt = (
        f"{title}, {len(kinds)} ranks: blocks on the diagonal use a rank's own keys, "
        "every other visible block uses keys of another rank."
    )
    return svg(top + SIDE * len(kinds) + 4, alt, *parts)


def _word(x: float, y: float, rank: int, kind: str, home: bool) -> str:
    """Own or remote, written where the block is filled."""
    ink = f'fill="{text_color(rank_color(rank))}"'
    across, down = (17, 43) if kind == "partial" else (SIDE / 2 - 1.5, 29)
    return label(x + across, y + down, _place(kind, home), anchor="middle", more=ink)


def mass_bars(panels: Mapping[str, Sequence[float]], *, alt: str, even: bool = True) -> Figure:
    """One panel of bars per title, one bar per rank, all panels on one scale.

    A dotted line marks the even share, what an equal-weight mean would give each rank.

    Raises: ValueError without any panel, for an empty alt, or for a bar outside 0 to 1.
    """
    every = [float(share) for shares in panels.values() for share in shares]
    if not every or not all(0 <= share <= 1 + ROUNDING for share in every):
        raise ValueError(f"panels: expected shares from 0 to 1, received {every}")
    drawn = [_bars(name, list(bars), max(every), alt, even) for name, bars in panels.items()]
    count = max(len(shares) for shares in panels.values())
    rows = [[name, *map(num, shares)] for name, shares in panels.items()]
    return _figure(*drawn, details(table(["share", *(f"rank {r}" for r in range(count))], rows)))


def _bars(name: str, shares: Sequence[float], largest: float, alt: str, even: bool) -> str:
    """Bars in rank colors on one floor; below it each rank and its number."""
    unit = BAR / (largest or 1)
    floor, pitch = 28 + BAR, min(44, 296 / len(shares))
    end = pitch * len(shares)
    parts = [label(0, 14, name), f'<path d="M0 {floor}H{at(end)}" stroke="currentColor"/>']
    for rank, share in enumerate(shares):
        middle = pitch * (rank + 0.5)
        parts.append(box(middle - 14, floor - unit * share, 28, unit * share, filled(rank)))
        parts.append(disc(middle, floor + 14, rank))
    below = [label(pitch * (r + 0.5), floor + 38, num(s, 2)) for r, s in enumerate(shares)]
    parts.append(group('text-anchor="middle"', *below))
    if even:
        y = floor - unit / len(shares)
        parts.append(f'<path d="M0 {at(y)}H{at(end)}" stroke="currentColor" {DOTS}/>')
        parts.append(label(end + 3, y + 4, f"1/{len(shares)}"))
    told = ", ".join(num(share, 2) for share in shares)
    return svg(floor + 44, f"{alt} {name}: {told}." if alt.strip() else "", *parts)


def scorecard(ways: Sequence[str], passed: Mapping[str, Sequence[bool]]) -> Figure:
    """One row per test, one column per way of combining chunks: a tick or a cross, and the word.

    Raises: ValueError if a test has not one result per way.
    """
    for test, results in passed.items():
        if len(results) != len(ways):
            raise ValueError(f"passed: expected {len(ways)} results, received {test!r}: {results}")
    rows = [[test, *(verdict(bool(r)) for r in results)] for test, results in passed.items()]
    shown = table(["test", *ways], rows)
    # focusable: on a narrow page it scrolls, and the keyboard must reach it
    return _figure(f'<div class="cp-table" tabindex="0">{shown}</div>')


def _figure(*parts: str) -> Figure:
    return Figure("\n".join(('<div class="cp-figure">', *parts, "</div>")))
