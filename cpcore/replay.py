"""The backward pass over the same events: probabilities replayed, gradients sent home.

Owns dQ, dK and dV of one block, and the return of each owner's sum. The forward pass saves its
inputs, its output and one lse per row; no probability is stored.
"""

from collections.abc import Iterable

import numpy as np

from cpcore.checks import Array
from cpcore.chunks import finite_or_zero, visible_scores
from cpcore.exchange import Block, Mailbox, Parcel, by_step, piece
from cpcore.grouping import per_kv_head
from cpcore.schedule import Event


def block_gradients(
    q: Array,
    k: Array,
    v: Array,
    dout: Array,
    lse: Array,
    delta: Array,
    visible: Array | None,
    scale: float,
    keep: Array | None = None,
) -> tuple[Array, Array, Array]:
    """What one block of keys adds to dq, and what these queries add to its dk and dv.

    exp(scores - lse) is this block's part of the whole row's softmax, whichever blocks came before.
    delta = rowsum(dout · out) is the row's sum of P ∘ dP over *all* keys: with it, one block can
    apply the softmax Jacobian without the others.

    Shapes: q (…, Hq, Q, D), k (…, Hkv, K, D), v (…, Hkv, K, Dv), dout (…, Hq, Q, Dv); lse and delta
        (…, Hq, Q); visible and keep broadcast to (…, Hq, Q, K). Results as q, k and v.
    Source: Dao et al. 2022 (arXiv:2205.14135), algorithm 4.
    """
    scores = visible_scores(q, k, visible, scale, q.dtype)
    dout_rows, q_rows = per_kv_head(dout, k), per_kv_head(q, k)  # (…, Hkv, group·Q, ·)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        scores -= finite_or_zero(lse)[..., None]
        probs = np.exp(scores, out=scores)  # 0 in a row that saw nothing
        dprobs = (dout_rows @ v.swapaxes(-1, -2)).reshape(probs.shape)
        dropped = probs
        if keep is not None:
            dprobs, dropped = dprobs * keep, probs * keep
        dscores = dprobs
        dscores -= delta[..., None]
        dscores *= probs
        dscore_rows = per_kv_head(dscores, k)
        dq = (dscore_rows @ k).reshape(q.shape) * q.dtype.type(scale)
        dk = dscore_rows.swapaxes(-1, -2) @ q_rows * q.dtype.type(scale)
        dv = per_kv_head(dropped, k).swapaxes(-1, -2) @ dout_rows
    return dq, dk, dv


@np.errstate(over="ignore", invalid="ignore")  # `results` refuses what overflowed
def return_gradients(
    events: Iterable[Event],
    shares: list[list[Block]],
    lost: tuple[int, int] | None = None,
) -> None:
    """Play the return: afterwards shares[r][r] is the sum over all ranks for rank r's own keys.

    A rank sends what it holds for an owner and keeps nothing of it; what arrives is added to what
    it holds for that owner. `lost` = (rank, owner): that rank's message for it arrives as 0.

    Shapes: shares[r][o] = (dk, dv) that rank r's queries add for owner o, (…, c, ·); changed.
    """
    mail = Mailbox()
    for step in by_step(events):
        for event in step:
            held = piece(shares[event.rank][event.owner], event.key_start, event.key_stop)
            dropped = (event.rank, event.owner) == lost
            sent = tuple(np.zeros_like(x) if dropped else x.copy() for x in held)
            mail.post(event, Parcel(event.owner, event.key_start, event.key_stop, sent))
            for array in held:
                array[...] = 0
        for event in step:
            parcel = mail.take(event)
            if parcel is not None:
                mine = piece(shares[event.rank][parcel.owner], parcel.start, parcel.stop)
                for array, arrived in zip(mine, parcel.arrays, strict=True):
                    array += arrived
    mail.close()
