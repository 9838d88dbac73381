"""What one layer's attention takes under a ring, an all-gather, an all-to-all, or a mix.

Owns where the time goes: compute, imbalance, exposed transfer. A ring overlaps transfer and
compute (`overlap`); the collectives do not, attention starts when they end. Leaves out launches
and how a kernel's speed falls with its shape.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.planner.arguments import one_of, share
from cpcore.planner.heads import mixed_traffic, split_heads
from cpcore.planner.overlap import Step
from cpcore.planner.shapes import Hardware, ModelShape, known_machine, known_model
from cpcore.planner.traffic import attention_traffic
from cpcore.planner.work import attention_flops, causal_pairs, full_pairs, rank_pairs, slowest_pairs

PLANS = ("ring", "all_gather", "all_to_all", "mixed")


class AttentionTime(NamedTuple):
    """Where the time of one layer's attention goes, in seconds, on the busiest rank.

    compute: an even share of the work. waiting: what imbalance adds. transfer: all that moves.
    exposed: the part of it that no compute hides.
    """

    compute_s: float
    waiting_s: float
    transfer_s: float
    exposed_s: float

    @property
    def total_s(self) -> float:
        """Compute, waiting and exposed transfer; a hidden transfer takes no time of its own."""
        return self.compute_s + self.waiting_s + self.exposed_s

    @property
    def efficiency(self) -> float:
        """Share of the time that is useful compute."""
        return self.compute_s / self.total_s

    @property
    def limit(self) -> str:
        """What to attack first: "compute" if it fills nine tenths of the time.

        Otherwise the larger loss, "imbalance" (waiting) or "communication" (exposed).
        """
        if self.efficiency >= 0.9:
            return "compute"
        return "imbalance" if self.waiting_s > self.exposed_s else "communication"


def attention_time(
    plan: str,
    model: ModelShape,
    machine: Hardware,
    seq_len: int,
    cp_size: int,
    *,
    layout: str = "zigzag",
    causal: bool = True,
    utilization: float = 1.0,
    degree: int | None = None,
) -> AttentionTime:
    """One layer's forward attention under one plan, every byte priced at the slowest link it needs.

    ring: overlapped, step by step. all_gather: keys and values first, then everything.
    all_to_all: heads are split, so any layout is balanced; of its bytes only those for other nodes
    use the network. mixed: all-to-all over `degree` neighbors, then a ring of R / degree.
    `utilization` is the share of the peak flop/s that the kernel sustains.

    Raises: ValueError for an unknown plan, uneven shards, a degree that the heads forbid, or one
        that the plan does not take.
    """
    known_machine(machine)
    speed = machine.peak_flops_per_s * share("utilization", utilization)
    ranks, inside = _ranks(plan, model, cp_size, degree)
    around = ranks // inside
    size = _equal_shards(seq_len, math.lcm(ranks, 2 * around))
    pairs = [slowest_pairs(layout, size, around, t, causal=causal) for t in range(around)]
    pair_s = attention_flops(1, model.q_heads, model.head_dim) / inside / speed
    every = causal_pairs(size) if causal else full_pairs(size)
    even = every / around * pair_s
    if plan == "all_gather":
        moved = _gather_s(model, machine, size // ranks, ranks)
        busiest = rank_pairs(layout, size, ranks, ranks - 1) * ranks if causal else every
        return AttentionTime(even, (busiest - every) / ranks * pair_s, moved, moved)
    trade, hop = _trade_and_hop_s(model, machine, size // ranks, inside, around)
    steps = [Step(n * pair_s, hop if t < around - 1 else 0.0) for t, n in enumerate(pairs)]
    waiting = (sum(pairs) * around - every) / around * pair_s  # whole numbers first: 0 is 0
    exposed = trade + sum(step.exposed_s for step in steps)
    return AttentionTime(even, waiting, trade + hop * (around - 1), exposed)


def buffer_bytes(
    plan: str, model: ModelShape, seq_len: int, cp_size: int, *, degree: int | None = None
) -> int:
    """What a plan holds beside a rank's own tokens during one layer's forward attention.

    ring: the foreign block in use and the one arriving. all_gather: every foreign block.
    all_to_all: query, key, value and output of all tokens for its own heads. mixed: the same for
    the tokens of its group, and two such blocks of the ring. 16-bit elements, equal shards.

    Raises: ValueError for an unknown plan, uneven shards, or a degree that the heads, the ranks
        or the plan forbid.
    """
    ranks, inside = _ranks(plan, model, cp_size, degree)
    own = _equal_shards(seq_len, ranks) // ranks
    if plan == "all_gather":
        return 2 * (ranks - 1) * own * model.kv_width
    split = split_heads(model.q_heads, model.kv_heads, inside)
    block = inside * own * split.kv_heads * 2 * model.head_dim
    traded = block + inside * own * split.q_heads * 2 * model.head_dim if inside > 1 else 0
    return 2 * (traded + (2 * block if ranks > inside else 0))


def _ranks(plan: str, model: ModelShape, cp_size: int, degree: int | None) -> tuple[int, int]:
    """All ranks, and those that trade heads: all, `degree` of them, or only oneself."""
    one_of("plan", plan, PLANS)
    known_model(model)
    ranks = whole_number("cp_size", cp_size, 1)
    if plan == "mixed":
        inside = whole_number("degree", degree, 1)
        if ranks % inside:
            raise expected("degree", f"a divisor of cp_size = {ranks}", inside)
        return ranks, inside
    if degree is not None:
        raise expected("degree", f"None, for {plan} takes none", repr(degree))
    return ranks, ranks if plan == "all_to_all" else 1


def _equal_shards(seq_len: int, pieces: int) -> int:
    """S, refused unless it can be cut into so many pieces of equal length."""
    size = whole_number("seq_len", seq_len, pieces)
    if size % pieces:
        raise expected("seq_len", f"a multiple of {pieces}", size)
    return size


def _gather_s(model: ModelShape, machine: Hardware, tokens: int, ranks: int) -> float:
    """All foreign keys and values, as a ring of transfers."""
    sizes = {"kv_heads": model.kv_heads, "head_dim": model.head_dim}
    row, *_ = attention_traffic([tokens] * ranks, 0, "all_gather", **sizes)
    return row.bytes_sent / machine.link_bytes_per_s(ranks)


def _trade_and_hop_s(
    model: ModelShape, machine: Hardware, tokens: int, inside: int, around: int
) -> tuple[float, float]:
    """Both all-to-alls of the forward pass, and one hop of the ring."""
    traffic = mixed_traffic(
        tokens, inside, around,
        q_heads=model.q_heads, kv_heads=model.kv_heads, head_dim=model.head_dim,
    )  # fmt: skip
    traded = sum(row.bytes_sent for row in traffic.all_to_all[:2])
    trade = traded * _crossing(inside, machine) / machine.link_bytes_per_s(inside)
    hop = traffic.ring[0].bytes_sent / max(1, around - 1)
    return trade, hop / machine.link_bytes_per_s(inside * around)


def _crossing(ranks: int, machine: Hardware) -> float:
    """Share of an all-to-all's bytes that uses its slowest link: those for ranks elsewhere."""
    if ranks <= machine.node_size:
        return 1.0
    return (ranks - machine.node_size) / (ranks - 1)
