"""Exercise: dropout that replays."""

import math

import numpy as np

from cpcore.exercises.bank.inputs import LN3, Array, draw, one_row
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong

WORD = 2**32


def _mixed(x: int) -> int:
    """The hash in Python's own integers."""
    x = (x + 0x9E3779B9) % WORD
    x = (x ^ (x >> 16)) * 0x85EBCA6B % WORD
    x = (x ^ (x >> 13)) * 0xC2B2AE35 % WORD
    return x ^ (x >> 16)


def dropped_by_pairs(
    query: Array, key_chunk: Array, value_chunk: Array, q_pos: Array, k_pos: Array, rate: float,
    seed: int,
) -> tuple[Array, ...]:  # fmt: skip
    """Pair by pair."""
    rows = len(query)
    output, total, top = np.zeros((rows, value_chunk.shape[1])), np.zeros(rows), np.zeros(rows)
    for row, i in enumerate(q_pos):
        scores = [math.fsum(query[row] * k) / math.sqrt(query.shape[1]) for k in key_chunk]
        top[row] = max(scores)
        for column, j in enumerate(k_pos):
            weight = math.exp(scores[column] - top[row])
            total[row] += weight
            if _mixed(_mixed(_mixed(seed) ^ int(i)) ^ int(j)) >= rate * WORD:
                output[row] += weight / (1 - rate) * value_chunk[column]
    return output, total, top


def chunk_at(seed: int, q_pos: list[int], k_pos: list[int], rate: float = 0.5) -> Args:
    """Random queries and keys at these positions."""
    rows, keys = len(q_pos), len(k_pos)
    arrays = draw(seed, (rows, 3), (keys, 3), (keys, 2))
    return *arrays, np.array(q_pos), np.array(k_pos), rate, seed


DROPOUT_CHUNK_STATS = Exercise(
    name="dropout_chunk_stats",
    title="Dropout that replays",
    level="senior",
    minutes=20,
    chapter="07_training_step.ipynb",
    hints=(
        "Everything but one line is the summary of a chunk. What does dropout change: the scores, "
        "the sum, or only what is multiplied with the values?",
        "The hash of a pair needs no loop: a column of query positions and a row of key positions "
        "broadcast to (Q, K). Cast positions to np.uint32 before the exclusive or.",
        "Multiply the weights by the boolean `kept` and by 1 / (1 − rate) for the output, and "
        "take max and sum from the weights as they were.",
    ),
    examples=(
        Example("rate 0 drops nothing",
                lambda: (*one_row([0, LN3], [0, 4]), np.arange(1), np.arange(2), 0.0, 1)),
        Example("half of four keys", lambda: chunk_at(5, [0, 1], [0, 1, 2, 3])),
    ),
    claims=(
        Claim("Shards far from the start drop what global positions say",
              lambda: [chunk_at(1, [4, 5], [2, 3]), chunk_at(2, [9, 1], [0, 7, 8])]),
        Claim("Any rate and seed",
              lambda: [chunk_at(s, [0, 1], [0, 1, 2], r) for s, r in ((3, 0.1), (4, 0.7))]),
        Claim("Sum and max do not know of dropout",
              lambda: [(*one_row([0, 1], [2, 4]), np.arange(1), np.arange(2), 0.9, s)
                       for s in range(4)]),
    ),
    oracle=dropped_by_pairs,
    parts=("output", "sum", "max"),
    large=lambda: chunk_at(6, list(range(64)), list(range(64, 192))),
    wrong=(
        Wrong(
            "local indices",
            "the mask depends on places within the shard, so another split drops other pairs",
            (("q_pos.astype(np.uint32)", "np.arange(len(q_pos)).astype(np.uint32)"),
             ("k_pos.astype(np.uint32)", "np.arange(len(k_pos)).astype(np.uint32)")),
            passes_run=True,
            seen_in="ring-flash-attention#36",
        ),
        Wrong(
            "dropped denominator",
            "the sum loses the dropped weights as well",
            (("weights.sum(axis=1), top", "kept.sum(axis=1), top"),),
        ),
        Wrong(
            "dropped denominator, not rescaled",
            "the sum counts only the kept weights",
            (("weights.sum(axis=1), top", "(kept * (1 - rate)).sum(axis=1), top"),),
        ),
        Wrong(
            "not rescaled",
            "the kept weights are not multiplied by 1 / (1 − rate)",
            ((" / (1 - rate)", ""),),
        ),
        Wrong(
            "fresh draw",
            "the mask comes from a random generator that starts anew in every call",
            (("(state >= rate * 2**32)",
              "(np.random.default_rng(seed).random(weights.shape) >= rate)"),),
            seen_in="ring-flash-attention#36",
        ),
        Wrong(
            "keeps what it should drop",
            "the comparison is the wrong way round",
            (("state >= rate", "state < rate"),),
        ),
    ),
)  # fmt: skip


EXERCISES = (DROPOUT_CHUNK_STATS,)
