"""What the ranks hold and do at each event: the arrays behind `ring.simulate`.

Owns one class with one method per decision of an implementation. `faults` replaces them one at a
time, under a name.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from cpcore.checks import Array, accumulate_dtype, expected, narrow, shown, whole_number
from cpcore.chunks import (
    ChunkStats,
    attention_chunk_stats,
    empty_stats,
    finalize,
    merge_chunk_stats,
)
from cpcore.dropout import Dropout
from cpcore.exchange import Block
from cpcore.layouts import Layout
from cpcore.masks import Visibility
from cpcore.replay import block_gradients
from cpcore.schedule import Event

TILE = 512  # the largest temporary is one TILE × TILE tile of scores per head


# Named faults, which `pitfalls` fills: name -> the simulation with one method replaced.
FAULTS: dict[str, "type[Simulation]"] = {}


class Tile(NamedTuple):
    """A part of a block in which some pair is visible; mask None = all of them."""

    rows: slice
    keys: slice
    mask: Array | None
    keep: Array | None


class Simulation:
    """The arrays of all ranks. One method per decision, so that a fault overrides just one."""

    lost: tuple[int, int] | None = None  # (rank, owner) of a gradient message that arrives as 0

    def __init__(
        self,
        arrays: tuple[Array, Array, Array, Array | None],
        layout: Layout,
        rule: Visibility,
        scale: float,
        dropout: Dropout | None,
    ) -> None:
        self.layout, self.rule, self.scale, self.dropout = layout, rule, scale, dropout
        dtype = accumulate_dtype(*(x.dtype for x in arrays[:3] if x is not None))
        names = ("query", "key", "value", "dout")
        shards = [
            [] if x is None else layout.shard(narrow(name, x, dtype))
            for name, x in zip(names, arrays, strict=True)
        ]
        self.q, self.k, self.v, self.dout = shards
        width = arrays[2].shape[-1]
        self.states = [empty_stats(q.shape[:-1], width, dtype) for q in self.q]

    def positions(self, event: Event) -> tuple[Array, Array]:
        """The positions by which a block is masked: global ones, of the rank and of the owner."""
        return _global_positions(self.layout, event)

    def dropout_positions(self, event: Event) -> tuple[Array, Array]:
        """The positions that decide what dropout drops: global ones."""
        return _global_positions(self.layout, event)

    def relation(self, event: Event) -> Visibility:
        """The rule that masks a block."""
        return self.rule

    def skips(self, event: Event) -> bool:
        """Whether the rank computes nothing with a block (its message moves all the same)."""
        return event.verdict == "empty"

    def tiles(self, event: Event) -> Iterator[Tile]:
        """The block in tiles, without those that are hidden."""
        if self.skips(event):
            return
        rule, (q_pos, k_pos) = self.relation(event), self.positions(event)
        for keys, rows in product(_slices(k_pos), _slices(q_pos)):
            mask = rule.block(q_pos[rows], k_pos[keys])
            if mask.any():
                keep = self.keep(event, rows, keys)
                yield Tile(rows, keys, None if mask.all() else mask, keep)

    def keep(self, event: Event, rows: slice, keys: slice) -> Array | None:
        """The dropout factor of a tile."""
        if self.dropout is None:
            return None
        q, (q_pos, k_pos) = self.q[event.rank], self.dropout_positions(event)
        return self.dropout.factor(q.shape, q_pos[rows], k_pos[keys]).astype(q.dtype)

    def summarize(self, q: Array, k: Array, v: Array, tile: Tile) -> ChunkStats:
        """One tile's summary."""
        return attention_chunk_stats(q, k, v, visible=tile.mask, scale=self.scale, keep=tile.keep)

    def merge(self, acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
        """The running state after one more tile."""
        return merge_chunk_stats(acc, chunk)

    def attend(self, event: Event, block: Block) -> None:
        """Forward: merge what the rank's rows see of the block into their running state."""
        output, total, top = self.states[event.rank]
        for tile in self.tiles(event):
            rows, keys = tile.rows, tile.keys
            k, v = (x[..., keys, :] for x in block)
            stats = self.summarize(self.q[event.rank][..., rows, :], k, v, tile)
            state = ChunkStats(output[..., rows, :], total[..., rows], top[..., rows])
            output[..., rows, :], total[..., rows], top[..., rows] = self.merge(state, stats)

    @np.errstate(under="ignore", over="ignore", invalid="ignore")
    def start_replay(self, results: list[tuple[Array, Array]]) -> None:
        """Save what the backward pass needs, one lse and one delta per row, and clear the sums."""
        self.lse = [lse for _, lse in results]
        self.delta = [
            (dout * out).sum(axis=-1) for dout, (out, _) in zip(self.dout, results, strict=True)
        ]
        self.dq = [np.zeros_like(q) for q in self.q]
        # owed[r][o]: what rank r's queries add to the gradients of owner o's keys and values
        blocks = list(zip(self.k, self.v, strict=True))
        self.owed: list[list[Block]] = [
            [(np.zeros_like(k), np.zeros_like(v)) for k, v in blocks] for _ in blocks
        ]

    def finish(self) -> list[tuple[Array, Array]]:
        """Each rank's (output, lse): the one division. The states are no longer needed."""
        states, self.states = self.states, []
        return [finalize(state) for state in states]

    def saved(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        """(dout, lse, delta) of the rows, those of the whole row over all blocks."""
        rank = event.rank
        return self.dout[rank][..., rows, :], self.lse[rank][..., rows], self.delta[rank][..., rows]

    def block_again(self, event: Event, block: Block) -> Block:
        """The keys and values that the backward pass works on."""
        return block

    def returning(self, events: list[Event]) -> list[Event]:
        """The events of the return that are played."""
        return events

    def home(self, rank: int) -> Block:
        """The gradients of the rank's own keys and values, once all sums have returned."""
        return self.owed[rank][rank]

    @np.errstate(under="ignore", over="ignore", invalid="ignore")
    def replay(self, event: Event, block: Block) -> None:
        """Backward: add the block's share to dq here, and to what its owner is owed."""
        block = self.block_again(event, block)
        for tile in self.tiles(event):
            keys = slice(event.key_start + tile.keys.start, event.key_start + tile.keys.stop)
            q, (k, v) = self.q[event.rank][..., tile.rows, :], (x[..., tile.keys, :] for x in block)
            shares = block_gradients(
                q, k, v, *self.saved(event, tile.rows), tile.mask, self.scale, tile.keep
            )
            self.dq[event.rank][..., tile.rows, :] += shares[0]
            for total, share in zip(self.owed[event.rank][event.owner], shares[1:], strict=True):
                total[..., keys, :] += share


def _global_positions(layout: Layout, event: Event) -> tuple[Array, Array]:
    owned = layout.owned
    return owned[event.rank], owned[event.owner][event.key_start : event.key_stop]


def simulation_with(fault: str | tuple[str, int, int] | None, layout: Layout) -> type[Simulation]:
    """The simulation that commits the named fault, the right one for None."""
    if fault is None:
        return Simulation
    name = fault[0] if isinstance(fault, tuple) and len(fault) == 3 else None
    if isinstance(fault, tuple) and isinstance(name, str) and name == "lost_return":
        for side, rank in zip(("rank", "owner"), fault[1:], strict=True):
            if whole_number(f"fault {side}", rank, 0) >= layout.cp_size:
                raise expected(f"fault {side}", f"a rank below {layout.cp_size}", rank)
        return type("LostReturn", (Simulation,), {"lost": fault[1:]})
    if not isinstance(fault, str) or fault not in FAULTS:
        wanted = f"('lost_return', rank, owner) or one of {sorted(FAULTS)}"
        raise expected("fault", wanted, shown(fault))
    return FAULTS[fault]


def _slices(positions: Array) -> Iterator[slice]:
    """Slices of at most TILE consecutive positions, so that few tiles straddle a mask's edge."""
    cuts = (np.flatnonzero(np.diff(positions) != 1) + 1).tolist()
    for start, stop in zip([0, *cuts], [*cuts, len(positions)], strict=True):
        for first in range(start, stop, TILE):
            yield slice(first, min(first + TILE, stop))
