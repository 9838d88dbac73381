"""Exercise: the neutral state, on either side of a merge."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.chunks import ChunkStats
from cpcore.exercises.bank.inputs import LN2, Array, random_stats, stats_of
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def merge_seen(acc: ChunkStats, chunk: ChunkStats) -> tuple[Array, ...]:
    """Every row in plain Python: sides that saw nothing are not even looked at."""
    output, total, top = (np.zeros_like(part) for part in acc)
    top[...] = -np.inf
    for row in np.ndindex(acc.max.shape):
        seen = [side for side in (acc, chunk) if side.sum[row] > 0]
        if seen:
            top[row] = max(side.max[row] for side in seen)
        for side in seen:
            weight = math.exp(side.max[row] - top[row])
            total[row] += weight * side.sum[row]
            output[row] += weight * side.output[row]
    return output, total, top


def nothing(rows: int, width: int, left: float = 0.0) -> ChunkStats:
    """A state that saw nothing; its output buffer holds `left`."""
    return ChunkStats(np.full((rows, width), left), np.zeros(rows), np.full(rows, -np.inf))


def _one_side() -> Iterator[Args]:
    yield nothing(1, 1), stats_of([0, LN2], [2, 3])
    yield stats_of([0, LN2], [2, 3]), nothing(1, 1)
    yield stats_of([LN2], [2]), stats_of([0], [8])


def _garbage() -> Iterator[Args]:
    for left in (99.0, math.nan, math.inf):
        yield nothing(1, 1, left), stats_of([0, LN2], [2, 3])
        yield stats_of([0, LN2], [2, 3]), nothing(1, 1, left)
        yield nothing(2, 1, left), nothing(2, 1)


def _row_by_row() -> Iterator[Args]:
    for first, second in (([0], [2]), ([0, 1], [1, 2]), ([2], [0])):
        acc, chunk = random_stats(1, (3,), 2), random_stats(2, (3,), 2)
        for state, rows in ((acc, first), (chunk, second)):
            for part, blank in zip(state, (math.nan, 0.0, -math.inf), strict=True):
                part[rows] = blank
        yield acc, chunk


def _very_low() -> Iterator[Args]:
    yield stats_of([-20000], [1]), nothing(1, 1)
    yield nothing(1, 1), stats_of([-20000, -20001], [1, 3])


MERGE_NEUTRAL = Exercise(
    name="merge_neutral",
    title="Sides that saw nothing",
    level="core",
    minutes=15,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "Where does NaN come from? Write down exp(own max − new max) for a side with max −inf, "
        "once beside a side that saw something and once beside another that did not.",
        "Never form −inf − (−inf): subtract 0 instead where the new maximum is −inf. Still return "
        "−inf as that row's maximum.",
        "A weight of 0 does not remove a NaN, since 0 · NaN is NaN. Select with `np.where` before "
        "you multiply.",
    ),
    examples=(
        Example("only the second side saw keys", lambda: (nothing(1, 1), stats_of([0, 0], [2, 4]))),
        Example("only the first side saw keys", lambda: (stats_of([LN2], [3]), nothing(1, 1))),
    ),
    claims=(
        Claim("A side that saw nothing changes nothing", _one_side, clean=True),
        Claim("Two sides that saw nothing stay neutral", lambda: [(nothing(1, 1), nothing(1, 1))],
              clean=True),
        Claim("What the buffer of an unseen row holds reaches nothing", _garbage, clean=True),
        Claim("Every row decides for itself", _row_by_row, clean=True),
        Claim("Scores of −20000 are real scores", _very_low, clean=True),
    ),
    oracle=merge_seen,
    parts=("output", "sum", "max"),
    large=lambda: (random_stats(0, (512,), 64), random_stats(1, (512,), 64)),
    wrong=(
        Wrong(
            "careless factor",
            "−inf − (−inf) is formed where both sides saw nothing",
            (("np.where(np.isneginf(top), 0, top)", "top"),),
            passes_run=True,
            seen_in="vllm#28181",
        ),
        Wrong(
            "multiplied away",
            "an unseen side is multiplied by 0 instead of being left out",
            (("np.where(unseen, 0, side.output)", "side.output"),),
            passes_run=True,
            seen_in="vllm#49294",
        ),
        Wrong(
            "large negative number",
            "a large negative number stands for −inf and beats a real score",
            (("np.where(np.isneginf(top), 0, top)", "np.maximum(top, -1e4)"),),
            passes_run=True,
            seen_in="flashinfer#4267",
        ),
        Wrong(
            "maximum zero",
            "a row that saw nothing reports the maximum 0, as if it had seen a score of 0",
            (("return output, total, top", "return output, total, safe"),),
            passes_run=True,
            seen_in="pytorch#134650",
        ),
        Wrong(
            "all or nothing",
            "one row that saw something decides for the whole array",
            (
                (
                    "    top = np.maximum",
                    "    if not acc.sum.all():\n        return tuple(chunk)\n    top = np.maximum",
                ),
            ),
            passes_run=True,
            seen_in="vllm#27491",
        ),
    ),
)  # fmt: skip

EXERCISES = (MERGE_NEUTRAL,)
