"""Still picture of chapter 7: which probabilities dropout drops, in logical order.

Draws the masks that it is given and puts a table of the same facts below. It draws no lot itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cpcore.layouts import Layout
from cpcore.ui.figure import Figure
from cpcore.ui.svg import boxes, details, disc, filled, label, svg, table

GRID = 22  # of one probability
MOST = 12  # positions that a panel can hold


def drop_grids(panels: Mapping[str, tuple[NDArray[np.bool_], Layout]]) -> Figure:
    """Causal attention, queries down, keys right: kept probabilities filled, dropped ones crossed.

    Every panel is (kept, layout), kept in logical order; a cell has the color of its key's owner.

    Raises: ValueError without a panel, or unless kept is (S, S) with 1 to 12 positions.
    """
    sizes = {layout.seq_len for _, layout in panels.values()}
    size = max(sizes, default=0)
    shapes = [kept.shape for kept, _ in panels.values()]
    if sizes != {size} or not 1 <= size <= MOST or set(shapes) != {(size, size)}:
        wanted = f"(S, S) arrays and layouts of one S from 1 to {MOST}"
        raise ValueError(f"panels: expected {wanted}, received {shapes} and {sorted(sizes)}")
    drawn = [_panel(name, kept, layout) for name, (kept, layout) in panels.items()]
    rows = [
        [f"query {i}", *(_dropped_keys(kept[i], i) for kept, _ in panels.values())]
        for i in range(size)
    ]
    facts = details(table(["drops keys", *panels], rows))
    return Figure("\n".join(('<div class="cp-figure">', *drawn, facts, "</div>")))


def _dropped_keys(kept: NDArray[np.bool_], query: int) -> str:
    """The keys that a query sees and drops."""
    return ", ".join(str(key) for key in range(query + 1) if not kept[key]) or "none"


def _panel(name: str, kept: NDArray[np.bool_], layout: Layout) -> str:
    size, left, top = layout.seq_len, 24, 46
    owner = {int(pos): rank for rank, own in enumerate(layout.owned) for pos in own}
    parts = [label(0, 14, name)]
    for i in range(size):
        parts.append(disc(left + GRID * (i + 0.5), top - 12, owner[i]))
        parts.append(disc(left - 12, top + GRID * (i + 0.5), owner[i]))
    corners = {(i, j): (left + GRID * j, top + GRID * i) for i in range(size) for j in range(i + 1)}
    for rank in range(layout.cp_size):
        mine = [at for (i, j), at in corners.items() if kept[i, j] and owner[j] == rank]
        parts.append(boxes([(x + 1, y + 1, GRID - 2, GRID - 2) for x, y in mine], filled(rank)))
    lost = [at for (i, j), at in corners.items() if not kept[i, j]]
    crosses = "".join(f"M{x + 6} {y + 6}l10 10m0-10l-10 10" for x, y in lost)
    parts.append(f'<path d="{crosses}" fill="none" stroke="currentColor" stroke-width="1.3"/>')
    alt = f"{name}: of {len(corners)} visible probabilities, {len(lost)} are dropped."
    return svg(top + GRID * size + 6, alt, *parts)
