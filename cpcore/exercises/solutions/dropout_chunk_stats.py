"""Solution of the exercise `dropout_chunk_stats`."""

import numpy as np


def mix(x):
    """Spread every bit of 32-bit words over the word."""
    with np.errstate(over="ignore"):
        x = np.asarray(x, np.uint32) + np.uint32(0x9E3779B9)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return x ^ (x >> np.uint32(16))


def dropout_chunk_stats(query, key_chunk, value_chunk, q_pos, k_pos, rate, seed):
    """Summarize one chunk under dropout that every rank and every replay can repeat.

    query (Q, D), key_chunk (K, D), value_chunk (K, Dv); q_pos (Q,) and k_pos (K,) are global
    positions. A query at i keeps the key at j if mix(mix(mix(seed) ^ i) ^ j) ≥ rate · 2**32, and
    its probability is multiplied by 1 / (1 − rate). Return (output, sum, max) as without dropout,
    except that the output is that of the probabilities after dropout.
    """
    # >>> yours
    scores = query @ key_chunk.T * query.shape[1] ** -0.5
    top = scores.max(axis=1)
    weights = np.exp(scores - top[:, None])
    state = mix(mix(seed) ^ q_pos.astype(np.uint32)[:, None])
    state = mix(state ^ k_pos.astype(np.uint32)[None, :])  # (Q, K)
    kept = weights * (state >= rate * 2**32) / (1 - rate)
    return kept @ value_chunk, weights.sum(axis=1), top
    # <<<
