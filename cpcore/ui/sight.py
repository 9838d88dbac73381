"""Still pictures of who sees whom: one square per query and key, rank borders drawn across.

Draws the relations it is given and marks where they differ from the wanted one. Computes no mask:
a picture cannot disagree with the cell that made its relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cpcore.checks import Array, expected
from cpcore.layouts import Layout
from cpcore.ui import svg as draw
from cpcore.ui.figure import Figure
from cpcore.ui.svg import at, box, boxes, disc, label, rank_color, text_color

MOST = 12  # positions: more would make the labels touch
LEFT, TOP, ACROSS = 50, 62, 276  # the grid's corner, and the most it may span
LEGEND = ("sees what it must not", "misses what it must see")
CROSS, CIRCLE = "m-5 -5l10 10m0 -10l-10 10", "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0"


@dataclass(frozen=True, eq=False)
class Sight:
    """One panel: a relation in logical order, what stands beside each position, what is right.

    Shapes: seen and wanted bool (S, S), labels S short texts; wanted None = seen is right.
    """

    title: str
    seen: Array
    labels: Sequence[object]
    wanted: Array | None = None

    @property
    def right(self) -> Array:
        """The relation that should be seen."""
        return self.seen if self.wanted is None else self.wanted

    @property
    def extra(self) -> Array:
        """Pairs that are seen and must not be."""
        return self.seen & ~self.right

    @property
    def missing(self) -> Array:
        """Pairs that must be seen and are not."""
        return self.right & ~self.seen


def sight_grids(panels: Sequence[Sight], layout: Layout, *, alt: str) -> Figure:
    """One grid per panel: queries down, keys right, a seen pair in the color of the key's owner.

    Thick lines are rank borders. A cross marks what must not be seen, a circle what is missing.

    Raises: ValueError without panels or alt text, for more than 12 positions, or for a relation or
        labels that do not fit the layout.
    """
    size = layout.seq_len
    if not 1 <= size <= MOST:
        raise expected("layout", f"1 to {MOST} positions", size)
    if not panels:
        raise expected("panels", "at least one", "none")
    for panel in panels:
        for name, relation in (("seen", panel.seen), ("wanted", panel.right)):
            if relation.shape != (size, size) or relation.dtype != np.bool_:
                received = f"{relation.dtype} of shape {relation.shape}"
                raise expected(name, f"bool of shape {(size, size)}", received)
        if len(panel.labels) != size:
            raise expected("labels", f"{size} texts", len(panel.labels))
    owner = np.empty(size, int)
    for rank, positions in enumerate(layout.owned):
        owner[positions] = rank
    legend = max(len(_kinds(panel)) for panel in panels)  # one height, so that grids line up
    drawn = [_grid(panel, owner, legend, alt) for panel in panels]
    heads = ["query", "rank", "sees keys", "must not see", "misses"]
    rows = [row for panel in panels for row in _rows(panel, owner)]
    parts = '<div class="cp-figure">', *drawn, draw.details(draw.table(heads, rows)), "</div>"
    return Figure("\n".join(parts))


def _grid(panel: Sight, owner: Array, legend: int, alt: str) -> str:
    size = len(owner)
    side = min(26, ACROSS // size)
    floor = TOP + side * size
    parts = [
        label(0, 14, panel.title),
        *_edges(panel, owner, side),
        *(_cells(panel.seen & (owner == rank), rank, side) for rank in np.unique(owner)),
        _lines(owner, side),
        *_marks(panel, owner, side),
        *_words(panel, floor),
    ]
    told = f"{int((panel.seen & panel.right).sum())} pairs seen rightly"
    if panel.wanted is not None:
        told += f", {int(panel.extra.sum())} too many, {int(panel.missing.sum())} missing"
    text = f"{alt} {panel.title}: {told}." if alt.strip() else ""
    return draw.svg(floor + 28 + 22 * legend, text, *(part for part in parts if part))


def _edges(panel: Sight, owner: Array, side: int) -> list[str]:
    """Above and at the left: the label of each position, and the rank of each run."""
    parts = [
        label(LEFT + side * (i + 0.5), TOP - 6, str(name), anchor="middle")
        + label(LEFT - 6, TOP + side * (i + 0.5) + 4.5, str(name), anchor="end")
        for i, name in enumerate(panel.labels)
    ]
    cuts = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(owner)]
    for first, stop in pairwise(cuts):
        middle, rank = side * (first + stop) / 2, int(owner[first])
        parts.append(disc(LEFT + middle, TOP - 30, rank) + disc(12, TOP + middle, rank))
    return parts


def _cells(chosen: Array, rank: int, side: int) -> str:
    """Squares of all chosen pairs, in the rank's color."""
    spots = [(LEFT + side * j, TOP + side * i, side, side) for i, j in np.argwhere(chosen)]
    return boxes(spots, f'fill="{rank_color(int(rank))}"')


