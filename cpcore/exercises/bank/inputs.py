"""Arguments that several exercises share: random arrays and hand-sized ones."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cpcore.chunks import ChunkStats

Array = np.ndarray[Any, Any]
LN2, LN3 = float(np.log(2)), float(np.log(3))


def draw(seed: int, *shapes: tuple[int, ...], dtype: str = "float64") -> tuple[Array, ...]:
    """Normal random arrays, the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def column(numbers: Iterable[float]) -> Array:
    """Numbers as keys or values of width 1: shape (K, 1)."""
    return np.array([[float(x)] for x in numbers])


def one_row(scores: Sequence[float], values: Sequence[float]) -> tuple[Array, Array, Array]:
    """A query of width 1 whose score with each key is the given number."""
    return np.ones((1, 1)), column(scores), column(values)


def stats_of(scores: Sequence[float], values: Sequence[float]) -> ChunkStats:
    """The summary of one row, from its scores, by the formulas."""
    top = float(max(scores))
    weights = [float(np.exp(s - top)) for s in scores]
    output = sum(w * v for w, v in zip(weights, values, strict=True))
    return ChunkStats(np.array([[output]]), np.array([sum(weights)]), np.array([top]))


def splits(count: int, seed: int) -> list[int]:
    """Random cut points of `count` keys, which leave no chunk empty."""
    rng = np.random.default_rng(seed)
    return sorted(rng.choice(np.arange(1, count), size=min(3, count - 1), replace=False).tolist())


def random_stats(seed: int, rows: tuple[int, ...], width: int, keys: int = 5) -> ChunkStats:
    """The summary of random keys, row by row, by the formulas."""
    rng = np.random.default_rng(seed)
    scores = 3 * rng.standard_normal((*rows, keys))
    values = rng.standard_normal((*rows, keys, width))
    top = scores.max(axis=-1)
    weights = np.exp(scores - top[..., None])
    output = (weights[..., None] * values).sum(axis=-2)
    return ChunkStats(output, weights.sum(axis=-1), top)


def rows_of(*arrays: Array) -> Iterator[tuple[Any, ...]]:
    """Index of every row, and what stands there in each array, for oracles that loop."""
    for index in np.ndindex(arrays[0].shape[:-1]):
        yield index, *(a[index] for a in arrays)
