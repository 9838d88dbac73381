"""Solution of the exercise `capped_chunk_stats`."""

import numpy as np


def capped_chunk_stats(query, key_chunk, value_chunk, visible, cap):
    """Summarize one chunk whose scores are softly capped.

    query (Q, D), key_chunk (K, D), value_chunk (K, Dv), visible (Q, K) bool; every row sees a key.
    A score s = query · key / √D becomes cap · tanh(s / cap), which stays between −cap and cap. A
    hidden key has weight exactly 0. Return (output, sum, max) over the capped scores.
    """
    # >>> yours
    scores = query @ key_chunk.T * query.shape[1] ** -0.5
    scores = np.where(visible, cap * np.tanh(scores / cap), -np.inf)
    top = scores.max(axis=1)
    weights = np.exp(scores - top[:, None])
    return weights @ value_chunk, weights.sum(axis=1), top
    # <<<
