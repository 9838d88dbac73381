"""Softmax attention over one chunk of keys, and the rule that merges two chunks.

Owns the running state (max, sum, un-normalized output), its neutral element, the merge and the one
division. Leaves out who may see whom (`masks`) and the order of chunks (`ring`). A summary does not
specify a fused kernel, which also decides about tiles, dropout and what is saved for backward.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cpcore.attention_checks import chunk_arguments, state_sizes, stats_parts
from cpcore.checks import Array, accumulate_dtype, expected, floating_dtype, narrow
from cpcore.grouping import per_kv_head


class ChunkStats(NamedTuple):
    """What a set of keys contributes to each query row, relative to the row's own maximum.

    Shapes: output (…, Q, Dv), not yet divided; sum (…, Q); max (…, Q); accumulate dtype.
    A row that saw no key has max -inf, sum 0 and output 0.
    """

    output: Array
    sum: Array
    max: Array


def attention_chunk_stats(
    query: ArrayLike,
    key_chunk: ArrayLike,
    value_chunk: ArrayLike,
    *,
    visible: ArrayLike | None = None,
    scale: float | None = None,
    keep: ArrayLike | None = None,
) -> ChunkStats:
    """Summarize one chunk of keys as if it were the only one, without dividing.

    Scores are shifted by the row's largest visible score, so no exponential exceeds one. The shift
    is kept in `max`: a later merge can undo it. Hidden scores become -inf, weight exactly 0.

    Shapes: query (…, Q, D), key_chunk (…, K, D), value_chunk (…, K, Dv), K may be 0; visible bool,
        broadcast to (…, Q, K), True = may attend; scale default D**-0.5. keep, the dropout factor
        0 or 1/(1-rate), broadcasts alike: it changes the output, never the sum. Axis -3 is heads
        when present: query head h reads key head h // group.
    Raises: ValueError for wrong shapes or dtypes, for NaN or infinity in a slot that is seen, and
        for a visible score that overflows the accumulate dtype.
    Source: the running maximum and normalizer of Milakov & Gimelshein 2018 (arXiv:1805.02867).
    """
    q, k, v, visible, scale, keep = chunk_arguments(
        query, key_chunk, value_chunk, visible, scale, keep
    )

    scores = visible_scores(q, k, visible, scale, accumulate_dtype(q.dtype, k.dtype, v.dtype))
    top = scores.max(axis=-1, initial=-np.inf)  # initial: a chunk may hold no key at all
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        scores -= finite_or_zero(top)[..., None]  # -inf - -inf would be NaN
        weights = np.exp(scores, out=scores)
        kept = weights if keep is None else weights * keep
        output = per_kv_head(kept, v) @ v.astype(weights.dtype, copy=False)
    if not np.isfinite(output).all():
        raise expected("value_chunk", f"a weighted sum that fits {output.dtype}", "an overflow")
    output = output.reshape(*q.shape[:-1], v.shape[-1])  # (…, Hkv, group·Q, Dv) -> (…, Hq, Q, Dv)
    return ChunkStats(output=output, sum=weights.sum(axis=-1), max=top)


def merge_chunk_stats(acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
    """Summary of two disjoint sets of keys, from the summary of each.

    Each side is re-expressed relative to the larger maximum before they are added, so no
    exponential exceeds one. In exact arithmetic the order of merges does not matter: a ring may
    deliver blocks in any order. A side that saw no key adds exactly nothing, whatever it holds.

    Shapes: output (…, Q, Dv), sum (…, Q), max (…, Q) on both sides and in the result.
    Raises: ValueError if the two describe different queries, differ in dtype, or overflow.
    Source: the parallel operator of Milakov & Gimelshein 2018 (arXiv:1805.02867) for max and sum;
        Rabe & Staats 2021 (arXiv:2112.05682) for the weighted values.

    >>> left = attention_chunk_stats([[1.0]], [[0.0]], [[0.0]])
    >>> right = attention_chunk_stats([[1.0]], [[np.log(3)]], [[4.0]])
    >>> finalize(merge_chunk_stats(left, right))[0].round(6)  # the plain mean would be 2
    array([[3.]])
    """
    check_pair(acc, chunk)
    acc_max, chunk_max = _seen_max(acc), _seen_max(chunk)
    top = np.maximum(acc_max, chunk_max)
    safe = finite_or_zero(top)
    with np.errstate(under="ignore", over="ignore"):
        keep, add = np.exp(acc_max - safe), np.exp(chunk_max - safe)
        output = _weighted(acc, keep) + _weighted(chunk, add)
        total = keep * acc.sum + add * chunk.sum
    if not (np.isfinite(output).all() and np.isfinite(total).all()):
        raise expected("chunk", f"a weighted sum that fits {output.dtype}", "an overflow")
    return ChunkStats(output=output, sum=total, max=top)


def empty_stats(rows_shape: tuple[int, ...], value_dim: int, dtype: DTypeLike) -> ChunkStats:
    """The neutral state: rows that have seen no key yet. Merging it changes no bit of the other.

    Shapes: rows_shape = (…, Q); the state has output (…, Q, value_dim).
    Raises: ValueError if dtype is not a floating dtype, or a size is negative or beyond any memory.
    """
    rows, value_dim = state_sizes(rows_shape, value_dim)
    state = accumulate_dtype(floating_dtype("dtype", dtype))
    return ChunkStats(
        output=np.zeros((*rows, value_dim), state),
        sum=np.zeros(rows, state),
        max=np.full(rows, -np.inf, state),
    )


def finalize(stats: ChunkStats, dtype: DTypeLike | None = None) -> tuple[Array, Array]:
    """Divide once: the attention output, and each row's log-sum-exp.

    A row that saw no key has output 0 and lse -inf, our convention for an empty softmax.

    Shapes: output (…, Q, Dv) in `dtype` (default: the accumulate dtype); lse (…, Q), always in the
        accumulate dtype, since rounding it to 16 bits would distort every weight rebuilt from it.
    Raises: ValueError for a malformed state, a dtype that is not floating, or a result beyond it.

    >>> finalize(empty_stats((1,), 2, np.float32))
    (array([[0., 0.]], dtype=float32), array([-inf], dtype=float32))
    """
    check_state("stats", stats)
    target = stats.output.dtype if dtype is None else floating_dtype("dtype", dtype)
    unseen = stats.sum == 0
    divisor = np.where(unseen, 1, stats.sum)
    with np.errstate(under="ignore", over="ignore"):
        output = np.where(unseen[..., None], 0, stats.output) / divisor[..., None]
    lse = np.where(unseen, -np.inf, np.where(unseen, 0, stats.max) + np.log(divisor))
    return narrow("dtype", output, target), lse


def visible_scores(
    q: Array, k: Array, visible: Array | None, scale: float, dtype: np.dtype[Any]
) -> Array:
    """Scaled scores (…, Hq, Q, K) in `dtype`, -inf where hidden, checked to be finite elsewhere."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled = q.astype(dtype) * dtype.type(scale)  # Q·D products instead of Q·K
        # A matmul may raise a spurious invalid flag: its result is tested instead.
        scores: Array = per_kv_head(scaled, k) @ k.astype(dtype, copy=False).swapaxes(-1, -2)
    scores = scores.reshape(*q.shape[:-1], k.shape[-2])  # (…, Hkv, group·Q, K) -> (…, Hq, Q, K)
    trouble = ~np.isfinite(scores)
    if visible is not None:
        trouble &= visible
        np.copyto(scores, -np.inf, where=~visible)
    if trouble.any():
        raise expected("query and key_chunk", f"finite scores in {dtype}", "an overflow")
    return scores


