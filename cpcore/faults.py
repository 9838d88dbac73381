"""Faults of a whole run, each one method of `Simulation` replaced and registered by name.

`simulate(..., fault=name)` plays them. Each says which public reports it mirrors and which backward
goes with it; AGREES says what still equals the right result, so that no test can be fooled by it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from cpcore.checks import Array, expected
from cpcore.chunks import ChunkStats, merge_chunk_stats
from cpcore.masks import Visibility
from cpcore.pitfalls import merge_rescaling_sum_only, merge_with_flipped_sign
from cpcore.schedule import Event
from cpcore.simulation import FAULTS, Simulation, Tile

# What still equals the right result on generic causal inputs, R ≥ 3, where the fault does not hide.
# "loss" is any function of the output, such as Σ dout · output / S.
AGREES: dict[str, frozenset[str]] = {}
Fault = TypeVar("Fault", bound=type[Simulation])


def fault(name: str, *agrees: str) -> Callable[[Fault], Fault]:
    """Register a simulation as the fault `name`, after which `agrees` still holds."""

    def register(cls: Fault) -> Fault:
        FAULTS[name], AGREES[name] = cls, frozenset(agrees)
        return cls

    return register


def _local_positions(simulation: Simulation, event: Event) -> tuple[Array, Array]:
    """Positions as a rank counts them that knows its own shard only."""
    rows = np.arange(simulation.layout.lengths[event.rank])
    return rows, np.arange(event.key_start, event.key_stop)


def equal_shards(simulation: Simulation) -> None:
    """Refuse a layout for which the fault would not even run."""
    if len(set(simulation.layout.lengths)) > 1:
        raise expected("layout", "shards of one length for this fault", simulation.layout.lengths)


@fault("local_masks")
class LocalMasks(Simulation):
    """Masks by local index: hides the past and shows the future (ring-flash-attention#54).

    Backward: the same wrong mask, so it is the right gradient of a wrong function. Hidden at R = 1.
    """

    def skips(self, event: Event) -> bool:
        return False

    def positions(self, event: Event) -> tuple[Array, Array]:
        return _local_positions(self, event)


@fault("diagonal_as_full")
class DiagonalAsFull(Simulation):
    """A rank's own block without its triangle: every row sees its whole shard.

    Backward: the right gradient of that wrong function. Hidden where the rule is not causal, and
    for shards of one token.
    """

    def relation(self, event: Event) -> Visibility:
        return replace(self.rule, causal=False) if event.owner == event.rank else self.rule


@fault("mask_by_rank")
class MaskByRank(Simulation):
    """Full below the diagonal of ranks, hidden above, a local triangle on it.

    Speaks of a plain causal rule: windows and documents are forgotten. Then right for contiguous
    shards, wrong for any layout in which a rank owns two places of the sequence, such as zigzag.
    Backward: the right gradient of that wrong function.
    """

    def skips(self, event: Event) -> bool:
        return event.owner > event.rank

    def relation(self, event: Event) -> Visibility:
        return Visibility(causal=event.owner == event.rank)

    def positions(self, event: Event) -> tuple[Array, Array]:
        return _local_positions(self, event)


@fault("wrong_direction")
class WrongDirection(Simulation):
    """Blocks travel one way and owners are counted the other; hidden while R is 1 or 2.

    Backward: the same wrong owners.
    """

    def skips(self, event: Event) -> bool:
        return False

    def positions(self, event: Event) -> tuple[Array, Array]:
        equal_shards(self)
        owner = (event.rank + event.step) % self.layout.cp_size
        keys = self.layout.owned[owner][event.key_start : event.key_stop]
        return self.layout.owned[event.rank], keys


@fault("one_hop_too_few")
class OneHopTooFew(Simulation):
    """The loop ends one step early: no rank meets the block of its next neighbor.

    Hidden at R = 1, and where no row sees that block, as under a short window on contiguous
    shards. Backward: equally short.
    """

    def skips(self, event: Event) -> bool:
        return super().skips(event) or event.step == max(1, self.layout.cp_size - 1)


@fault("rescale_only_the_sum", "lse", "dv")
class RescaleOnlyTheSum(Simulation):
    """Merges sums on a common maximum and outputs as they are.

    Backward: right formulas on the wrong output, whose delta is wrong; dV needs no output. Hidden
    while every block has the same maximum, as with uniform scores.
    """

    def merge(self, acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
        return merge_rescaling_sum_only(acc, chunk)


@fault("flipped_sign")
class FlippedSign(Simulation):
    """Rescales by the inverse of the right factor.

    Backward: right formulas on wrong output and lse. Hidden with uniform scores.
    """

    def merge(self, acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
        return merge_with_flipped_sign(acc, chunk)


@fault("sixteen_bit_accumulator")
class SixteenBitAccumulator(Simulation):
    """Rounds the running state to 16 bits after every merge (ring-flash-attention#42).

    The error grows with the number of blocks. Backward: right formulas on rounded output and lse.
    Hidden where every sum is exact in 16 bits.
    """

    def merge(self, acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
        merged = merge_chunk_stats(acc, chunk)
        return ChunkStats(*(x.astype(np.float16).astype(x.dtype) for x in merged))


@fault("dropped_denominator")
class DroppedDenominator(Simulation):
    """Dropout applied before the normalization: the sum loses the dropped terms too.

    Backward: right formulas on wrong output and lse. Hidden without dropout.
    """

    def summarize(self, q: Array, k: Array, v: Array, tile: Tile) -> ChunkStats:
        stats = super().summarize(q, k, v, tile)
        ones = super().summarize(q, k, np.ones_like(v[..., :1]), tile)
        return stats._replace(sum=ones.output[..., 0])


@fault("local_dropout", "lse")
class LocalDropout(Simulation):
    """Drops by local indices: another mask for each layout and rank count.

    Reported as ring-flash-attention#36. Backward: the same mask. lse does not depend on it. Hidden
    without dropout, and at R = 1.
    """

    def dropout_positions(self, event: Event) -> tuple[Array, Array]:
        return _local_positions(self, event)
