"""What a simulated run returns, and how the ranks' results become one.

Owns the last cast and the way back to logical order. Leaves out every computation.
"""

from typing import NamedTuple

import numpy as np

from cpcore.checks import Array, expected, narrow
from cpcore.layouts import Layout
from cpcore.schedule import Event


class RankResult(NamedTuple):
    """What one rank ends with, in its physical order; gradients are None without dout."""

    output: Array
    lse: Array
    dq: Array | None
    dk: Array | None
    dv: Array | None


class Run(NamedTuple):
    """Results in logical order, the events that were played, and each rank's own results."""

    output: Array
    lse: Array
    dq: Array | None
    dk: Array | None
    dv: Array | None
    events: list[Event]
    per_rank: list[RankResult]


def collect(
    results: list[tuple[Array, Array]],
    gradients: list[tuple[Array, ...]],
    arrays: tuple[Array, Array, Array, Array | None],
    layout: Layout,
    events: list[Event],
) -> Run:
    """The run of ranks with these (output, lse) and (dq, dk, dv), the latter () without dout.

    Everything is cast once, here, to the dtype of the array it belongs to; lse is not cast.

    Raises: ValueError for a result that its dtype cannot hold.
    """
    q, k, v, _ = arrays
    per_rank = []
    owners = (("query", q), ("key", k), ("value", v))
    for (output, lse), grads in zip(results, gradients, strict=True):
        if not all(np.isfinite(g).all() for g in grads):
            raise expected("dout", f"gradients that fit {grads[0].dtype}", "an overflow")
        cast = [narrow(name, g, x.dtype) for g, (name, x) in zip(grads, owners, strict=False)]
        per_rank.append(RankResult(narrow("query", output, q.dtype), lse, *(cast or (None,) * 3)))
    output = layout.unshard([result.output for result in per_rank])
    lse = layout.unshard([result.lse for result in per_rank], axis=-1)
    dq, dk, dv = (
        None if parts[0] is None else layout.unshard(parts)
        for parts in zip(*(result[2:] for result in per_rank), strict=True)
    )
    return Run(output, lse, dq, dk, dv, events, per_rank)
