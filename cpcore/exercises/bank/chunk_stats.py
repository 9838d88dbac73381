"""Exercises 1 and 2: the summary of a chunk, and the merge of two summaries."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.chunks import ChunkStats
from cpcore.exercises.bank.inputs import LN2, LN3, Array, draw, one_row, random_stats, stats_of
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


def merge_by_rows(acc: ChunkStats, chunk: ChunkStats) -> tuple[Array, ...]:
    """Every row in plain Python."""
    output, total, top = (np.zeros_like(part) for part in acc)
    for row in np.ndindex(acc.max.shape):
        top[row] = max(acc.max[row], chunk.max[row])
        for side in (acc, chunk):
            weight = math.exp(side.max[row] - top[row])
            total[row] += weight * side.sum[row]
            output[row] += weight * side.output[row]
    return output, total, top


def _pairs() -> Iterator[Args]:
    yield stats_of([0], [2]), stats_of([LN2], [3])
    yield stats_of([LN3], [2]), stats_of([0], [3])
    for seed, rows in enumerate([(2,), (3,), (2, 2)]):
        yield random_stats(seed, rows, 2), random_stats(seed + 9, rows, 2)


def _far_apart() -> Iterator[Args]:
    yield stats_of([0], [2]), stats_of([800], [3])
    yield stats_of([800], [2]), stats_of([0], [3])
    yield stats_of([-800], [2]), stats_of([-801], [3])


MERGE_CHUNK_STATS = Exercise(
    name="merge_chunk_stats",
    title="Merge two summaries",
    level="core",
    minutes=15,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "Two sums that are relative to different maxima have different units. Which maximum do "
        "both sides have after the merge?",
        "The new maximum is the larger of the two. A side that was relative to its own maximum "
        "becomes relative to the new one by the factor exp(own maximum − new maximum).",
        "That factor multiplies the side's sum and its output, then both are added. The factor has "
        "shape (…, Q), so the output needs it as factor[..., None].",
    ),
    examples=(
        Example(
            "equal maxima", lambda: (stats_of([0, 0], [1, 3]), stats_of([0, 0, 0], [2, 4, 6]))
        ),
        Example(
            "the running side has the larger maximum",
            lambda: (stats_of([LN3], [4]), stats_of([0], [8])),
        ),
    ),
    claims=(
        Claim("Either side may have the larger maximum, row by row", _pairs),
        Claim("Maxima that lie 800 apart do not overflow", _far_apart, clean=True),
        Claim(
            "float32 in, float32 out",
            lambda: [
                tuple(
                    ChunkStats(*(x.astype("float32") for x in random_stats(s, (2,), 2)))
                    for s in (3, 4)
                )
            ],
        ),
    ),
    oracle=merge_by_rows,
    parts=PARTS,
    large=lambda: (random_stats(0, (512,), 64), random_stats(1, (512,), 64)),
    wrong=(
        Wrong(
            "as they are",
            "both sides are added as they are, although they are relative to different maxima",
            (
                ("np.exp(acc.max - top)", "np.ones_like(top)"),
                ("np.exp(chunk.max - top)", "np.ones_like(top)"),
            ),
        ),
        Wrong(
            "only the sum",
            "the sums are rescaled and the outputs are not",
            (("keep[..., None] * acc.output + add[..., None] * chunk.output",
              "acc.output + chunk.output"),),
        ),
        Wrong(
            "flipped sign",
            "the factor is exp(new − old), the inverse of the right one",
            (("acc.max - top", "top - acc.max"), ("chunk.max - top", "top - chunk.max")),
        ),
        Wrong(
            "running side only",
            "the new maximum is always that of the running side",
            (("np.maximum(acc.max, chunk.max)", "acc.max.copy()"),),
            passes_run=True,
        ),
        Wrong(
            "in place",
            "the running output is overwritten although someone else still reads it",
            (("output = keep[..., None] * acc.output + add[..., None] * chunk.output",
              "output = acc.output\n    output *= keep[..., None]\n"
              "    output += add[..., None] * chunk.output"),),
            seen_in="a published ring, run in float32",
        ),
        Wrong(
            "masses multiplied",
            "logarithms of the masses are added, which multiplies the masses",
            (("total = keep * acc.sum + add * chunk.sum", "total = acc.sum * chunk.sum"),),
            seen_in="ring-flash-attention#20",
        ),
    ),
)  # fmt: skip

EXERCISES = (ATTENTION_CHUNK_STATS, MERGE_CHUNK_STATS)
