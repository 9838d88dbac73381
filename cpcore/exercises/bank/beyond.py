"""Exercises beyond the chapters: an attention sink, and softly capped scores."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.chunks import ChunkStats
from cpcore.exercises.bank.inputs import LN2, LN3, Array, draw, random_stats, stats_of
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def sink_by_rows(parts: list[ChunkStats], sink: float, dout: Array) -> tuple[Array, float]:
    """Every row in plain Python; the gradient is that of numerator over (mass + sink's mass)."""
    out, slope = np.zeros_like(parts[0].output), 0.0
    for row in range(len(out)):
        top = max(sink, *(float(part.max[row]) for part in parts))
        weights = [math.exp(part.max[row] - top) for part in parts]
        numerator = sum(w * p.output[row] for w, p in zip(weights, parts, strict=True))
        extra = math.exp(sink - top)
        mass = extra + math.fsum(w * p.sum[row] for w, p in zip(weights, parts, strict=True))
        out[row] = numerator / mass
        slope -= math.fsum(dout[row] * numerator) * extra / mass**2
    return out, slope


def _one_chunk() -> Iterator[Args]:
    yield [stats_of([0, 0], [1, 1])], 0.0, np.ones((1, 1))
    yield [random_stats(1, (2,), 2)], 0.5, draw(1, (2, 2))[0]


def _splits() -> Iterator[Args]:
    yield [stats_of([0], [1]), stats_of([0], [1])], 0.0, np.ones((1, 1))
    yield [random_stats(s, (2,), 2) for s in (2, 3, 4)], -1.0, draw(2, (2, 2))[0]


def _extreme_sinks() -> Iterator[Args]:
    for sink in (800.0, -800.0):
        yield [stats_of([0, LN2], [1, 4])], sink, np.ones((1, 1))
    yield [stats_of([800, 801], [1, 4])], 800.0, np.ones((1, 1))


SINK_ATTENTION = Exercise(
    name="sink_attention",
    title="An attention sink",
    level="staff",
    minutes=20,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "A sink is a key with a given score and no value. What would its summary be, as output, "
        "sum and max, if it were a chunk of its own?",
        "Its summary is output 0, sum 1, max = sink. It belongs to the row, not to a chunk, so it "
        "is merged once, whatever the split is.",
        "The gradient by a score is P · (dP − delta). The sink has no value, so its dP is 0; "
        "delta is the row sum of dout · out, and P = exp(sink − lse). All rows share one sink.",
    ),
    examples=(
        Example("one chunk of two equal keys",
                lambda: ([stats_of([0, 0], [3, 3])], 0.0, np.ones((1, 1)))),
        Example("one chunk, a sink of ln 3",
                lambda: ([stats_of([LN2], [5])], LN3, np.ones((1, 1)))),
    ),
    claims=(
        Claim("One chunk, several rows", _one_chunk),
        Claim("The split does not matter: the sink counts once", _splits),
        Claim("A sink of any size neither overflows nor vanishes", _extreme_sinks, clean=True),
    ),
    oracle=sink_by_rows,
    parts=("out", "dsink"),
    wrong=(
        Wrong(
            "once per chunk",
            "every chunk counts the sink again",
            (("acc = cpcore.merge_chunk_stats(acc, part)",
              "acc = cpcore.merge_chunk_stats(acc, part)\n        if part is not first:\n"
              "            zero = np.zeros_like(first.output)\n"
              "            acc = cpcore.merge_chunk_stats(acc,"
              " cpcore.ChunkStats(zero, np.ones_like(first.sum), top))"),),
            passes_run=True,
            seen_in="rocm-libraries#12227",
        ),
        Wrong(
            "relative to zero",
            "the sink's mass is exp(sink) relative to 0, which overflows",
            (("ChunkStats(np.zeros_like(first.output), np.ones_like(first.sum), top)",
              "ChunkStats(np.zeros_like(first.output), np.exp(top), np.zeros_like(top))"),),
            passes_run=True,
            seen_in="ring-flash-attention#30",
        ),
        Wrong(
            "two units",
            "exp(sink) is added to a sum that is relative to the maximum",
            (("    out, lse = cpcore.finalize(acc)",
              "    acc = parts[0]\n"
              "    for part in parts[1:]:\n        acc = cpcore.merge_chunk_stats(acc, part)\n"
              "    with np.errstate(all='ignore'):\n"
              "        acc = acc._replace(sum=acc.sum + np.exp(sink))\n"
              "    out, lse = cpcore.finalize(acc)\n    lse = np.log(acc.sum)"),),
        ),
        Wrong(
            "no gradient through the mass",
            "a sink without a value is taken to have no gradient",
            (("float(-(weight * delta).sum())", "0.0"),),
        ),
        Wrong(
            "sink with a value",
            "the sink pulls the output toward 1 instead of 0",
            (("np.zeros_like(first.output)", "np.ones_like(first.output)"),),
        ),
    ),
)  # fmt: skip