def _lines(owner: Array, side: int) -> str:
    """Faint lines between positions, thick ones between ranks, and the frame."""
    size = len(owner)
    thick = {0, size, *(np.flatnonzero(np.diff(owner)) + 1).tolist()}

    def path(cuts: set[int]) -> str:
        return "".join(
            f"M{at(LEFT)} {at(TOP + side * i)}h{at(side * size)}"
            f"M{at(LEFT + side * i)} {at(TOP)}v{at(side * size)}"
            for i in sorted(cuts)
        )

    faint = path(set(range(size + 1)) - thick)
    return (
        f'<path d="{faint}" stroke="currentColor" stroke-opacity=".3" fill="none"/>'
        f'<path d="{path(thick)}" stroke="currentColor" stroke-width="2" fill="none"/>'
    )


def _marks(panel: Sight, owner: Array, side: int) -> list[str]:
    """Crosses in ink that reads on the square below, and circles where a square is missing."""
    parts = [
        _each(panel.extra & (owner == rank), side, CROSS, text_color(rank_color(int(rank))))
        for rank in np.unique(owner)
    ]
    return [*parts, _each(panel.missing, side, CIRCLE, "currentColor")]


def _each(chosen: Array, side: int, mark: str, ink: str) -> str:
    """The mark in the middle of all chosen squares."""
    middle = LEFT + side / 2, TOP + side / 2
    path = "".join(
        f"M{at(middle[0] + side * j)} {at(middle[1] + side * i)}{mark}"
        for i, j in np.argwhere(chosen)
    )
    return path and f'<path d="{path}" stroke="{ink}" stroke-width="1.8" fill="none"/>'


def _kinds(panel: Sight) -> list[tuple[str, bool]]:
    """What the legend must explain: text, and whether the sample square is filled."""
    found = [(panel.extra, True), (panel.missing, False)]
    return [(LEGEND[not full], full) for pairs, full in found if pairs.any()]


def _words(panel: Sight, floor: int) -> list[str]:
    """The count of pairs below the grid, and a legend of the marks that occur."""
    right = int((panel.seen & panel.right).sum())
    kinds = _kinds(panel)
    if panel.wanted is None:
        told = f"{right} pairs"
    elif kinds:
        extra, missing = int(panel.extra.sum()), int(panel.missing.sum())
        told = f"\N{BALLOT X} wrong: {extra} pairs too many, {missing} missing"
    else:
        told = f"\N{CHECK MARK} right: {right} pairs"
    parts = [label(LEFT, floor + 20, told)]
    for i, (text, full) in enumerate(kinds):
        y = floor + 30 + 22 * i
        fill = 'fill="currentColor" fill-opacity=".3"' if full else f'fill="none" {draw.DOTS}'
        parts.append(box(LEFT, y, 16, 16, f'{fill} stroke="currentColor" stroke-width=".8"'))
        mark = f"M{LEFT + 8} {y + 8}{CROSS if full else CIRCLE}"
        parts.append(f'<path d="{mark}" stroke="currentColor" stroke-width="1.8" fill="none"/>')
        parts.append(label(LEFT + 24, y + 12.5, text))
    return parts


def _rows(panel: Sight, owner: Array) -> list[list[str]]:
    """A line of the table per query, in positions."""
    return [
        [f"{panel.title}, query {i}", str(owner[i]), *map(_listed, row)]
        for i, row in enumerate(zip(panel.seen, panel.extra, panel.missing, strict=True))
    ]


def _listed(row: Array) -> str:
    return ", ".join(map(str, np.flatnonzero(row))) or "none"
