"""Wrong ways to combine chunks, each under a name, for pictures, exercises and tests.

Nothing in the core imports this module. Every function documents what is wrong with it, for which
inputs the fault stays hidden, and which public reports describe it. Each has the signature of
the right function, so that one can stand in for the other; `agreements` says what stays right.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import Array, expected, float_array, narrow, shown
from cpcore.chunk_inputs import chunked_inputs
from cpcore.chunks import (
    ChunkStats,
    attention_chunk_stats,
    check_pair,
    empty_stats,
    finalize,
    merge_chunk_stats,
)
from cpcore.masks import Visibility

Merge = Callable[[ChunkStats, ChunkStats], ChunkStats]


def equal_weight_mean(
    query: ArrayLike,
    key_chunks: Sequence[ArrayLike],
    value_chunks: Sequence[ArrayLike],
    *,
    visibility: Visibility | None = None,
    query_positions: ArrayLike | None = None,
    key_positions: Sequence[ArrayLike] | None = None,
    scale: float | None = None,
) -> Array:
    """WRONG: the plain mean of the softmax outputs of the chunks that see something.

    With n such chunks, chunk b has softmax mass Z_b / Z but is given 1 / n, so a row is off by
    Σ_b (1/n - Z_b/Z) · O_b. Hidden when all masses are equal, or n = 1; for other masses only
    values that happen to cancel hide it. Backward: that of the mean, with dout / n in every chunk.

    Shapes and Raises: as `cpcore.ring_attention`.
    Source: reported as gpu-mode/ring-attention#6.
    """
    outputs, _, seen = _per_chunk(
        scale, query, key_chunks, value_chunks, visibility, query_positions, key_positions
    )
    return _weighted_mean(outputs, seen, query)


def mean_over_all_chunks(
    query: ArrayLike,
    key_chunks: Sequence[ArrayLike],
    value_chunks: Sequence[ArrayLike],
    *,
    visibility: Visibility | None = None,
    query_positions: ArrayLike | None = None,
    key_positions: Sequence[ArrayLike] | None = None,
    scale: float | None = None,
) -> Array:
    """WRONG: the mean over every chunk, those that see nothing included as zeros.

    The fault of `equal_weight_mean`, and on top of it a causal row shrinks by the share of
    chunks that lie in its future. Hidden only where every chunk has the same mass. Backward: that
    of the mean, with dout / n in every chunk.

    Shapes and Raises: as `cpcore.ring_attention`.
    """
    outputs, _, seen = _per_chunk(
        scale, query, key_chunks, value_chunks, visibility, query_positions, key_positions
    )
    return _weighted_mean(outputs, np.ones_like(seen), query)


def key_count_mean(
    query: ArrayLike,
    key_chunks: Sequence[ArrayLike],
    value_chunks: Sequence[ArrayLike],
    *,
    visibility: Visibility | None = None,
    query_positions: ArrayLike | None = None,
    key_positions: Sequence[ArrayLike] | None = None,
    scale: float | None = None,
) -> Array:
    """WRONG: the mean of chunk outputs weighted by how many keys each row sees in the chunk.

    Right for uneven chunks when every score is equal, which makes it pass the easy tests; wrong
    as soon as scores differ between chunks, since mass is not a count of keys. Backward: that of
    the mean, with dout · keys / (all keys) in every chunk; dQ is wrong even for equal scores.

    Shapes and Raises: as `cpcore.ring_attention`.
    """
    outputs, counts, _ = _per_chunk(
        scale, query, key_chunks, value_chunks, visibility, query_positions, key_positions
    )
    return _weighted_mean(outputs, counts, query)


def merge_without_rescale(acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
    """WRONG: adds sums and outputs that are relative to different maxima.

    Hidden when both maxima are equal, for instance in a test with uniform scores. Backward: right
    formulas on wrong output and lse.
    """
    check_pair(acc, chunk)
    return ChunkStats(
        acc.output + chunk.output, acc.sum + chunk.sum, np.maximum(acc.max, chunk.max)
    )


def merge_rescaling_sum_only(acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
    """WRONG: rescales the sum but forgets the output: the lse is right and the output is not.

    Hidden when both maxima are equal. Backward: right formulas, but delta comes from the output.
    """
    right = merge_chunk_stats(acc, chunk)
    return right._replace(output=acc.output + chunk.output)


def merge_with_flipped_sign(acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
    """WRONG: rescales by exp(new max - old max), the inverse of the right factor.

    The state grows where it should shrink. Hidden when the maximum never changes. Backward: right
    formulas on wrong output and lse.
    """
    check_pair(acc, chunk)
    top = np.maximum(acc.max, chunk.max)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        keep = np.exp(np.where(acc.sum == 0, 0, top - acc.max))
        add = np.exp(np.where(chunk.sum == 0, 0, top - chunk.max))
        return ChunkStats(
            keep[..., None] * acc.output + add[..., None] * chunk.output,
            keep * acc.sum + add * chunk.sum,
            top,
        )


def add_lse(lse: ArrayLike, other: ArrayLike) -> Array:
    """WRONG: the sum of two log-sum-exps, which multiplies the masses instead of adding them.

    ln 3 and ln 1 give ln 3 instead of ln 4. Backward: probabilities too small by the same factor.

    Source: reported as ring-flash-attention#20.
    """
    first, second = float_array("lse", lse), float_array("other", other)
    for name, array in (("lse", first), ("other", second)):
        if not (array < np.inf).all():
            raise expected(name, "finite numbers or -inf", "NaN or +inf")
    if first.shape != second.shape:
        raise expected("other", f"shape {first.shape} like lse", second.shape)
    return np.asarray(first + second)


def ring_attention_with(
    merge: Merge,
    query: ArrayLike,
    key_chunks: Sequence[ArrayLike],
    value_chunks: Sequence[ArrayLike],
    *,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """(output, lse) of a full-attention loop over chunks that joins them by `merge`.

    Shapes and Raises: as `cpcore.ring_attention` without a visibility; lse (…, Q).
    """
    if not callable(merge):
        raise expected("merge", "a function of two ChunkStats", shown(merge))
    q, chunks, _, _ = chunked_inputs(query, key_chunks, value_chunks)
    parts = [attention_chunk_stats(q, k, v, scale=scale) for k, v in chunks]
    acc = empty_stats(q.shape[:-1], chunks[0][1].shape[-1], parts[0].output.dtype)
    for part in parts:
        acc = merge(acc, part)
        if not isinstance(acc, ChunkStats):
            raise expected("merge", "a function that returns a ChunkStats", shown(acc))
    return finalize(acc)


def _per_chunk(scale: float | None, *inputs: Any) -> tuple[Array, Array, Array]:
    """Each chunk's own softmax output (n, …, Q, Dv), keys seen (n, …, Q), seen any (n, …, Q)."""
    q, chunks, q_pos, k_pos = chunked_inputs(*inputs)
    visibility: Visibility | None = inputs[3]
    outputs, counts = [], []
    for (k, v), pos in zip(chunks, k_pos, strict=True):
        everything = np.ones((len(q_pos), len(pos)), bool)
        visible = everything if visibility is None else visibility.block(q_pos, pos)
        output, _ = finalize(attention_chunk_stats(q, k, v, visible=visible, scale=scale))
        outputs.append(output)
        counts.append(np.broadcast_to(visible.sum(axis=-1), output.shape[:-1]))
    return np.stack(outputs), np.stack(counts), np.stack(counts) > 0


def _weighted_mean(outputs: Array, weights: Array, query: ArrayLike) -> Array:
    """Mean over the first axis, in query's dtype; a row without weight is 0."""
    total = weights.sum(axis=0)
    mean = (outputs * weights[..., None]).sum(axis=0) / np.where(total == 0, 1, total)[..., None]
    return narrow("query", np.where((total == 0)[..., None], 0, mean), np.asarray(query).dtype)