def capped_by_pairs(
    query: Array, key_chunk: Array, value_chunk: Array, visible: Array, cap: float
) -> tuple[Array, ...]:
    """Pair by pair."""
    rows = len(query)
    output, total, top = np.zeros((rows, value_chunk.shape[1])), np.zeros(rows), np.zeros(rows)
    for i in range(rows):
        scores = {
            j: cap * math.tanh(math.fsum(query[i] * key_chunk[j]) / math.sqrt(len(query[i])) / cap)
            for j in np.flatnonzero(visible[i])
        }
        top[i] = max(scores.values())
        for j, score in scores.items():
            total[i] += math.exp(score - top[i])
            output[i] += math.exp(score - top[i]) * value_chunk[j]
    return output, total, top


def capped(seed: int, rows: int, keys: int, cap: float, hidden: int = 0) -> Args:
    """Random queries and keys; each row does not see its last `hidden` keys."""
    arrays = draw(seed, (rows, 4), (keys, 4), (keys, 2))
    visible = np.ones((rows, keys), bool)
    visible[:, keys - hidden :] = False
    return 3 * arrays[0], *arrays[1:], visible, cap


CAPPED_CHUNK_STATS = Exercise(
    name="capped_chunk_stats",
    title="Softly capped scores",
    level="core",
    minutes=10,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "The cap changes each score on its own, so summaries and merges work as before. At which "
        "point between product and exponential does it belong?",
        "First scale, then cap, then hide, then the maximum. What would the cap make of a hidden "
        "score of −inf if it came after?",
        "tanh(−inf) is −1, so a score hidden too early becomes −cap: a small weight, but not 0. "
        "Set hidden scores to −inf after the cap.",
    ),
    examples=(
        Example("everything is visible", lambda: capped(1, 1, 2, 2.0)),
        Example("a narrow cap", lambda: capped(2, 2, 3, 0.5)),
    ),
    claims=(
        Claim("Any cap, any number of keys", lambda: [capped(s, 2, s, 5.0) for s in (3, 4)]),
        Claim("A hidden key has weight exactly 0", lambda: [capped(5, 1, 3, 1.0, hidden=1),
                                                            capped(6, 2, 4, 3.0, hidden=2)]),
        Claim("Scores far above the cap do not overflow",
              lambda: [(np.full((1, 1), 900.0), np.array([[1.0], [-1.0]]), np.ones((2, 1)),
                        np.ones((1, 2), bool), 30.0)]),
    ),
    oracle=capped_by_pairs,
    parts=("output", "sum", "max"),
    large=lambda: capped(7, 64, 256, 20.0, hidden=64),
    wrong=(
        Wrong(
            "hidden before the cap",
            "hidden scores are capped to −cap and keep a weight",
            (("np.where(visible, cap * np.tanh(scores / cap), -np.inf)",
              "cap * np.tanh(np.where(visible, scores, -np.inf) / cap)"),),
            passes_run=True,
            seen_in="flashinfer#4267",
        ),
        Wrong(
            "clipped",
            "the scores are cut off at the cap instead of bending toward it",
            (("cap * np.tanh(scores / cap)", "np.clip(scores, -cap, cap)"),),
        ),
        Wrong(
            "not divided",
            "the scores are not divided by the cap inside the tanh",
            (("np.tanh(scores / cap)", "np.tanh(scores)"),),
        ),
        Wrong(
            "mask forgotten",
            "hidden keys are treated like all others",
            (("np.where(visible, cap * np.tanh(scores / cap), -np.inf)",
              "cap * np.tanh(scores / cap)"),),
            passes_run=True,
            seen_in="axolotl#3608",
        ),
    ),
)  # fmt: skip

EXERCISES = (SINK_ATTENTION, CAPPED_CHUNK_STATS)
