"""Each wrong function inside a whole training step leaves right exactly what it declares."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    ChunkStats,
    Layout,
    contiguous,
    dense_attention_backward,
    finalize,
    merge_chunk_stats,
    pitfalls,
    simulate,
    striped,
    training_pitfalls,
    zigzag,
)
from cpcore.agreements import EVERYTHING, STEP_AGREES
from cpcore.chunks import finite_or_zero
from cpcore.faults import AGREES
from cpcore.loss import loss_sum, mean_loss, next_token_labels
from cpcore.positions import rotary
from cpcore.training_pitfalls import rank_mean_gradient
from tests.support.training_step import (
    Q_HEADS,
    RESULTS,
    Batch,
    Gradients,
    Step,
    agreeing,
    batch,
    dense_step,
)

Array = NDArray[Any]
S = 12
LAYOUTS = {
    "contiguous 3": contiguous(S, 3),
    "zigzag 3": zigzag(S, 3),
    "contiguous 4": contiguous(S, 4),
    "striped 4": striped(S, 4),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
LABELED = {"mean_of_rank_means", "rank_mean", "rank_mean_gradient", "shift_after_shard"}
Wrong = Callable[..., Any]


class Wrongly(Step):
    """A step in which `wrong` takes the place of the right function at one seam."""

    def __init__(self, b: Batch, layout: Layout, wrong: Wrong) -> None:
        super().__init__(b, layout)
        self.wrong = wrong


class Mean(Wrongly, ABC):
    """Output by `wrong`, lse of the whole row."""

    @staticmethod
    @abstractmethod
    def share(counts: Array) -> Array:
        """What each chunk's output is multiplied by, from the keys that each row sees in it."""

    def forward(self, rank: int) -> tuple[Array, Array]:
        pos = self.layout.owned
        output = self.wrong(
            self.q[rank], self.k, self.v, visibility=self.batch.rule, query_positions=pos[rank],
            key_positions=pos,
        )  # fmt: skip
        return output, super().forward(rank)[1]

    def block_backward(self, rank: int, owner: int, dout: Array) -> Gradients:
        counts = np.stack([self.visible(rank, o).sum(axis=-1) for o in self.ranks])
        part = dout * self.share(counts)[owner][:, None]
        visible = self.visible(rank, owner)
        return dense_attention_backward(
            self.q[rank], self.k[owner], self.v[owner], part, visible=visible
        )


class EqualWeightMean(Mean):
    @staticmethod
    def share(counts: Array) -> Array:
        return np.asarray((counts > 0) / (counts > 0).sum(axis=0))


class MeanOverAllChunks(Mean):
    @staticmethod
    def share(counts: Array) -> Array:
        return np.ones_like(counts) / len(counts)


class KeyCountMean(Mean):
    @staticmethod
    def share(counts: Array) -> Array:
        return np.asarray(counts / counts.sum(axis=0))


