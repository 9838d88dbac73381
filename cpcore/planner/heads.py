"""All-to-all by heads, and its mix with a ring: traffic in closed form, and which degrees work.

Owns the limits of the degree and the elements of each exchange, for shards of equal length.
Before attention a rank trades its tokens' heads for all tokens of its own heads; afterward the
output travels back. Leaves out plain protocols (`traffic`) and time (`overlap`).

Source: Jacobs et al. 2023, DeepSpeed Ulysses (arXiv:2309.14509); Fang & Zhao 2024, USP
    (arXiv:2405.07719), for the mix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.planner.arguments import grouped_heads
from cpcore.planner.traffic import Traffic, attention_traffic


class HeadSplit(NamedTuple):
    """Heads of one rank, and how many ranks hold a copy of the same key/value head."""

    q_heads: int
    kv_heads: int
    kv_copies: int


def head_degrees(q_heads: int, kv_heads: int) -> tuple[int, ...]:
    """Degrees that all-to-all can take, rising.

    A degree must divide Hq. It must also divide Hkv, or be a multiple of it: then every key/value
    head is copied to degree / Hkv ranks, and the copies' gradients are summed.

    Raises: ValueError for heads that do not group.

    >>> head_degrees(32, 8)
    (1, 2, 4, 8, 16, 32)
    """
    grouped_heads(q_heads, kv_heads)
    queries, keys = int(q_heads), int(kv_heads)
    small = [n for n in range(1, math.isqrt(queries) + 1) if queries % n == 0]
    divisors = sorted({*small, *(queries // n for n in small)})
    return tuple(n for n in divisors if keys % n == 0 or n % keys == 0)


def split_heads(q_heads: int, kv_heads: int, degree: int) -> HeadSplit:
    """The heads of one of `degree` ranks.

    Raises: ValueError for a degree that the heads do not allow.
    """
    allowed = head_degrees(q_heads, kv_heads)
    ranks, queries, keys = whole_number("degree", degree, 1), int(q_heads), int(kv_heads)
    if ranks not in allowed:
        raise expected("degree", f"one of {', '.join(map(str, allowed))}", ranks)
    if keys % ranks == 0:
        return HeadSplit(queries // ranks, keys // ranks, 1)
    return HeadSplit(queries // ranks, 1, ranks // keys)


def all_to_all_traffic(
    tokens: int,
    degree: int,
    *,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    element_bytes: int = 2,
    grad_bytes: int | None = None,
) -> tuple[Traffic, Traffic, Traffic, Traffic]:
    """Four exchanges of a rank that owns `tokens`: in, out, gradient in, gradient out.

    In: query, key and value, packed into one call. Out: the output. Gradient in: `dout`. Gradient
    out: dq, dk and dv; a copied key/value head sends one contribution per copy. Nothing is
    replayed over the network: a rank keeps its heads of all tokens. Sent equals received.

    Units: elements and bytes of one sequence in one layer.
    Raises: ValueError for a degree that the heads do not allow, or sizes below 1.
    """
    split = split_heads(q_heads, kv_heads, degree)
    dim = whole_number("head_dim", head_dim, 1)
    v_dim = dim if value_dim is None else whole_number("value_dim", value_dim, 1)
    element = whole_number("element_bytes", element_bytes, 1)
    grad = element if grad_bytes is None else whole_number("grad_bytes", grad_bytes, 1)
    others = int(degree) - 1
    peers = whole_number("tokens", tokens, 1) * others  # a token to each of the others
    inward = peers * (split.q_heads * dim + split.kv_heads * (dim + v_dim))
    outward = peers * split.q_heads * v_dim

    def row(phase: str, elements: int, size: int) -> Traffic:
        moved, calls = elements * size, int(others > 0)
        return Traffic(phase, elements, elements, moved, moved, others, calls)

    return (
        row("in", inward, element),
        row("out", outward, element),
        row("gradient in", outward, grad),
        row("gradient out", inward, grad),
    )


class MixedTraffic(NamedTuple):
    """The all-to-all inside a group of `degree` ranks, and the ring between the groups."""

    all_to_all: tuple[Traffic, Traffic, Traffic, Traffic]
    ring: tuple[Traffic, Traffic, Traffic]

    @property
    def forward_bytes(self) -> int:
        """Bytes that a rank sends for the forward pass."""
        inward, outward, *_ = self.all_to_all
        return inward.bytes_sent + outward.bytes_sent + self.ring[0].bytes_sent


def mixed_traffic(
    tokens: int,
    degree: int,
    ring_size: int,
    *,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    element_bytes: int = 2,
    grad_bytes: int | None = None,
) -> MixedTraffic:
    """`degree` · `ring_size` ranks: heads are split inside a group, positions go around a ring.

    After the all-to-all a rank holds degree · tokens positions of its heads; that is its shard
    of the ring. A degree of 1 is the plain ring, a ring of 1 the plain all-to-all.

    Units: elements and bytes of one sequence in one layer.
    Raises: ValueError as `all_to_all_traffic`, and for a ring_size below 1.
    """
    inside = all_to_all_traffic(
        tokens, degree, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim,
        value_dim=value_dim, element_bytes=element_bytes, grad_bytes=grad_bytes,
    )  # fmt: skip
    shard = int(degree) * int(tokens)
    ring = attention_traffic(
        [shard] * whole_number("ring_size", ring_size, 1), 0, "ring",
        kv_heads=split_heads(q_heads, kv_heads, degree).kv_heads, head_dim=head_dim,
        value_dim=value_dim, element_bytes=element_bytes, grad_bytes=grad_bytes,
    )  # fmt: skip
    return MixedTraffic(inside, ring)
