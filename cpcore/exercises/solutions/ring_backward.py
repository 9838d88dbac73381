"""Solution of the exercise `ring_backward`."""

import numpy as np


def one_block(q, k, v, dout, lse, delta):
    """Return (dq, dk, dv) of one block without a mask."""
    scale = q.shape[1] ** -0.5
    probs = np.exp(q @ k.T * scale - lse[:, None])
    dscores = probs * (dout @ v.T - delta[:, None])
    return dscores @ k * scale, dscores.T @ q * scale, probs.T @ dout


def ring_backward(rank, cp_size, q, k, v, dout, lse, delta):
    """Run the backward pass of rank `rank` of a ring of cp_size, full attention.

    q, k, v, dout are this rank's shards (c, D) and (c, Dv), of lengths that may differ; lse (c,)
    and delta (c,) are those of its whole rows. `arrived = yield payload` hands a tuple of arrays to
    the next rank and brings that of the rank before; all ranks yield equally often. Return (dq, dk,
    dv) of this rank's own shard. A message holds at most one block and the gradient of it.
    """
    # >>> yours
    dq = np.zeros_like(q)
    block = k, v, np.zeros_like(k), np.zeros_like(v)
    for _ in range(cp_size):
        k_in, v_in, dk, dv = block
        share = one_block(q, k_in, v_in, dout, lse, delta)
        dq = dq + share[0]
        block = yield k_in, v_in, dk + share[1], dv + share[2]
    return dq, block[2], block[3]
    # <<<
