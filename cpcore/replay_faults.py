"""Faults of the backward pass, and of the mean, whose backward needs each block's own softmax.

Registered by name as in `faults`: for all but the mean, output and lse are right and training is
wrong. All hide at R = 1; those of `BlockMemory` only while max_block leaves the shard whole.
"""

from typing import Any

import numpy as np

from cpcore.checks import Array
from cpcore.chunks import empty_stats, finalize, merge_chunk_stats
from cpcore.exchange import Block
from cpcore.faults import equal_shards, fault
from cpcore.schedule import Event
from cpcore.simulation import Simulation


class BlockMemory(Simulation):
    """Base of the faults that go back to a block's own output and lse."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.alone: dict[tuple[int, int, int], tuple[Array, Array]] = {}

    def attend(self, event: Event, block: Block) -> None:
        """Into an empty state first, so that the block's own softmax is known, then merged."""
        shared = self.states[event.rank]
        width, dtype = shared.output.shape[-1], shared.output.dtype
        self.states[event.rank] = empty_stats(shared.sum.shape, width, dtype)
        super().attend(event, block)
        alone = self.states[event.rank]
        self.states[event.rank] = merge_chunk_stats(shared, alone)
        self.alone[event.rank, event.owner, event.key_start] = finalize(alone)

    def own(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        """(dout, the block's own lse, delta from the block's own output)."""
        output, lse = self.alone[event.rank, event.owner, event.key_start]
        dout = self.dout[event.rank][..., rows, :]
        return dout, lse[..., rows], (dout * output[..., rows, :]).sum(axis=-1)


@fault("equal_weight_mean", "lse")
class EqualWeightMean(BlockMemory):
    """The plain mean of the outputs of the blocks that a row sees (gpu-mode/ring-attention#6).

    Its output is right where all blocks have one softmax mass: full attention, equal shards,
    uniform scores. dQ is wrong even there. Backward: that of the mean. Every block replays its own
    softmax with dout / B.
    """

    def finish(self) -> list[tuple[Array, Array]]:
        """The mean; the lse stays that of the whole row."""
        results = []
        self.blocks_seen: dict[int, Array] = {}
        for rank, (_, lse) in enumerate(super().finish()):
            blocks = [x for (r, _, _), x in sorted(self.alone.items()) if r == rank]
            seen = np.sum([np.isfinite(own) for _, own in blocks], axis=0)
            self.blocks_seen[rank] = np.maximum(seen, 1)
            total = np.sum([output for output, _ in blocks], axis=0)
            results.append((total / self.blocks_seen[rank][..., None], lse))
        return results

    def saved(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        dout, lse, delta = self.own(event, rows)
        count = self.blocks_seen[event.rank][..., rows]
        return dout / count[..., None], lse, delta / count


@fault("own_output", "output", "loss", "lse", "dv")
class OwnOutput(BlockMemory):
    """Replays with the block's own output and the row's lse (kind of tt-metal#53205).

    dV needs no output, so it is right.
    """

    def saved(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        dout, lse, _ = super().saved(event, rows)
        return dout, lse, self.own(event, rows)[2]


@fault("own_output_and_lse", "output", "loss", "lse")
class OwnOutputAndLse(BlockMemory):
    """Replays each block as if it were the only one (kind of tt-metal#53205)."""

    def saved(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        return self.own(event, rows)


@fault("weighted_dout", "output", "loss", "lse", "dv")
class WeightedDout(BlockMemory):
    """As `own_output_and_lse`, with dout scaled by the block's weight exp(own lse - lse).

    The most deceptive of its kind: dV is exactly right (tt-metal#53205).
    """

    def saved(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        _, lse, _ = super().saved(event, rows)
        dout, own_lse, delta = self.own(event, rows)
        weight = np.exp(own_lse - np.where(np.isneginf(lse), 0, lse))
        return dout * weight[..., None], own_lse, delta * weight


@fault("own_lse", "output", "loss", "lse")
class OwnLse(BlockMemory):
    """Replays with the row's output and the block's own lse (kind of tt-metal#53205)."""

    def saved(self, event: Event, rows: slice) -> tuple[Array, Array, Array]:
        dout, _, delta = super().saved(event, rows)
        return dout, self.own(event, rows)[1], delta


@fault("stale_kv", "output", "loss", "lse")
class StaleKv(Simulation):
    """Every step of the backward pass works on the keys and values of step 0 (diffusers#14265).

    Hidden where all ranks hold the same keys and values.
    """

    def block_again(self, event: Event, block: Block) -> Block:
        equal_shards(self)
        stop = event.key_stop
        return tuple(x[event.rank][..., event.key_start : stop, :] for x in (self.k, self.v))


@fault("return_one_hop_short", "output", "loss", "lse", "dq")
class ReturnOneHopShort(Simulation):
    """dK and dV stop one hop from home and count as that rank's own (TransformerEngine#2484).

    Straight returns lose no hop: there the share that is sent last is the one that stays.
    """

    def returning(self, events: list[Event]) -> list[Event]:
        return [event for event in events if event.step < self.layout.cp_size - 1]

    def home(self, rank: int) -> Block:
        equal_shards(self)
        if self.layout.cp_size == 1:
            return super().home(rank)
        stalled = self.owed[rank][(rank + 1) % self.layout.cp_size]
        return tuple(mine + other for mine, other in zip(super().home(rank), stalled, strict=True))
