"""Exercise: the summary of a chunk."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.exercises.bank.inputs import LN3, Array, draw, one_row
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong

PARTS = ("output", "sum", "max")


def chunk_by_rows(query: Array, key_chunk: Array, value_chunk: Array) -> tuple[Array, ...]:
    """Every row in plain Python: the textbook sums, relative to the row's largest score."""
    shape, dtype = query.shape[:-1], query.dtype
    output = np.zeros((*shape, value_chunk.shape[-1]))
    total, top = np.zeros(shape), np.zeros(shape)
    for row in np.ndindex(shape):
        lead = row[:-1]
        keys, values = key_chunk[lead].astype(float), value_chunk[lead].astype(float)
        q = query[row].astype(float) / math.sqrt(query.shape[-1])
        scores = [math.fsum(q * k) for k in keys]
        top[row] = max(scores)
        weights = [math.exp(s - top[row]) for s in scores]
        total[row] = math.fsum(weights)
        output[row] = sum(w * v for w, v in zip(weights, values, strict=True))
    return output.astype(dtype), total.astype(dtype), top.astype(dtype)


def _random_chunks() -> Iterator[Args]:
    for seed, (rows, keys, width, out) in enumerate([(1, 2, 4, 1), (2, 3, 2, 3), (3, 1, 4, 2)]):
        yield draw(seed, (rows, width), (keys, width), (keys, out))


def _heads() -> Iterator[Args]:
    yield draw(5, (2, 2, 4), (2, 3, 4), (2, 3, 1))
    yield draw(6, (2, 1, 3, 2), (2, 1, 2, 2), (2, 1, 2, 3))


def _large_scores() -> Iterator[Args]:
    yield one_row([1000, 1001], [1, 3])
    yield one_row([-1000, -1001], [1, 3])
    yield np.array([[1.0], [-1.0]]), np.array([[0.0], [900.0]]), np.array([[1.0], [3.0]])


ATTENTION_CHUNK_STATS = Exercise(
    name="attention_chunk_stats",
    title="Summarize one chunk",
    level="warm-up",
    minutes=10,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "It is the stable softmax, stopped one step early: the numerator and the denominator are "
        "returned apart instead of being divided.",
        "Subtract each row's own largest score before the exponential, and return that score: a "
        "later merge has to know what was subtracted.",
        "With weights = exp(scores − max), of shape (…, Q, K): the sum is taken over the last "
        "axis, and the output is one matrix product of the weights with the values.",
    ),
    examples=(
        Example("two keys, scores 0 and ln 3", lambda: one_row([0, LN3], [0, 4])),
        Example("three equal scores", lambda: one_row([0, 0, 0], [1, 3, 8])),
    ),
    claims=(
        Claim("Rows, keys and widths may be any number", _random_chunks),
        Claim("Leading axes, such as heads, are free", _heads),
        Claim("Scores of a thousand neither overflow nor vanish", _large_scores),
        Claim(
            "float32 in, float32 out",
            lambda: [draw(8, (2, 4), (3, 4), (3, 2), dtype="float32")],
        ),
    ),
    oracle=chunk_by_rows,
    parts=PARTS,
    large=lambda: draw(1, (64, 16), (256, 16), (256, 16)),
    wrong=(
        Wrong(
            "divided",
            "the chunk divides by its own sum at once, which a merge cannot undo without the sum",
            (("@ value_chunk, w", "@ value_chunk / weights.sum(-1)[..., None], w"),),
            seen_in="gpu-mode/ring-attention#6",
        ),
        Wrong(
            "unscaled",
            "the scores are not divided by √D",
            (("query.shape[-1] ** -0.5", "1"),),
            passes_run=True,
        ),
        Wrong(
            "one maximum",
            "all rows share one maximum, so rows with small scores lose their digits or all weight",
            (
                (
                    "top = scores.max(axis=-1)",
                    "top = np.full(scores.shape[:-1], scores.max(), scores.dtype)",
                ),
            ),
            passes_run=True,
        ),
        Wrong(
            "no shift",
            "the maximum is returned but was never subtracted",
            (("np.exp(scores - top[..., None])", "np.exp(scores)"),),
        ),
        Wrong(
            "sixteen bits",
            "the weights are rounded to 16 bits before they are summed",
            (("np.exp(scores - top[..., None])",
              "np.exp(scores - top[..., None]).astype(np.float16).astype(query.dtype)"),),
            seen_in="ring-flash-attention#42",
        ),
    ),
)  # fmt: skip


EXERCISES = (ATTENTION_CHUNK_STATS,)
