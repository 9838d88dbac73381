"""When a ring's transfer hides behind its compute: step times, and thresholds in tokens.

Owns the comparison of seconds: while a rank computes with one block, the next one arrives. Leaves
out whole plans (`plans`), and what no closed form knows: how a kernel's speed falls with its
shape, and launches.

Peaks are not reached. `flops_per_s` and `bytes_per_s` are what a program sustains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.planner.shapes import ModelShape, positive
from cpcore.planner.work import attention_flops, slowest_pairs


class Step(NamedTuple):
    """One ring step: what the busiest rank computes, and the transfer that runs beside it."""

    compute_s: float
    transfer_s: float

    @property
    def hidden(self) -> bool:
        """The transfer ends first: it costs nothing."""
        return self.transfer_s <= self.compute_s

    @property
    def exposed_s(self) -> float:
        """Seconds in which ranks only wait for data."""
        return max(0.0, self.transfer_s - self.compute_s)


def smallest_hidden_chunk(
    flops_per_s: float,
    bytes_per_s: float,
    *,
    group: int = 1,
    element_bytes: int = 2,
    visible_share: float = 1.0,
) -> int:
    """The fewest tokens a rank must own for a forward block's transfer to hide.

    Compute of a block ≥ its transfer: 4·c²·d·share / F ≥ 2·c·(d/g)·bytes / Bw, so
    c ≥ bytes·F / (2·share·g·Bw). The width d cancels. share is the part of a block that is
    visible: 1 for a full block, 1/2 for a balanced causal one, which doubles the chunk.

    Raises: ValueError for numbers that are not above 0, or a share above 1.

    >>> smallest_hidden_chunk(989e12, 450e9), smallest_hidden_chunk(989e12, 50e9)
    (2198, 19780)
    """
    rate = _tokens_per_share(flops_per_s, bytes_per_s, group, visible_share)
    return math.ceil(whole_number("element_bytes", element_bytes, 1) / 2 * rate)


def smallest_hidden_chunk_backward(
    flops_per_s: float,
    bytes_per_s: float,
    *,
    group: int = 1,
    element_bytes: int = 2,
    grad_bytes: int = 2,
    visible_share: float = 1.0,
) -> int:
    """The same for a backward block, when dk and dv travel along with key and value.

    10·c²·d·share / F ≥ 2·c·(d/g)·(bytes + grad bytes) / Bw: two and a half times the work against
    two to three times the bytes. 16-bit gradients make it easier than forward, float32 harder.

    Raises: ValueError as `smallest_hidden_chunk`.
    """
    rate = _tokens_per_share(flops_per_s, bytes_per_s, group, visible_share)
    moved = whole_number("element_bytes", element_bytes, 1)
    moved += whole_number("grad_bytes", grad_bytes, 1)
    return math.ceil(moved / 5 * rate)


def _tokens_per_share(flops: float, bandwidth: float, group: int, share: float) -> float:
    """F / (share · g · Bw)."""
    if positive("visible_share", share) > 1:
        raise expected("visible_share", "at most 1", repr(share))
    speed = positive("flops_per_s", flops) / positive("bytes_per_s", bandwidth)
    return speed / (share * whole_number("group", group, 1))


def ring_steps(
    model: ModelShape,
    seq_len: int,
    cp_size: int,
    *,
    flops_per_s: float,
    bytes_per_s: float,
    layout: str = "zigzag",
    causal: bool = True,
    backward: bool = False,
    element_bytes: int = 2,
    grad_bytes: int = 2,
    latency_s: float = 0.0,
) -> tuple[Step, ...]:
    """Every step of one layer's ring, seq_len a multiple of 2R; the last one sends nothing.

    Backward, the gradients of a block travel beside it and take their last hop after the last
    step; that hop stands as a step without compute.

    Raises: ValueError for speeds that are not above 0, or shards that are not even.
    """
    positive("flops_per_s", flops_per_s)
    block = seq_len // whole_number("cp_size", cp_size, 1) * model.kv_width
    returned = block * grad_bytes if backward else 0
    moved = latency_s + (block * element_bytes + returned) / positive("bytes_per_s", bytes_per_s)
    steps = []
    for step in range(cp_size):
        pairs = slowest_pairs(layout, seq_len, cp_size, step, causal=causal)
        flops = attention_flops(pairs, model.q_heads, model.head_dim, backward=backward)
        steps.append(Step(flops / flops_per_s, moved if step < cp_size - 1 else 0.0))
    if backward and cp_size > 1:
        steps.append(Step(0.0, latency_s + returned / bytes_per_s))
    return tuple(steps)
