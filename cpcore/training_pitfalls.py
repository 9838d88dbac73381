"""Wrong ways around the attention: loss, labels, gradients, positions, lengths and precision.

As in `pitfalls`, nothing in the core imports this module. Each function says what is wrong, which
public reports describe it, where it hides and which backward goes with it; where a right function
exists, its signature is the same. `agreements` says what each of them leaves right.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    Array,
    document_bounds,
    expected,
    float_array,
    index_array,
    whole_number,
)
from cpcore.layouts import Layout
from cpcore.loss import IGNORE, LossSum, loss_gradient, loss_parts, loss_sum
from cpcore.positions import rotary

MOST_HEADS = 2**16  # a copy of every key per query head: more would fill the memory


def mean_of_rank_means(parts: Iterable[LossSum]) -> float:
    """WRONG: every rank takes the mean of its own tokens, and the means are averaged.

    A token weighs more the fewer its rank has. A rank without any counts as 0 and still divides.
    Hidden while all ranks have the same number of valid tokens. Backward: `rank_mean_gradient` / R.

    Source: reported as Megatron-LM#7513 and verl#5983.
    """
    means = [part.sum / max(1, part.count) for part in loss_parts(parts)]
    return float(sum(means) / max(1, len(means)))


def rank_mean(logits: ArrayLike, labels: ArrayLike) -> float:
    """WRONG: sum / count of one rank, 0 / 0 = NaN for a rank without valid tokens.

    One such rank makes the loss of all NaN. Backward: `rank_mean_gradient`, NaN as well. Hidden
    while every rank has a valid token.

    Source: reported as Megatron-LM#1764.
    """
    part = loss_sum(logits, labels)
    return float("nan") if part.count == 0 else part.sum / part.count


def rank_mean_gradient(logits: ArrayLike, labels: ArrayLike) -> Array:
    """WRONG: the gradient of `rank_mean`, divided by the rank's own count instead of everyone's.

    Hidden at R = 1. NaN for a rank without valid tokens, which poisons every shared weight.

    Shapes: as `cpcore.loss.loss_gradient`.
    """
    count = loss_sum(logits, labels).count
    gradient = loss_gradient(logits, labels, count)
    return np.full_like(gradient, np.nan) if count == 0 else gradient


def shift_after_shard(tokens: ArrayLike, layout: Layout) -> list[Array]:
    """WRONG: every rank takes the next token of its own shard as the label.

    The last label of each run of consecutive positions is lost, or is a token from elsewhere.
    Right at R = 1 only. Backward: the right gradient of wrong targets.

    Shapes: tokens (S,); result one (c,) per rank.
    Source: reported as transformers#36607 and verl#4250.
    """
    if not isinstance(layout, Layout):
        raise expected("layout", "a Layout", type(layout).__name__)
    shards = layout.shard(index_array("tokens", tokens), axis=0)
    return [np.append(shard[1:], IGNORE)[: len(shard)] for shard in shards]


def averaged_over_ranks(gradients: Sequence[ArrayLike]) -> Array:
    """WRONG: the mean of the weight gradients of the ranks of one sequence, as DDP would take it.

    Each rank has a part of the gradient, not an estimate of all of it: the parts are summed over
    the ranks that share a sequence and averaged over sequences only. Too small by R, so plain
    gradient descent hides it as a learning rate, Adam nearly altogether; R = 1 hides it.

    Source: reported as Megatron-LM#673 and SkyRL#1420.
    """
    given: Any = gradients  # a list, or an array whose first axis is the ranks
    if not isinstance(given, list | tuple) and not (isinstance(given, np.ndarray) and given.ndim):
        raise expected("gradients", "a list with one array per rank", type(gradients).__name__)
    arrays = [float_array(f"gradients[{rank}]", each) for rank, each in enumerate(gradients)]
    if not arrays:
        raise expected("gradients", "at least one, one per rank", "none")
    for rank, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise expected(f"gradients[{rank}]", f"shape {arrays[0].shape}", array.shape)
    return np.asarray(np.mean(arrays, axis=0))


def local_rotary(x: ArrayLike, positions: ArrayLike, *, base: float = 10000.0) -> Array:
    """WRONG: rotates by the place within the shard, whatever the global positions are.

    Scores between ranks are off; within one run of consecutive positions differences are right,
    so a local test passes. Backward: turned back by the same wrong angles.

    Shapes: as `cpcore.positions.rotary`.
    Source: kin to Megatron-LM#5243, where later documents took the first one's rows of a table.
    """
    pos = index_array("positions", positions)
    return rotary(x, np.arange(len(pos)), base=base)


def repeat_kv_heads(key: ArrayLike, value: ArrayLike, q_heads: int) -> tuple[Array, Array]:
    """WASTEFUL: one key head per query head before the exchange instead of after it.

    Every result is right, so no comparison of numbers shows it: only the ledger does, in which the
    bytes of each hop grow by Hq / Hkv. Backward: dK and dV of the copies are summed over the group.

    Shapes: key (…, Hkv, S, D), value (…, Hkv, S, Dv); results (…, Hq, S, ·).
    Source: reported as torchtitan#1283.
    """
    k, v = float_array("key", key), float_array("value", value)
    heads = whole_number("q_heads", q_heads, 1, MOST_HEADS)
    if k.ndim < 3 or k.shape[-3] == 0 or heads % k.shape[-3]:
        raise expected("key", f"a head count (axis -3) that divides {heads}", f"shape {k.shape}")
    if v.shape[:-1] != k.shape[:-1]:
        raise expected("value", f"shape {(*k.shape[:-1], 'Dv')}", f"shape {v.shape}")
    group = heads // k.shape[-3]
    return np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)


def floor_divided_cu_seqlens(cu_seqlens: ArrayLike, cp_size: int) -> Array:
    """WRONG: the ends of the documents on one rank as the global ends // R.

    A document whose length R does not divide loses up to R - 1 real tokens: 7 on two ranks become
    3 and 3. Hidden when R divides every end. Backward: no gradient for the lost tokens.

    Source: reported as TransformerEngine#1930 and TransformerEngine#3331.
    """
    return document_bounds("cu_seqlens", cu_seqlens) // whole_number("cp_size", cp_size, 1)


def sum_in_16_bits(values: ArrayLike) -> Array:
    """WRONG: a running float16 sum over the first axis: past 2048 it cannot add 1.

    Hidden while every partial sum is exact. Backward: gradients summed this way stall alike.

    Source: reported as ring-flash-attention#42.
    """
    array = float_array("values", values)
    if array.ndim == 0:
        raise expected("values", "at least 1 axis", "a single number")
    total = np.zeros(array.shape[1:], np.float16)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for value in array:
            total = (total + value.astype(np.float16)).astype(np.float16)
    return np.asarray(total)


def lse_in_16_bits(lse: ArrayLike) -> Array:
    """WRONG: lse stored in float16, whose spacing near 1000 is 0.5.

    Half a spacing is a factor e**0.25 in every merge weight and in every replayed probability.
    Hidden for lse near 0. Backward: exp(scores - lse), off by the inverse factor.
    """
    array = float_array("lse", lse)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(array.astype(np.float16).astype(array.dtype))
