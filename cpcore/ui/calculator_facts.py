"""Facts of the calculator: memory, bytes, flops and seconds of one setting, from the planner."""

from __future__ import annotations

from dataclasses import dataclass

from cpcore import planner
from cpcore.planner import AttentionTime, Hardware, MemoryItem, ModelShape, Step
from cpcore.planner.arguments import one_of, share
from cpcore.planner.shapes import known_machine

UTILIZATION = 0.6
STATE_SHARDS = 64
PLANS = {  # name -> (plan of the planner, layout)
    "ring": ("ring", "contiguous"),
    "zigzag": ("ring", "zigzag"),
    "all_gather": ("all_gather", "zigzag"),
    "all_to_all": ("all_to_all", "zigzag"),
    "mixed": ("mixed", "zigzag"),
}


@dataclass(frozen=True)
class Facts:
    """One setting; `time` and `sent_bytes` are None where the heads forbid the plan.

    `step` and `needed_chunk`, the tokens a rank must own for a hop to hide, need a ring.
    """

    model: ModelShape
    machine: Hardware
    seq_len: int
    cp_size: int
    plan: str
    degree: int
    memory: tuple[MemoryItem, ...]
    flops: int
    needed_chunk: int | None
    time: AttentionTime | None
    step: Step | None
    sent_bytes: int | None

    @property
    def rank_bytes(self) -> int:
        """All that the fullest rank holds."""
        return sum(item.rank_bytes for item in self.memory)

    @property
    def fits(self) -> bool:
        """Whether a device can hold it."""
        return self.rank_bytes <= self.machine.memory_bytes


def mix_degree(model: ModelShape, machine: Hardware, cp_size: int) -> int:
    """The most ranks of one node that can trade heads without copies."""
    allowed = planner.head_degrees(model.q_heads, model.kv_heads)
    return max(
        n for n in allowed
        if cp_size % n == 0 and n <= machine.node_size and model.kv_heads % n == 0
    )  # fmt: skip


def facts(
    model: ModelShape,
    machine: Hardware,
    seq_len: int,
    cp_size: int,
    plan: str,
    *,
    utilization: float = UTILIZATION,
    state_shards: int = STATE_SHARDS,
) -> Facts:
    """One layer's forward causal attention, and the memory of a training step.

    Raises: ValueError for a plan that is not in PLANS, or what the planner refuses.
    """
    kind, layout = PLANS[one_of("plan", plan, PLANS)]
    known_machine(machine)
    share("utilization", utilization)
    bill = planner.memory_items(model, seq_len, cp_size, state_shards=state_shards)
    seq_len, cp_size = int(seq_len), int(cp_size)
    degree = {"all_to_all": cp_size, "mixed": mix_degree(model, machine, cp_size)}.get(kind, 1)
    possible = degree in planner.head_degrees(model.q_heads, model.kv_heads)
    held = step = time = sent = needed = None
    if possible:
        mix = degree if kind == "mixed" else None
        held = planner.buffer_bytes(kind, model, seq_len, cp_size, degree=mix)
        time = planner.attention_time(
            kind, model, machine, seq_len, cp_size, layout=layout, utilization=utilization,
            degree=mix,
        )  # fmt: skip
        sent, step = _moved(kind, layout, model, machine, seq_len, cp_size, degree, utilization)
    if step is not None:
        shard = planner.smallest_hidden_chunk(
            machine.peak_flops_per_s * utilization, machine.link_bytes_per_s(cp_size),
            group=model.group, visible_share=1.0 if plan == "ring" else 0.5,
        )  # fmt: skip
        needed = -(-shard // degree)  # ranks that trade heads share one shard of the ring
    buffers = MemoryItem("buffers of one layer", 0, held or 0, False)
    return Facts(
        model, machine, seq_len, cp_size, plan, degree, (*bill[:-1], buffers),
        planner.attention_flops(planner.causal_pairs(seq_len), model.q_heads, model.head_dim),
        needed, time, step, sent,
    )  # fmt: skip


def _moved(
    kind: str,
    layout: str,
    model: ModelShape,
    machine: Hardware,
    seq_len: int,
    cp_size: int,
    degree: int,
    utilization: float,
) -> tuple[int, Step | None]:
    """Bytes that a rank sends forward, and the second step of its ring, where it has one."""
    around = cp_size // degree
    traffic = planner.mixed_traffic(
        seq_len // cp_size, degree, around,
        q_heads=model.q_heads, kv_heads=model.kv_heads, head_dim=model.head_dim,
    )  # fmt: skip
    if kind == "all_gather" or around == 1:
        return traffic.forward_bytes, None
    pairs = planner.slowest_pairs(layout, seq_len, around, 1)
    flops = planner.attention_flops(pairs, model.q_heads // degree, model.head_dim)
    hop = traffic.ring[0].bytes_sent / (around - 1) / machine.link_bytes_per_s(cp_size)
    return traffic.forward_bytes, Step(flops / (machine.peak_flops_per_s * utilization), hop)
