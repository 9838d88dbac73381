"""Exercises: the merge of (output, lse) pairs, and merging in a tree."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cpcore.chunks import merge_chunk_stats
from cpcore.exercises.bank.inputs import LN2, LN3, Array, draw, random_stats, stats_of
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def merge_masses(out_a: Array, lse_a: Array, out_b: Array, lse_b: Array) -> tuple[Array, Array]:
    """Every row in plain Python: masses relative to the larger one, and their weighted mean."""
    out, lse = np.zeros_like(out_a), np.zeros_like(lse_a)
    for row in np.ndindex(lse.shape):
        top = max(float(lse_a[row]), float(lse_b[row]))
        a, b = math.exp(lse_a[row] - top), math.exp(lse_b[row] - top)
        out[row] = (a * out_a[row] + b * out_b[row]) / (a + b)
        lse[row] = top + math.log(a + b)
    return out, lse


def pair(a: float, lse_a: float, b: float, lse_b: float) -> Args:
    """One row of width 1 on each side."""
    shapes = 2 * [(1, 1), (1,)]
    numbers = zip((a, lse_a, b, lse_b), shapes, strict=True)
    return tuple(np.full(shape, float(x)) for x, shape in numbers)


def _random_pairs() -> Iterator[Args]:
    for seed, rows in enumerate([(1,), (3,), (2, 2)]):
        out_a, out_b = draw(seed, (*rows, 2), (*rows, 2))
        yield out_a, 3 * draw(seed + 7, rows)[0], out_b, 3 * draw(seed + 8, rows)[0]


def _far_apart() -> Iterator[Args]:
    for low, high in ((0.0, 1000.0), (-1000.0, 0.0), (999.0, 1000.0)):
        yield pair(1, low, 3, high)
        yield pair(1, high, 3, low)


MERGE_PAIRS = Exercise(
    name="merge_pairs",
    title="Merge finished answers",
    level="core",
    minutes=10,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "exp(lse) is the mass of a side: what its softmax divided by. What is the mass of both "
        "sides together, and what is its logarithm?",
        "The new answer is a weighted mean of the two. The weight of a side is its share of the "
        "whole mass, and the shares add up to 1.",
        "A share is exp(own lse − new lse), which cannot overflow. The new lse is log(exp a + exp "
        "b), and numpy has one function for it that does not overflow either.",
    ),
    examples=(
        Example("masses 3 and 1", lambda: pair(4, LN3, 8, 0)),
        Example("masses 1 and 2", lambda: pair(3, 0, 6, LN2)),
    ),
    claims=(
        Claim("Masses add, row by row", _random_pairs),
        Claim("Masses that differ by a factor of e**1000 do not overflow", _far_apart, clean=True),
        Claim(
            "A large lse keeps its digits",
            lambda: [pair(0, 1000.3, 1, 1000.3), pair(0, 2000.7, 1, 2001.2)],
        ),
        Claim(
            "float32 in, float32 out",
            lambda: [tuple(x.astype(np.float32) for x in pair(1, 0, 3, LN3))],
        ),
    ),
    oracle=merge_masses,
    parts=("out", "lse"),
    large=lambda: (*draw(1, (512, 64), (512,)), *draw(2, (512, 64), (512,))),
    wrong=(
        Wrong(
            "added",
            "the two lse are added, which multiplies the masses",
            (("np.logaddexp(lse_a, lse_b)", "lse_a + lse_b"),),
            seen_in="ring-flash-attention#20",
        ),
        Wrong(
            "mean",
            "both answers get half of the say, whatever their masses are",
            (("return share_a * out_a + share_b * out_b", "return (out_a + out_b) / 2"),),
            seen_in="gpu-mode/ring-attention#6",
        ),
        Wrong(
            "textbook form",
            "lse is a + log(1 + exp(b − a)), whose exponential overflows",
            (("np.logaddexp(lse_a, lse_b)", "lse_a + np.log1p(np.exp(lse_b - lse_a))"),),
            passes_run=True,
            seen_in="ring-flash-attention#30",
        ),
        Wrong(
            "lse in 16 bits",
            "the lse is stored in 16 bits, whose steps near 1000 are 0.5",
            (("np.logaddexp(lse_a, lse_b)",
              "np.logaddexp(lse_a, lse_b).astype(np.float16).astype(lse_a.dtype)"),),
        ),
        Wrong(
            "larger mass only",
            "the smaller mass is dropped from the lse",
            (("np.logaddexp(", "np.maximum("),),
        ),
    ),
)  # fmt: skip


def brackets(left: Any, right: Any) -> str:
    """A merge that writes down what was merged with what."""
    return f"({left} {right})"


def balanced(parts: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """By recursion: the left subtree holds the largest power of two below the number of parts."""
    if len(parts) == 1:
        return parts[0]
    left = 1
    while 2 * left < len(parts):
        left *= 2
    return merge(balanced(parts[:left], merge), balanced(parts[left:], merge))


def _letters(*counts: int) -> Callable[[], list[Args]]:
    return lambda: [(list("abcdefghijklmnopqrstuvwx"[:n]), brackets) for n in counts]


MERGE_TREE = Exercise(
    name="merge_tree",
    title="Merge in a tree",
    level="warm-up",
    minutes=10,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "A chain over n summaries waits n − 1 times. In a tree all merges of one round can happen "
        "at once. How many summaries are left after one round?",
        "Work round by round: from the current list make the list of the next round, until it has "
        "one entry. Mind a list of odd length.",
        "Slices of two, starting at every other index, hold a pair or a single last entry. A "
        "slice of two is merged, a slice of one is passed on.",
    ),
    examples=(
        Example("two summaries", lambda: (["a", "b"], brackets)),
        Example("three summaries", lambda: (["a", "b", "c"], brackets)),
    ),
    claims=(
        Claim("Four summaries take two rounds, not three", _letters(4)),
        Claim("A single summary is returned as it is", _letters(1)),
        Claim("Neighbors are merged, in order, for any number of summaries", _letters(5, 6, 7, 11)),
        Claim(
            "It merges the summaries of chunks",
            lambda: [
                ([stats_of([0], [i]) for i in range(3)], merge_chunk_stats),
                ([random_stats(i, (2,), 1) for i in range(5)], merge_chunk_stats),
            ],
        ),
    ),
    oracle=balanced,
    wrong=(
        Wrong(
            "chain",
            "the summaries are merged one after the other: right, but in n − 1 rounds",
            (("level = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]",
              "level = [merge(level[0], level[1]), *level[2:]]"),),
            passes_run=True,
        ),
        Wrong(
            "odd one lost",
            "a summary without a neighbor is dropped",
            (("merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs",
              "merge(*pair) for pair in pairs if len(pair) == 2"),),
        ),
        Wrong(
            "single one in a list",
            "a single summary takes another path and comes back in another form",
            (("    level = list(parts)",
              "    if len(parts) == 1:\n        return parts\n    level = list(parts)"),),
            passes_run=True,
            seen_in="a helper of vLLM",
        ),
        Wrong(
            "list emptied",
            "the caller's own list is emptied on the way",
            (("level = list(parts)", "level = list(parts)\n    parts.clear()"),),
        ),
    ),
)  # fmt: skip

EXERCISES = (MERGE_PAIRS, MERGE_TREE)
