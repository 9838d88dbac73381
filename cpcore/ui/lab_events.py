"""Snapshots of the laboratory: what each event leaves behind, row by row.

A teaching view: the events are those of the run, folded once more with the same core functions so
that every state in between can be shown. A test requires the last snapshots to equal the run.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from cpcore.chunks import ChunkStats, attention_chunk_stats, empty_stats, finalize
from cpcore.chunks import merge_chunk_stats as merge
from cpcore.replay import block_gradients
from cpcore.schedule import Event
from cpcore.ui.lab_facts import INPUTS, LOST, POSITIONS, WIDTH, Array, Facts, Mask, Positions, facts

SCALE = WIDTH**-0.5


class Row(NamedTuple):
    """A query after a block, or a key whose gradient was shared or sent."""

    position: int
    others: tuple[int, ...]  # visible keys of a query; queries that see a key
    left: Array | float  # running max, or dK
    total: float | None  # exp-sum, forward only
    right: Array  # prefix output, or dV


class Snapshot(NamedTuple):
    """An event with its rows; `lost` if what it sends arrives as 0."""

    event: Event
    rows: tuple[Row, ...]
    lost: bool = False


class _Forward:
    """The running state of each rank, and the sums of the mean where the path takes it."""

    def __init__(self, known: Facts) -> None:
        self.known = known
        self.states = [empty_stats((n,), WIDTH, np.float64) for n in known.layout.lengths]
        self.total = [np.zeros((n, WIDTH)) for n in known.layout.lengths]
        self.blocks_seen = [np.zeros(n, int) for n in known.layout.lengths]
        self.alone: dict[tuple[int, int, int], tuple[Array, Array]] = {}

    def visit(self, event: Event) -> Snapshot:
        """One block: the merged state, or for the mean the block's own softmax."""
        known, mask = self.known, self.known.mask(event)
        rows, keys, rank = known.rows(event), known.keys(event), event.rank
        q, k, v = INPUTS["q"][rows], INPUTS["k"][keys], INPUTS["v"][keys]
        stats = attention_chunk_stats(q, k, v, visible=mask)
        self.alone[rank, event.owner, event.key_start] = finalize(stats)
        self.total[rank] = self.total[rank] + finalize(stats)[0]
        self.blocks_seen[rank] = self.blocks_seen[rank] + (stats.sum > 0)
        self.states[rank] = merge(self.states[rank], stats)
        shown, prefix = self.states[rank], finalize(self.states[rank])[0]
        if known.path == "mean":
            shown, prefix = stats, self.mean(rank)
        return Snapshot(event, _query_rows(rows, keys, mask, shown, prefix))

    def mean(self, rank: int) -> Array:
        """The mean so far, over the blocks in which a row saw a key."""
        return np.asarray(self.total[rank] / np.maximum(self.blocks_seen[rank], 1)[:, None])


def _query_rows(
    rows: Positions, keys: Positions, mask: Mask, shown: ChunkStats, prefix: Array
) -> tuple[Row, ...]:
    return tuple(
        Row(int(p), _seen(keys, mask[i]), float(shown.max[i]), float(shown.sum[i]), prefix[i])
        for i, p in enumerate(rows)
    )


def _seen(positions: Positions, mask: Mask) -> tuple[int, ...]:
    return tuple(int(p) for p in positions[mask])


def _replayed(forward: _Forward, event: Event) -> tuple[Array, Array]:
    """What the rank's queries add to dK and dV of the block, as the path's backward does it."""
    known, rank = forward.known, event.rank
    rows, keys = known.rows(event), known.keys(event)
    q, k, v = INPUTS["q"][rows], INPUTS["k"][keys], INPUTS["v"][keys]
    dout, lse, output = INPUTS["dout"][rows] / POSITIONS, known.run.lse[rows], known.results[0]
    output = output[rows]
    if known.path == "mean":  # every block goes back through its own softmax
        dout = dout / np.maximum(forward.blocks_seen[rank], 1)[:, None]
        output, lse = forward.alone[rank, event.owner, event.key_start]
    delta = (dout * output).sum(axis=-1)
    mask = known.mask(event)
    return block_gradients(q, k, v, dout, lse, delta, mask, SCALE)[1:]


def _key_rows(known: Facts, event: Event, dk: Array, dv: Array) -> tuple[Row, ...]:
    """One row per key of the block."""
    rows, mask = known.rows(event), known.mask(event)
    return tuple(
        Row(int(p), _seen(rows, mask[:, j]), dk[j], None, dv[j])
        for j, p in enumerate(known.keys(event))
    )


@cache
def snapshots(split: str, block: str, visibility: str, path: str) -> tuple[Snapshot, ...]:
    """Every event that the cursor visits, in order, with what it leaves behind."""
    known = facts(split, block, visibility, path)
    forward, found = _Forward(known), []
    shares: dict[tuple[int, int, int], tuple[Array, Array]] = {}
    for event in known.events:
        key = (event.rank, event.owner, event.key_start)
        if event.phase == "forward":
            found.append(forward.visit(event))
            continue
        if event.phase == "replay":
            shares[key] = _replayed(forward, event)
        lost = event.phase == "return" and path == "lost" and key[:2] == LOST
        found.append(Snapshot(event, _key_rows(known, event, *shares[key]), lost))
    return tuple(found)
