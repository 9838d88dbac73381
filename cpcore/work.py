"""How much of a block is visible, by interval arithmetic instead of a mask.

Owns a fast count that equals `Visibility.pairs`, for schedules far larger than a mask could be:
no array has the size of a block. `Visibility.block` stays the definition.
"""

from typing import NamedTuple

import numpy as np

from cpcore.checks import Array
from cpcore.masks import Verdict, Visibility, padding_slots

# Above this many pairs of runs, a block is counted row by row instead.
MANY_RUNS = 64


class Runs(NamedTuple):
    """Positions, and the same as (first, end, document) runs of consecutive ones, no padding."""

    positions: Array
    runs: tuple[tuple[int, int, int], ...]


def find_runs(rule: Visibility, positions: Array) -> Runs:
    """The runs of some positions: consecutive, within one document, padding left out.

    Shapes: positions (n,).
    Raises: ValueError for positions beyond the rule's documents or relation.
    """
    padding_slots(rule, "layout", positions)  # for its check: numpy would only say IndexError
    ids = _document_ids(rule, positions)
    breaks = (np.diff(positions, prepend=-2) != 1) | (np.diff(ids, prepend=-2) != 0)
    starts = np.flatnonzero(breaks)
    lengths = np.diff(starts, append=len(positions))
    bounds = zip(positions[starts].tolist(), lengths.tolist(), ids[starts].tolist(), strict=True)
    return Runs(positions, tuple((first, first + n, doc) for first, n, doc in bounds if doc != -1))


def judge(rule: Visibility, queries: Runs, keys: Runs) -> tuple[Verdict, int]:
    """Verdict and number of visible pairs of the block."""
    if rule.relation is not None:
        pairs = rule.pairs(queries.positions, keys.positions)
    elif len(queries.runs) * len(keys.runs) > MANY_RUNS:
        pairs = _pairs_by_row(rule, queries.positions, keys.positions)
    else:
        pairs = sum(
            _run_pairs(rule, i, i_end, j, j_end)
            for i, i_end, i_doc in queries.runs
            for j, j_end, j_doc in keys.runs
            if i_doc == j_doc
        )
    if pairs == 0:
        return "empty", 0
    area = len(queries.positions) * len(keys.positions)
    return ("full" if pairs == area else "partial"), pairs


def _reach(rule: Visibility) -> tuple[int | None, int | None]:
    """(ahead, behind): key j is in reach of query i if i - behind < j ≤ i + ahead."""
    if rule.causal:
        return 0, rule.window
    return (None, None) if rule.window is None else (rule.window - 1, rule.window)


def _run_pairs(rule: Visibility, i: int, i_end: int, j: int, j_end: int) -> int:
    """Visible pairs of queries [i, i_end) with keys [j, j_end): one staircase less another."""
    ahead, behind = _reach(rule)
    if ahead is None:
        return (i_end - i) * (j_end - j)
    pairs = _staircase(i + ahead, i_end + ahead, j, j_end)
    return pairs if behind is None else pairs - _staircase(i - behind, i_end - behind, j, j_end)


def _staircase(i: int, i_end: int, j: int, j_end: int) -> int:
    """Pairs with key ≤ query, queries in [i, i_end) and keys in [j, j_end): triangles, ±."""
    corners = (i_end - j, 1), (i - j, -1), (i_end - j_end, -1), (i - j_end, 1)
    return sum(sign * side * (side + 1) // 2 for side, sign in corners if side > 0)


def _pairs_by_row(rule: Visibility, q_pos: Array, k_pos: Array) -> int:
    """Visible pairs row by row, from a sorted list of keys: for scattered positions."""
    ahead, behind = _reach(rule)
    q_doc, k_doc = _document_ids(rule, q_pos), _document_ids(rule, k_pos)
    q_pos, q_doc = q_pos[q_doc != -1], q_doc[q_doc != -1]
    k_pos, k_doc = k_pos[k_doc != -1], k_doc[k_doc != -1]
    # Small ids and reaches, so that no product or sum below can leave int64.
    small = np.unique(np.concatenate((q_doc, k_doc)), return_inverse=True)[1]
    q_doc, k_doc = small[: len(q_doc)], small[len(q_doc) :]
    span = 1 + int(max(q_pos.max(initial=0), k_pos.max(initial=0)))
    last = q_pos * 0 + span - 1 if ahead is None else np.minimum(q_pos + min(ahead, span), span - 1)
    first = q_pos * 0 if behind is None else np.maximum(q_pos - min(behind, span) + 1, 0)
    keys = np.sort(k_doc * span + k_pos)  # by document, then by position
    stop = np.searchsorted(keys, q_doc * span + last, side="right")
    return int((stop - np.searchsorted(keys, q_doc * span + first, side="left")).sum())


def _document_ids(rule: Visibility, positions: Array) -> Array:
    return np.zeros_like(positions) if rule.documents is None else rule.documents[positions]
