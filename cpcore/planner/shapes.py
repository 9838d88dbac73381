"""The sizes that every estimate starts from: a model's shape and a machine's speed.

Owns two frozen records and their checks. Leaves out which models and machines there are
(`presets`) and what follows from their sizes (the other modules).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from cpcore.checks import expected, whole_number
from cpcore.planner.arguments import grouped_heads, positive


@dataclass(frozen=True)
class ModelShape:
    """A decoder-only transformer by its sizes.

    Assumed: gated MLP (three matrices), no biases, one scale per channel in each of two norms a
    layer and in the last one, separate input and output embeddings, rotary positions.

    Raises: ValueError for a size below 1 or heads that do not group.
    """

    name: str
    layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    mlp_hidden: int
    vocabulary: int

    def __post_init__(self) -> None:
        _named(self.name)
        for field in fields(self)[1:]:  # a numpy integer would overflow in a product
            size = whole_number(field.name, getattr(self, field.name), 1)
            object.__setattr__(self, field.name, size)
        grouped_heads(self.q_heads, self.kv_heads)

    @property
    def group(self) -> int:
        """Query heads that share one key/value head."""
        return self.q_heads // self.kv_heads

    @property
    def q_width(self) -> int:
        """Elements of one token's queries in one layer, Hq · D."""
        return self.q_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys and values in one layer, Hkv · 2D."""
        return 2 * self.kv_heads * self.head_dim

    @property
    def layer_matrices(self) -> int:
        """Weights of one layer that enter a matrix product: query, key, value, output, MLP."""
        attention = self.hidden * (2 * self.q_width + self.kv_width)
        return attention + 3 * self.hidden * self.mlp_hidden

    @property
    def parameters(self) -> int:
        """All weights: layers with two norms each, the last norm, both embeddings."""
        layers = self.layers * (self.layer_matrices + 2 * self.hidden)
        return layers + self.hidden + 2 * self.vocabulary * self.hidden


@dataclass(frozen=True)
class Hardware:
    """One device and its two networks.

    `node_size` devices reach each other at `node_bytes_per_s`; beyond them a device sends at
    `network_bytes_per_s`. Speeds are the published peaks: no program reaches them.

    Units: peak_flops_per_s dense 16-bit matrix products; bytes_per_s per device and direction.
    Raises: ValueError for a speed or size that is not above 0.
    """

    name: str
    peak_flops_per_s: float
    memory_bytes: int
    memory_bytes_per_s: float
    node_size: int
    node_bytes_per_s: float
    network_bytes_per_s: float

    def __post_init__(self) -> None:
        _named(self.name)
        for field in fields(self)[1:]:
            value: object = getattr(self, field.name)
            whole = field.name in ("node_size", "memory_bytes")
            number = whole_number(field.name, value, 1) if whole else positive(field.name, value)
            object.__setattr__(self, field.name, number)

    def link_bytes_per_s(self, ranks: int) -> float:
        """What one hop of a ring over `ranks` devices gets: its slowest link sets the pace.

        A ring that leaves a node has at least one hop per lap on the network, and every rank
        waits for it.

        Raises: ValueError for ranks below 1.
        """
        inside = whole_number("ranks", ranks, 1) <= self.node_size
        return self.node_bytes_per_s if inside else self.network_bytes_per_s


def known_model(model: object) -> ModelShape:
    """`model` if it is a `ModelShape`; a name or anything else is refused."""
    if not isinstance(model, ModelShape):
        raise expected("model", "a ModelShape", repr(model))
    return model


def known_machine(machine: object) -> Hardware:
    """`machine` if it is a `Hardware`; a name or anything else is refused."""
    if not isinstance(machine, Hardware):
        raise expected("machine", "a Hardware", repr(machine))
    return machine


def _named(name: object) -> None:
    if not isinstance(name, str):
        raise expected("name", "a string", repr(name))
