"""Solution of the capstone `causal_ring`."""

import numpy as np


def causal_ring(rank, cp_size, q, k, v, dout, positions):
    """Run rank `rank` of cp_size in causal ring attention, forward and backward.

    q, k (c, D) and v, dout (c, Dv) are this rank's shards; positions lists the global positions of
    every rank, in the order in which it stores them; ranks may be unequal or empty. `arrived =
    yield payload` hands a tuple of arrays to the next rank and brings that of the rank before; all
    ranks yield equally often. A message holds at most one block and its gradient. Return (out, dq,
    dk, dv) of this rank's shard. At most 60 lines; scores are q · k / √D.
    """
    # >>> yours
    scale, here = q.shape[1] ** -0.5, positions[rank]

    def scores_with(k_in, step):
        there = positions[(rank - step) % cp_size]
        visible = here[:, None] >= there[None, :]
        return np.where(visible, q @ k_in.T * scale, -np.inf)  # (c, K)

    top, total = np.full(len(q), -np.inf), np.zeros(len(q))
    out = np.zeros_like(dout)
    block = k, v
    for step in range(cp_size):
        scores = scores_with(block[0], step)
        # The own block comes first, so every row has seen itself and `higher` is finite.
        higher = np.maximum(top, scores.max(axis=1, initial=-np.inf))
        keep, weights = np.exp(top - higher), np.exp(scores - higher[:, None])
        total = keep * total + weights.sum(axis=1)
        out = keep[:, None] * out + weights @ block[1]
        top = higher
        if step < cp_size - 1:
            block = yield block
    out = out / total[:, None]
    lse, delta = top + np.log(total), (dout * out).sum(axis=1)

    dq = np.zeros_like(q)
    block = k, v, np.zeros_like(k), np.zeros_like(v)
    for step in range(cp_size):
        k_in, v_in, dk, dv = block
        probs = np.exp(scores_with(k_in, step) - lse[:, None])
        dscores = probs * (dout @ v_in.T - delta[:, None])
        dq = dq + dscores @ k_in * scale
        dk = dk + dscores.T @ q * scale
        dv = dv + probs.T @ dout
        block = yield k_in, v_in, dk, dv
    return out, dq, block[2], block[3]
    # <<<