class Merge(Wrongly):
    def merge(self, acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
        return ChunkStats(*self.wrong(acc, chunk))


class Pairs(Wrongly):
    """Merges (output, lse) pairs of chunks, by the lse of both; a row skips what it cannot see."""

    def join(self, lse: Array, other: Array) -> Array:
        return np.logaddexp(lse, other)

    def store(self, lse: Array) -> Array:
        return lse

    def forward(self, rank: int) -> tuple[Array, Array]:
        pairs = [finalize(chunk) for chunk in self.chunks(rank)]
        output, lse = np.zeros_like(pairs[0][0]), np.full_like(pairs[0][1], -np.inf)
        for out, own in pairs:
            own = self.store(own)
            joined = np.where(np.isneginf(lse), own, self.join(lse, own))
            joined = self.store(np.where(np.isneginf(own), lse, joined))
            keep, add = (np.exp(x - finite_or_zero(joined))[..., None] for x in (lse, own))
            output, lse = keep * output + add * out, joined
        return output, lse


class AddLse(Pairs):
    def join(self, lse: Array, other: Array) -> Array:
        return np.asarray(self.wrong(lse, other))


class LseIn16Bits(Pairs):
    def store(self, lse: Array) -> Array:
        return np.asarray(self.wrong(lse))


class SumIn16Bits(Wrongly):
    """Every sum of partial results: over chunks, over blocks, over ranks."""

    def total(self, parts: list[Array]) -> Array:
        return np.asarray(self.wrong(np.stack(parts))).astype(np.float64)

    def forward(self, rank: int) -> tuple[Array, Array]:
        chunks = self.chunks(rank)
        top = np.max([chunk.max for chunk in chunks], axis=0)
        factors = [np.exp(chunk.max - top) for chunk in chunks]
        pieces = list(zip(chunks, factors, strict=True))
        output = self.total([chunk.output * factor[..., None] for chunk, factor in pieces])
        return finalize(ChunkStats(output, self.total([c.sum * f for c, f in pieces]), top))


class MeanOfRankMeans(Wrongly):
    def labeled(self, logits: list[Array], labels: list[Array]) -> tuple[float, list[Array]]:
        pairs = list(zip(logits, labels, strict=True))
        gradients = [rank_mean_gradient(*pair) / len(pairs) for pair in pairs]
        return self.wrong([loss_sum(*pair) for pair in pairs]), gradients


class RankMean(Wrongly):
    def labeled(self, logits: list[Array], labels: list[Array]) -> tuple[float, list[Array]]:
        pairs = list(zip(logits, labels, strict=True))
        gradients = [rank_mean_gradient(*pair) / len(pairs) for pair in pairs]
        return sum(self.wrong(*pair) for pair in pairs) / len(pairs), gradients


class RankMeanGradient(Wrongly):
    def labeled(self, logits: list[Array], labels: list[Array]) -> tuple[float, list[Array]]:
        pairs = list(zip(logits, labels, strict=True))
        return mean_loss(loss_sum(*pair) for pair in pairs), [self.wrong(*pair) for pair in pairs]


class ShiftAfterShard(Wrongly):
    def labels(self) -> list[Array]:
        return list(self.wrong(self.batch.tokens, self.layout))


class AveragedOverRanks(Wrongly):
    def reduce(self, parts: list[Array]) -> Array:
        return np.asarray(self.wrong(parts))


class LostReturn(Wrongly):
    """`wrong` is simulate with the fault."""

    def backward(self, douts: list[Array]) -> list[Gradients]:
        q, k, v, dout = (self.layout.unshard(x) for x in (self.q, self.k, self.v, douts))
        run = self.wrong(q, k, v, self.layout, self.batch.rule, dout=dout)
        shards = (self.layout.shard(x) for x in (run.dq, run.dk, run.dv))
        return list(zip(*shards, strict=True))


class LocalRotary(Wrongly):
    def turn(self, x: Array, positions: Array) -> Array:
        return np.asarray(self.wrong(x, positions))


class FloorDivided(Wrongly):
    """A rank works on as many of its slots as the ends say; the others are as padding."""

    def visible(self, rank: int, owner: int) -> Array:
        real = np.count_nonzero(self.batch.documents != -1)
        _, end = self.wrong([0, real], self.layout.cp_size)
        rows, keys = (np.arange(self.layout.lengths[r]) < end for r in (rank, owner))
        return super().visible(rank, owner) & rows[:, None] & keys


class RepeatKvHeads(Wrongly):
    def exchanged(self, k: Array, v: Array) -> tuple[Array, Array]:
        k, v = self.wrong(k, v, Q_HEADS)
        return k, v

    def home(self, gradient: Array) -> Array:
        return np.asarray(gradient.reshape(-1, 2, *gradient.shape[1:]).sum(axis=1))


PLAYS: dict[str, type[Wrongly]] = {
    "equal_weight_mean": EqualWeightMean,
    "mean_over_all_chunks": MeanOverAllChunks,
    "key_count_mean": KeyCountMean,
    "merge_without_rescale": Merge,
    "merge_rescaling_sum_only": Merge,
    "merge_with_flipped_sign": Merge,
    "add_lse": AddLse,
    "mean_of_rank_means": MeanOfRankMeans,
    "rank_mean": RankMean,
    "rank_mean_gradient": RankMeanGradient,
    "shift_after_shard": ShiftAfterShard,
    "averaged_over_ranks": AveragedOverRanks,
    "lost_return": LostReturn,
    "local_rotary": LocalRotary,
    "floor_divided_cu_seqlens": FloorDivided,
    "sum_in_16_bits": SumIn16Bits,
    "lse_in_16_bits": LseIn16Bits,
    "repeat_kv_heads": RepeatKvHeads,
}
# What belongs at the seam; with it the step must be right, so that nothing else in it is wrong.
RIGHT: dict[str, Wrong] = {
    "merge_without_rescale": merge_chunk_stats,
    "add_lse": np.logaddexp,
    "shift_after_shard": lambda ids, layout: layout.shard(next_token_labels(ids), axis=0),
    "averaged_over_ranks": lambda parts: np.sum(parts, axis=0),
    "lost_return": simulate,
    "local_rotary": rotary,
    "floor_divided_cu_seqlens": lambda ends, size: -(-np.asarray(ends) // size),
    "sum_in_16_bits": lambda parts: parts.sum(axis=0),
    "lse_in_16_bits": lambda lse: lse,
}
# Their backward is the right gradient of a wrong function; the others go with a backward that is
# not the gradient of their forward.
OWN_SLOPES = (
    "equal_weight_mean",
    "mean_over_all_chunks",
    "key_count_mean",
    "mean_of_rank_means",
    "shift_after_shard",
    "local_rotary",
    "floor_divided_cu_seqlens",
    "repeat_kv_heads",
)


def wrong_function(name: str) -> Wrong:
    """The function of that name; a lost return is `simulate` with a fault."""
    if name == "lost_return":
        return lambda *args, **options: simulate(*args, fault=("lost_return", 2, 0), **options)
    module = pitfalls if hasattr(pitfalls, name) else training_pitfalls
    return getattr(module, name)  # type: ignore[no-any-return]


def generic(name: str, layout: Layout) -> Batch:
    """Inputs on which the fault of that name does not hide."""
    ignored = layout.owned[1] if name == "rank_mean" else ()
    real = S - 1 if name == "floor_divided_cu_seqlens" else None
    return batch(S, labeled=name in LABELED, real=real, ignored=ignored)


def test_the_table_names_what_is_played_and_only_results_of_a_step() -> None:
    assert set(PLAYS) == set(STEP_AGREES)
    assert set(RESULTS) == EVERYTHING
    for name, agrees in STEP_AGREES.items():
        assert agrees <= EVERYTHING, name
        wasteful = str(wrong_function(name).__doc__).startswith("WASTEFUL")
        assert (agrees == EVERYTHING) == wasteful, name
        assert "weights" not in agrees or agrees == EVERYTHING, name


def test_a_mistake_that_is_also_a_fault_of_a_run_declares_the_same() -> None:
    twins = {
        "equal_weight_mean": "equal_weight_mean",
        "merge_rescaling_sum_only": "rescale_only_the_sum",
        "merge_with_flipped_sign": "flipped_sign",
        "sum_in_16_bits": "sixteen_bit_accumulator",
    }
    for function, fault in twins.items():
        assert STEP_AGREES[function] == AGREES[fault], function


@every_layout
@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("real", [None, S - 1])
def test_a_step_without_a_mistake_agrees_in_everything(
    layout: Layout, labeled: bool, real: int | None
) -> None:
    b = batch(S, labeled=labeled, real=real, ignored=layout.owned[1])
    assert agreeing(Step(b, layout).run(), dense_step(b)) == EVERYTHING


def assert_slopes(b: Batch, step: Callable[[Batch], dict[str, Array]]) -> None:
    """The weight gradients are the slopes of the loss along random directions.

    Central differences at h = 1e-5: their error is of order h², their rounding 1e-16 / h.
    """
    h, rng = 1e-5, np.random.default_rng(1)
    gradient = step(b)["weights"]
    for _ in range(5):
        ways = [rng.standard_normal(w.shape) for w in b.weights]
        losses = []
        for sign in (h, -h):
            moved = tuple(w + sign * way for w, way in zip(b.weights, ways, strict=True))
            losses.append(step(replace(b, weights=moved))["loss"])
        slope = (losses[0] - losses[1]) / (2 * h)
        along = gradient @ np.concatenate([way.ravel() for way in ways])
        assert abs(along) > 0.01
        assert slope == pytest.approx(along, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("labeled", [False, True])
def test_the_right_weight_gradients_are_the_slopes_of_the_right_loss(labeled: bool) -> None:
    assert_slopes(batch(S, labeled=labeled), dense_step)


@every_layout
@pytest.mark.parametrize("name", OWN_SLOPES)
def test_a_backward_that_belongs_to_its_forward_is_played_as_such(
    name: str, layout: Layout
) -> None:
    wrong = wrong_function(name)
    assert_slopes(generic(name, layout), lambda b: PLAYS[name](b, layout, wrong).run())


@every_layout
@pytest.mark.parametrize("name", sorted(PLAYS))
def test_a_wrong_function_leaves_right_what_it_declares_and_nothing_else(
    name: str, layout: Layout
) -> None:
    b, wrong = generic(name, layout), Mock(wraps=wrong_function(name))
    got = PLAYS[name](b, layout, wrong).run()
    assert wrong.called
    assert agreeing(got, dense_step(b)) == STEP_AGREES[name]


@every_layout
def test_a_loss_that_is_not_linear_spoils_every_gradient_of_a_wrong_output(layout: Layout) -> None:
    b, wrong = batch(S, labeled=True), pitfalls.merge_rescaling_sum_only
    assert agreeing(Merge(b, layout, wrong).run(), dense_step(b)) == {"lse"}


@every_layout
@pytest.mark.parametrize("name", sorted(RIGHT))
def test_with_the_right_function_in_its_place_the_same_step_is_right(
    name: str, layout: Layout
) -> None:
    b = generic(name, layout)
    got = PLAYS[name](b, layout, RIGHT[name]).run()
    assert agreeing(got, dense_step(b)) == EVERYTHING
