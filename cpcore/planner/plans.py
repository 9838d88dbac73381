"""What one layer's attention takes under a ring, an all-gather, an all-to-all, or a mix.

Owns where the time goes: compute, imbalance, exposed transfer. A ring overlaps transfer and
compute (`overlap`); the collectives do not, attention starts when they end. Leaves out launches
and how a kernel's speed falls with its shape.
"""

from __future__ import annotations

from typing import NamedTuple

from cpcore.checks import expected, whole_number
from cpcore.planner.heads import mixed_traffic, split_heads
from cpcore.planner.overlap import Step
from cpcore.planner.shapes import Hardware, ModelShape, positive
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

    Raises: ValueError for an unknown plan, uneven shards, or a degree that the heads forbid.
    """
    if plan not in PLANS:
        raise expected("plan", f"one of {', '.join(PLANS)}", repr(plan))
    if positive("utilization", utilization) > 1:
        raise expected("utilization", "at most 1", repr(utilization))
    inside = _inside(plan, whole_number("cp_size", cp_size, 1), degree)
    around = cp_size // inside
    pairs = [slowest_pairs(layout, seq_len, around, t, causal=causal) for t in range(around)]
    speed = machine.peak_flops_per_s * utilization
    pair_s = attention_flops(1, model.q_heads, model.head_dim) / inside / speed
    every = causal_pairs(seq_len) if causal else full_pairs(seq_len)
    even = every / around * pair_s
    if plan == "all_gather":
        moved = _gather_s(model, machine, seq_len // cp_size, cp_size)
        each = (rank_pairs(layout, seq_len, cp_size, rank) for rank in range(cp_size))
        busiest = max(each) * cp_size if causal else every
        return AttentionTime(even, (busiest - every) / cp_size * pair_s, moved, moved)
    trade, hop = _trade_and_hop_s(model, machine, seq_len // cp_size, inside, around)
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

    Raises: ValueError for an unknown plan or a degree that the heads or ranks forbid.
    """
    if plan not in PLANS:
        raise expected("plan", f"one of {', '.join(PLANS)}", repr(plan))
    own = whole_number("seq_len", seq_len, 1) // whole_number("cp_size", cp_size, 1)
    if plan == "all_gather":
        return 2 * (cp_size - 1) * own * model.kv_width
    inside = _inside(plan, cp_size, degree)
    split = split_heads(model.q_heads, model.kv_heads, inside)
    block = inside * own * split.kv_heads * 2 * model.head_dim
    traded = block + inside * own * split.q_heads * 2 * model.head_dim if inside > 1 else 0
    return 2 * (traded + (2 * block if cp_size > inside else 0))


def _inside(plan: str, cp_size: int, degree: int | None) -> int:
    """Ranks that trade heads: all of them, `degree` of them, or only oneself."""
    inside = cp_size if plan == "all_to_all" else 1
    if plan == "mixed":
        inside = whole_number("degree", degree, 1)
    if cp_size % inside:
        raise expected("degree", f"a divisor of cp_size = {cp_size}", degree)
    return inside


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
