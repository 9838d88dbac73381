"""Exercise: the merge of two summaries."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.chunks import ChunkStats
from cpcore.exercises.bank.inputs import LN2, LN3, Array, random_stats, stats_of
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong

PARTS = ("output", "sum", "max")


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
        "That factor multiplies the side's sum and its output, then both are added. The factor "
        "has shape (…, Q), so the output needs it as factor[..., None].",
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

EXERCISES = (MERGE_CHUNK_STATS,)
