"""What training and serving must hold, in bytes: state first, then what grows with the sequence.

Owns weights, gradients, optimizer state, saved activations, layer boundaries, logits and the KV
cache, and which of them context parallelism divides. Leaves out traffic and buffers of a protocol
(`traffic`). Everything is for one sequence unless a batch is given.
"""

from __future__ import annotations

from typing import NamedTuple

from cpcore.checks import whole_number
from cpcore.planner.arguments import Keep, keep_everything, tokens_and_ranks
from cpcore.planner.shapes import ModelShape, known_model


class TrainingState(NamedTuple):
    """What a rank holds before it has seen a token, in bytes."""

    weights_bytes: int
    gradients_bytes: int
    master_weights_bytes: int
    first_moment_bytes: int
    second_moment_bytes: int

    @property
    def optimizer_bytes(self) -> int:
        """Float32 copy of the weights and both moments."""
        return self.master_weights_bytes + self.first_moment_bytes + self.second_moment_bytes

    @property
    def total_bytes(self) -> int:
        """All five parts."""
        return sum(self)


def training_state(parameters: int, *, state_shards: int = 1) -> TrainingState:
    """Mixed-precision Adam: 2 + 2 + 4 + 4 + 4 = 16 bytes a parameter, over `state_shards` ranks.

    16-bit weights and gradients; a float32 master copy, first and second moment. No sequence
    length enters: context parallelism alone divides none of it. `state_shards` is how many ranks
    share the state (1 = replicated), as in fully sharded data parallelism; context ranks may be
    among them.

    Raises: ValueError for sizes below 1.
    Source: Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054), section 3.1.

    >>> training_state(70_000_000_000).total_bytes
    1120000000000
    """
    shards = whole_number("state_shards", state_shards, 1)
    mine = -(-whole_number("parameters", parameters, 1) // shards)
    return TrainingState(2 * mine, 2 * mine, 4 * mine, 4 * mine, 4 * mine)


class LayerActivations(NamedTuple):
    """What the backward pass of one layer needs, in bytes.

    boundary: the layer's input. norm_outputs: inputs of the projections and of the MLP.
    residual: the input of the second norm. queries, keys_values: after rotary. attention_output,
    lse: what the replay of chapter 6 needs. mlp: gate, up and their product.
    """

    boundary_bytes: int
    norm_outputs_bytes: int
    residual_bytes: int
    queries_bytes: int
    keys_values_bytes: int
    attention_output_bytes: int
    lse_bytes: int
    mlp_bytes: int

    @property
    def total_bytes(self) -> int:
        """All parts."""
        return sum(self)


def layer_activations(
    model: ModelShape, tokens: int, *, element_bytes: int = 2
) -> LayerActivations:
    """What one layer saves for `tokens` when nothing is computed twice.

    Assumed: attention in tiles, so no scores are kept; no dropout; lse in float32.

    Raises: ValueError for sizes below 1.
    """
    known_model(model)
    count = _tokens(tokens)
    element = count * whole_number("element_bytes", element_bytes, 1)
    return LayerActivations(
        boundary_bytes=element * model.hidden,
        norm_outputs_bytes=element * 2 * model.hidden,
        residual_bytes=element * model.hidden,
        queries_bytes=element * model.q_width,
        keys_values_bytes=element * model.kv_width,
        attention_output_bytes=element * model.q_width,
        lse_bytes=count * model.q_heads * 4,
        mlp_bytes=element * 3 * model.mlp_hidden,
    )


def boundary_bytes(model: ModelShape, tokens: int, *, element_bytes: int = 2) -> int:
    """The inputs of all layers: all that full recomputation keeps.

    Raises: ValueError for sizes below 1.
    """
    one = layer_activations(model, tokens, element_bytes=element_bytes).boundary_bytes
    return model.layers * one


def activation_bytes(
    model: ModelShape, tokens: int, *, keep: Keep = "boundaries", element_bytes: int = 2
) -> int:
    """Activations at the start of the backward pass.

    "everything" keeps all layers; "boundaries" keeps each layer's input and rebuilds one layer
    at a time, so that one layer's activations come on top.

    Raises: ValueError for sizes below 1 or another `keep`.
    """
    layer = layer_activations(model, tokens, element_bytes=element_bytes)
    if keep_everything(keep):
        return model.layers * layer.total_bytes
    return model.layers * layer.boundary_bytes + layer.total_bytes - layer.boundary_bytes


def logits_bytes(tokens: int, vocabulary: int, *, element_bytes: int = 4) -> int:
    """One number per token and word of the vocabulary; float32 unless said.

    Raises: ValueError for sizes below 1.

    >>> round(logits_bytes(131_072, 128_256) / 2**30, 1)
    62.6
    """
    words = whole_number("vocabulary", vocabulary, 1)
    return _tokens(tokens) * words * whole_number("element_bytes", element_bytes, 1)


def kv_bytes(model: ModelShape, tokens: int, *, element_bytes: int = 2) -> int:
    """Keys and values of all layers: the cache of serving.

    Raises: ValueError for sizes below 1.
    """
    one = layer_activations(model, tokens, element_bytes=element_bytes).keys_values_bytes
    return model.layers * one


class MemoryItem(NamedTuple):
    """One line of the bill: for the whole sequence, and on the rank that holds most."""

    name: str
    whole_bytes: int
    rank_bytes: int
    divided_by_cp: bool


def memory_items(
    model: ModelShape,
    seq_len: int,
    cp_size: int,
    *,
    state_shards: int = 1,
    keep: Keep = "boundaries",
) -> tuple[MemoryItem, ...]:
    """Every line of the training bill: what context parallelism divides and what it does not.

    State is divided by `state_shards`, never by the context size as such. What a token brings is
    divided: the rank with most tokens holds ⌈S/R⌉ of them. The ring's buffers appear only with
    R > 1: a foreign block of keys and values in use and one arriving.

    Raises: ValueError for sizes below 1, or more ranks than tokens.
    """
    known_model(model)
    every, ranks = tokens_and_ranks(seq_len, cp_size)
    most = -(-every // ranks)
    saved = [activation_bytes(model, n, keep=keep) for n in (every, most)]
    logits = [logits_bytes(n, model.vocabulary) for n in (every, most)]
    whole, mine = (training_state(model.parameters, state_shards=n) for n in (1, state_shards))
    block = layer_activations(model, most).keys_values_bytes
    return (
        MemoryItem("weights", whole.weights_bytes, mine.weights_bytes, False),
        MemoryItem("gradients", whole.gradients_bytes, mine.gradients_bytes, False),
        MemoryItem("optimizer", whole.optimizer_bytes, mine.optimizer_bytes, False),
        MemoryItem("activations", saved[0], saved[1], True),
        MemoryItem("logits", logits[0], logits[1], True),
        MemoryItem("ring buffers", 0, 2 * block if ranks > 1 else 0, False),
    )


def _tokens(tokens: int) -> int:
    """`tokens` as a count of at least 1."""
    return whole_number("tokens", tokens, 1)
