"""Small runs of the core that give the numbers of the bank which are not about cost.

Rows of attention by the oracle and by the merge, and what number formats do. An expression calls
them with plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cpcore.chunks import attention_chunk_stats, finalize, merge_chunk_stats
from cpcore.dense import dense_attention


def row_of(scores: Sequence[float], values: Sequence[float]) -> float:
    """Attention of one query with these scores over these values, by the oracle."""
    return float(_dense(scores, values)[0].item())


def lse_of(scores: Sequence[float]) -> float:
    """Log of the sum of exponentials of a row, by the oracle."""
    return float(_dense(scores, [0.0] * len(scores))[1].item())


def mean_of_rows(scores: Sequence[Sequence[float]], values: Sequence[Sequence[float]]) -> float:
    """The wrong way: the plain mean of what each chunk answers on its own."""
    return float(np.mean([row_of(s, v) for s, v in zip(scores, values, strict=True)]))


def merged_row(scores: Sequence[Sequence[float]], values: Sequence[Sequence[float]]) -> float:
    """The right way: the chunks' summaries, merged and divided once."""
    one = np.ones((1, 1))
    chunks = zip(scores, values, strict=True)
    first, *rest = (attention_chunk_stats(one, _column(s), _column(v)) for s, v in chunks)
    for chunk in rest:
        first = merge_chunk_stats(first, chunk)
    return float(finalize(first)[0].item())


def overflow_score(dtype: str) -> float:
    """The largest score whose exponential the format holds, found by trying."""
    kind = np.dtype(dtype).type
    low, high = 0.0, 1024.0
    with np.errstate(over="ignore"):
        while high - low > 1e-7:
            middle = (low + high) / 2
            fits = np.exp(np.float64(middle)) <= np.float64(np.finfo(kind).max)
            low, high = (middle, high) if fits else (low, middle)
    return low


def rounded(dtype: str, value: float) -> float:
    """What a format makes of a number."""
    return float(np.asarray(value, dtype))


def sum_of_ones(dtype: str, count: int) -> float:
    """What a running sum of ones comes to in a format that rounds after every addition."""
    total, one = np.zeros((), dtype), np.ones((), dtype)
    for _ in range(count):
        total = (total + one).astype(dtype)
    return float(total)


def _column(values: Sequence[float]) -> np.ndarray:
    return np.asarray(values, float)[:, None]


def _dense(scores: Sequence[float], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    return dense_attention(np.ones((1, 1)), _column(scores), _column(values))


RUNS: dict[str, Callable[..., float]] = {
    function.__name__: function
    for function in (
        lse_of, mean_of_rows, merged_row, overflow_score, rounded, row_of, sum_of_ones,
    )
}  # fmt: skip
