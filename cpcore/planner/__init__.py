"""What context parallelism costs, in closed forms: bytes, flops, seconds, thresholds. No arrays.

Each module says what it owns; every public name is here. The forms are tested against the ledger,
against counts of the events, or against a second formula. `cpcore.planner` is imported by name,
`import cpcore` does not load it.
"""

from cpcore.planner.conditions import Condition, conditions
from cpcore.planner.heads import (
    HeadSplit,
    MixedTraffic,
    all_to_all_traffic,
    head_degrees,
    mixed_traffic,
    split_heads,
)
from cpcore.planner.memory import (
    LayerActivations,
    MemoryItem,
    TrainingState,
    activation_bytes,
    boundary_bytes,
    kv_bytes,
    layer_activations,
    logits_bytes,
    memory_items,
    training_state,
)
from cpcore.planner.overlap import (
    Step,
    ring_steps,
    smallest_hidden_chunk,
    smallest_hidden_chunk_backward,
)
from cpcore.planner.plans import PLANS, AttentionTime, attention_time, buffer_bytes
from cpcore.planner.presets import HARDWARE, MODELS, hardware, model_shape
from cpcore.planner.serving import (
    decode_merge_bytes,
    decode_read_s,
    flops_share,
    pass_kv_bytes,
    pass_q_bytes,
    pass_q_share,
)
from cpcore.planner.shapes import Hardware, ModelShape
from cpcore.planner.traffic import (
    PROTOCOLS,
    Residency,
    Traffic,
    attention_traffic,
    residency,
    shard_lengths,
)
from cpcore.planner.work import (
    LAYOUTS,
    attention_flops,
    causal_pairs,
    full_pairs,
    matmul_flops,
    plain_ring_limit,
    rank_pairs,
    ring_efficiency,
    slowest_pairs,
    step_pairs,
    window_pairs,
)

__all__ = [
    "HARDWARE",
    "LAYOUTS",
    "MODELS",
    "PLANS",
    "PROTOCOLS",
    "AttentionTime",
    "Condition",
    "Hardware",
    "HeadSplit",
    "LayerActivations",
    "MemoryItem",
    "MixedTraffic",
    "ModelShape",
    "Residency",
    "Step",
    "Traffic",
    "TrainingState",
    "activation_bytes",
    "all_to_all_traffic",
    "attention_flops",
    "attention_time",
    "attention_traffic",
    "boundary_bytes",
    "buffer_bytes",
    "causal_pairs",
    "conditions",
    "decode_merge_bytes",
    "decode_read_s",
    "flops_share",
    "full_pairs",
    "hardware",
    "head_degrees",
    "kv_bytes",
    "layer_activations",
    "logits_bytes",
    "matmul_flops",
    "memory_items",
    "mixed_traffic",
    "model_shape",
    "pass_kv_bytes",
    "pass_q_bytes",
    "pass_q_share",
    "plain_ring_limit",
    "rank_pairs",
    "residency",
    "ring_efficiency",
    "ring_steps",
    "shard_lengths",
    "slowest_pairs",
    "smallest_hidden_chunk",
    "smallest_hidden_chunk_backward",
    "split_heads",
    "step_pairs",
    "training_state",
    "window_pairs",
]