def finite_or_zero(top: Array) -> Array:
    """The maximum to subtract: 0 for a row that saw nothing."""
    return np.where(np.isneginf(top), 0, top)


def _seen_max(stats: ChunkStats) -> Array:
    """max, with -inf for rows that saw no key, whatever their buffer holds."""
    return np.where(stats.sum == 0, -np.inf, stats.max)


def _weighted(stats: ChunkStats, weight: Array) -> Array:
    """weight · output; an unseen side adds nothing, even if it holds NaN: 0 · NaN would be NaN."""
    return weight[..., None] * np.where((stats.sum == 0)[..., None], 0, stats.output)


def check_state(argument: str, stats: ChunkStats) -> None:
    """Raise unless `stats` is a running state."""
    if not isinstance(stats, ChunkStats):
        raise expected(argument, "a ChunkStats", type(stats).__name__)
    stats_parts(argument, *stats)


def check_pair(acc: ChunkStats, chunk: ChunkStats) -> None:
    """Raise unless both are states of the same rows, value width and dtype."""
    check_state("acc", acc)
    check_state("chunk", chunk)
    if acc.output.shape != chunk.output.shape:
        raise expected("chunk", f"output of shape {acc.output.shape}", chunk.output.shape)
    if acc.output.dtype != chunk.output.dtype:
        raise expected("chunk", f"output of dtype {acc.output.dtype}", chunk.output.dtype)
