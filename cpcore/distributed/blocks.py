"""A block of scores cut into pieces that a fused kernel can compute.

Owns the cut: full rectangles and triangles on the diagonal where positions come in runs, one masked
piece otherwise. `Visibility.block` stays the definition; no array here has the size of a block.
"""

from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from cpcore.checks import Array
from cpcore.masks import Verdict, Visibility

Kind = Literal["full", "triangle", "masked"]
MANY_PIECES = 64  # beyond, many small kernel calls cost more than masked tiles


class Piece(NamedTuple):
    """Rows and keys by local index. triangle: as many rows as keys, row i sees keys 0 … i."""

    rows: slice
    keys: slice
    kind: Kind


class _Run(NamedTuple):
    """Local indices [start, stop) at positions first, first + stride, … of one document."""

    start: int
    stop: int
    first: int
    stride: int
    document: int

    @property
    def last(self) -> int:
        """The largest position of the run."""
        return self.first + self.stride * (self.stop - self.start - 1)


def cut(rule: Visibility, q_pos: Array, k_pos: Array, verdict: Verdict) -> list[Piece]:
    """Disjoint pieces that together cover every visible pair of the block.

    Only a masked piece holds hidden pairs beside visible ones.
    """
    whole = slice(0, len(q_pos)), slice(0, len(k_pos))
    if verdict == "empty":
        return []
    if verdict == "full":
        return [Piece(*whole, "full")]
    if _steps(rule, q_pos, k_pos):
        return [Piece(*whole, "triangle")]
    if rule.relation is None:
        pieces: list[Piece] = []
        for rows, keys in product(_runs(rule, q_pos), _runs(rule, k_pos)):
            if rows.document == keys.document:
                pieces += _pair(rule, rows, keys)
        if len(pieces) <= MANY_PIECES:
            return _joined(pieces)
    return [Piece(*whole, "masked")]


def _steps(rule: Visibility, q_pos: Array, k_pos: Array) -> bool:
    """Whether row i sees keys 0 … i, whatever the gaps between tokens: so in every own block."""
    plain = rule.causal and rule.window is None and rule.documents is None and rule.relation is None
    if not plain or len(q_pos) != len(k_pos):
        return False
    return bool((k_pos <= q_pos).all() and (q_pos[:-1] < k_pos[1:]).all())


def _runs(rule: Visibility, positions: Array) -> list[_Run]:
    """Runs of equal stride within one document, padding left out.

    A striped shard is one run of stride R; any other shard consists of runs of consecutive tokens.
    """
    ids = np.zeros_like(positions) if rule.documents is None else rule.documents[positions]
    steps = np.diff(positions)
    stride = int(steps[0]) if len(steps) and steps[0] > 0 and (steps == steps[0]).all() else 1
    cuts = (np.flatnonzero((steps != stride) | (np.diff(ids) != 0)) + 1).tolist()
    bounds = zip([0, *cuts], [*cuts, len(positions)], strict=True)
    runs = [_Run(a, b, int(positions[a]), stride, int(ids[a])) for a, b in bounds if a < b]
    return [run for run in runs if run.document != -1]


def _pair(rule: Visibility, rows: _Run, keys: _Run) -> list[Piece]:
    """The pieces of one run of rows with one run of keys."""
    whole = slice(rows.start, rows.stop), slice(keys.start, keys.stop)
    nearest, farthest = rows.first - keys.last, rows.last - keys.first
    if rule.window is not None:
        reach = farthest if rule.causal else max(abs(nearest), abs(farthest))
        if nearest >= rule.window or farthest <= -rule.window:
            return []
        if reach >= rule.window:
            return [Piece(*whole, "masked")]
    if not rule.causal or nearest >= 0:
        return [Piece(*whole, "full")]
    if farthest < 0:
        return []
    if rows.stride != keys.stride:
        return [Piece(*whole, "masked")]
    return _staircase(rows, keys, (rows.first - keys.first) // rows.stride)


def _staircase(rows: _Run, keys: _Run, ahead: int) -> list[Piece]:
    """Row i sees keys 0 … i + ahead: a rectangle, a triangle, and the rows below the triangle."""
    top = rows.start + max(0, -ahead)  # the rows above see nothing
    left = keys.start + max(0, ahead)  # the keys before are seen by all rows
    side = min(rows.stop - top, keys.stop - left)
    pieces = (
        Piece(slice(top, rows.stop), slice(keys.start, left), "full"),
        Piece(slice(top, top + side), slice(left, left + side), "triangle"),
        Piece(slice(top + side, rows.stop), slice(left, keys.stop), "full"),
    )
    return [p for p in pieces if p.rows.start < p.rows.stop and p.keys.start < p.keys.stop]


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Full pieces side by side or one above the other become one: fewer, larger kernel calls."""
    full = [piece for piece in pieces if piece.kind == "full"]
    others = [piece for piece in pieces if piece.kind != "full"]
    for row_wise in (True, False):
        full.sort(key=lambda p: (p.rows.start, p.keys.start)[:: 1 if row_wise else -1])
        joined: list[Piece] = []
        for piece in full:
            last = joined[-1] if joined else None
            if row_wise and last and last.rows == piece.rows and last.keys.stop == piece.keys.start:
                joined[-1] = last._replace(keys=slice(last.keys.start, piece.keys.stop))
            elif last and last.keys == piece.keys and last.rows.stop == piece.rows.start:
                joined[-1] = last._replace(rows=slice(last.rows.start, piece.rows.stop))
            else:
                joined.append(piece)
        full = joined
    return sorted([*full, *others], key=lambda p: (p.rows.start, p.keys.start))
