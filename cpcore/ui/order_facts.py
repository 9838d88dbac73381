"""Numbers of the merge-order explorer: errors of the core's merge, by order and precision."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cpcore.chunks import ChunkStats, attention_chunk_stats, finalize, merge_chunk_stats

ORDERS = ("chain", "reverse", "tree", "random")
PRECISIONS = ("float64", "float32", "float16")
COUNTS = (8, 64, 512)
EPS = {name: float(np.finfo(name).eps) for name in PRECISIONS}
QUERIES, SEED = 16, 4
DIGITS = 40


@dataclass(frozen=True)
class Facts:
    """The largest error of each order."""

    precision: str
    chunks: int
    errors: dict[str, float]


def arrival(order: str, count: int) -> list[int]:
    """Chunks in the order in which they come; a tree takes neighbors as they are."""
    if order == "reverse":
        return list(range(count))[::-1]
    if order == "random":
        return [int(c) for c in np.random.default_rng(SEED).permutation(count)]
    return list(range(count))


@cache
def inputs(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores (queries, chunks) and values (chunks,), exact in 16 bits and so in every precision."""
    rng = np.random.default_rng(SEED)
    scores = rng.integers(-512, 513, (QUERIES, count)) / 128
    return scores, rng.integers(1, 65, count) / 32


@cache
def exact(count: int) -> tuple[Decimal, ...]:
    """The answers to 40 digits."""
    scores, values = inputs(count)
    with localcontext() as context:
        context.prec = DIGITS
        found = []
        for row in scores:
            weights = [Decimal(float(s)).exp() for s in row]
            pairs = zip(weights, values, strict=True)
            found.append(sum(w * Decimal(float(v)) for w, v in pairs) / sum(weights))
        return tuple(Decimal(answer) for answer in found)


@cache
def facts(precision: str, chunks: int) -> Facts:
    """Every order, merged by the core."""
    errors = {}
    for order in ORDERS:
        output = finalize(_merged(order, precision, chunks))[0][:, 0]
        pairs = zip(output, exact(chunks), strict=True)
        errors[order] = max(float(abs(Decimal(float(o)) - right)) for o, right in pairs)
    return Facts(precision, chunks, errors)


def _merged(order: str, precision: str, count: int) -> ChunkStats:
    """All summaries merged in this order, in this precision of the state."""
    dtype = np.float64 if precision == "float64" else np.float32
    scores, values = (x.astype(dtype) for x in inputs(count))
    parts = [
        attention_chunk_stats(
            scores[:, c, None], np.ones((1, 1), dtype), values[c, None, None], scale=1.0
        )
        for c in arrival(order, count)
    ]
    while len(parts) > 1:
        if order == "tree":
            parts = [_merge(a, b, precision) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        else:
            parts = [_merge(parts[0], parts[1], precision), *parts[2:]]
    return parts[0]


def _merge(a: ChunkStats, b: ChunkStats, precision: str) -> ChunkStats:
    """One merge; a 16-bit state is rounded after it, as an accumulator in 16 bits would be."""
    merged = merge_chunk_stats(a, b)
    if precision != "float16":
        return merged
    return ChunkStats(*(x.astype(np.float16).astype(x.dtype) for x in merged))
