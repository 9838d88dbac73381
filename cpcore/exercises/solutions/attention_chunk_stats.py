"""Solution of the exercise `attention_chunk_stats`."""

import numpy as np


def attention_chunk_stats(query, key_chunk, value_chunk):
    """Summarize one chunk of keys as if it were the only one.

    query (…, Q, D), key_chunk (…, K, D) and value_chunk (…, K, Dv) hold floats, K is at least 1.
    Scores are query · key / √D. Return (output, sum, max): the numerator Σ exp(score − max) · value
    of shape (…, Q, Dv), not divided; the sum of the exponentials (…, Q); the largest score of each
    row (…, Q); all in the inputs' dtype.
    """
    # >>> yours
    scale = query.dtype.type(query.shape[-1] ** -0.5)
    scores = query * scale @ key_chunk.swapaxes(-1, -2)  # (…, Q, K)
    top = scores.max(axis=-1)
    weights = np.exp(scores - top[..., None])
    return weights @ value_chunk, weights.sum(axis=-1), top
    # <<<
