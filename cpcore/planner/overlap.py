"""When a ring's transfer hides behind its compute: step times, and thresholds in tokens.

Owns the comparison of seconds: while a rank computes with one block, the next one arrives. Leaves
out whole plans (`plans`), and what no closed form knows: how a kernel's speed falls with its
shape, and launches.

Peaks are not reached. `flops_per_s` and `bytes_per_s` are what a program sustains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cpcore.checks import LARGEST, expected, truth, whole_number
from cpcore.planner.arguments import not_negative, positive, share
from cpcore.planner.shapes import ModelShape, known_model
from cpcore.planner.work import attention_flops, slowest_pairs


class Step(NamedTuple):
    """One ring step: what the busiest rank computes, and the transfer that runs beside it."""

    compute_s: float
    transfer_s: float

    @property
    def hidden(self) -> bool:
        """The transfer does not end later: it costs nothing."""
        return self.transfer_s <= self.compute_s or _equal(self.transfer_s, self.compute_s)

    @property
    def exposed_s(self) -> float:
        """Seconds in which ranks only wait for data."""
        return 0.0 if self.hidden else self.transfer_s - self.compute_s


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
    return _first_whole(whole_number("element_bytes", element_bytes, 1) / 2 * rate)


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
    return _first_whole(moved / 5 * rate)


def _equal(a: float, b: float) -> bool:
    """Equal but for rounding: 0.55 · 989e12 is not quite 543.95e12."""
    return math.isclose(a, b, rel_tol=1e-12)


def _first_whole(tokens: float) -> int:
    """The first whole number that is not below, at least 1; a miss by rounding counts as met."""
    return max(1, round(tokens) if _equal(tokens, round(tokens)) else math.ceil(tokens))


def _tokens_per_share(flops: float, bandwidth: float, group: int, visible: float) -> float:
    """F / (share · g · Bw)."""
    part = share("visible_share", visible) * whole_number("group", group, 1)
    speed = positive("flops_per_s", flops) / positive("bytes_per_s", bandwidth)
    if not speed / part < LARGEST:
        raise expected("bytes_per_s", "a link that some number of tokens can hide", bandwidth)
    return speed / part


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

    Raises: ValueError for speeds that are not above 0, a latency below 0, or uneven shards.
    """
    known_model(model)
    speed, link = positive("flops_per_s", flops_per_s), positive("bytes_per_s", bytes_per_s)
    start = not_negative("latency_s", latency_s)
    ranks = whole_number("cp_size", cp_size, 1)
    busiest = [slowest_pairs(layout, seq_len, ranks, step, causal=causal) for step in range(ranks)]
    block = int(seq_len) // ranks * model.kv_width
    home = block * whole_number("grad_bytes", grad_bytes, 1) if truth("backward", backward) else 0
    moved = start + (block * whole_number("element_bytes", element_bytes, 1) + home) / link
    sizes = model.q_heads, model.head_dim
    times = [attention_flops(pairs, *sizes, backward=backward) / speed for pairs in busiest]
    steps = [Step(compute, moved) for compute in times[:-1]] + [Step(times[-1], 0.0)]
    if backward and ranks > 1:
        steps.append(Step(0.0, start + home / link))
    return tuple(steps)
