"""The four conditions under which context parallelism pays, each a claim with two numbers."""

from __future__ import annotations

from typing import NamedTuple

from cpcore.checks import whole_number
from cpcore.planner.arguments import Keep, keep_everything, share, tokens_and_ranks
from cpcore.planner.memory import (
    activation_bytes,
    layer_activations,
    logits_bytes,
    training_state,
)
from cpcore.planner.overlap import smallest_hidden_chunk
from cpcore.planner.shapes import Hardware, ModelShape, known_machine, known_model


class Condition(NamedTuple):
    """`holds` says whether `have` is at least `need`; both are in `unit`."""

    claim: str
    holds: bool
    have: float
    need: float
    unit: str


def conditions(
    model: ModelShape,
    machine: Hardware,
    seq_len: int,
    cp_size: int,
    *,
    state_shards: int = 1,
    tensor_size: int = 1,
    utilization: float = 1.0,
    keep: Keep = "boundaries",
) -> tuple[Condition, Condition, Condition, Condition]:
    """Whether to use context parallelism of size R for one sequence; all four should hold.

    1. The sequence, not the model, is what is large: activations and logits ≥ state on a device.
    2. A micro-batch of one does not fit a device: it cannot be made smaller.
    3. Tensor parallelism of `tensor_size` does not split enough. It divides what heads, channels
       and vocabulary index; layer inputs, residuals and norm outputs stay whole on every rank
       (narrow sequence parallelism, which splits them too, is not counted).
    4. The network carries it: a rank's chunk hides the transfer of a balanced causal block. Its
       link is that of R · `tensor_size` devices, since tensor ranks fill a node first.

    `state_shards` counts every rank that shares the state, tensor ranks among them.

    Raises: ValueError for sizes below 1, a utilization above 1, or more ranks than tokens.
    """
    known_model(model)
    known_machine(machine)
    every, ranks = tokens_and_ranks(seq_len, cp_size)
    reached, tensor = share("utilization", utilization), whole_number("tensor_size", tensor_size, 1)
    state = training_state(model.parameters, state_shards=state_shards).total_bytes
    logits = logits_bytes(every, model.vocabulary)
    activations = activation_bytes(model, every, keep=keep)
    layer = layer_activations(model, every)
    built = model.layers if keep_everything(keep) else 1  # layers whose inside is there at once
    stay = model.layers * layer.boundary_bytes
    stay += built * (layer.norm_outputs_bytes + layer.residual_bytes)
    split = stay + (logits + activations - stay) / tensor
    need = smallest_hidden_chunk(
        machine.peak_flops_per_s * reached,
        machine.link_bytes_per_s(ranks * tensor),
        group=model.group,
        visible_share=0.5,
    )
    memory = machine.memory_bytes
    rows = (
        ("the sequence is larger than the state", activations + logits, state, "bytes"),
        ("one sequence does not fit", state + activations + logits, memory, "bytes"),
        ("tensor parallelism does not split enough", state + split, memory, "bytes"),
        ("the network hides the transfer", every // ranks, need, "tokens"),
    )
    first, second, third, fourth = (
        Condition(claim, have >= wanted, float(have), float(wanted), unit)
        for claim, have, wanted, unit in rows
    )
    return first, second, third, fourth
