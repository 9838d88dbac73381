"""What is examined: one training step around a ring, with one method per decision.

Owns the right implementation, which every exhibit replaces in one place, and the small model that
it trains. Leaves out what can go wrong (`faults`) and how one would notice (`checks`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import Array
from cpcore.dropout import Dropout
from cpcore.layouts import Layout, per_document
from cpcore.loss import IGNORE, LossSum, loss_gradient, loss_sum, mean_loss, next_token_labels
from cpcore.masks import Visibility
from cpcore.positions import rotary
from cpcore.ring import simulate
from cpcore.schedule import Event, schedule


@dataclass(frozen=True, eq=False)
class Case:
    """One attention in logical order. base: rotary positions of this base; None = not turned.

    Shapes: as `cpcore.simulate`.
    """

    query: Array
    key: Array
    value: Array
    rule: Visibility
    dout: Array | None = None
    dropout: Dropout | None = None
    base: float | None = None


class Answer(NamedTuple):
    """What the ranks return, in logical order; gradients are None without dout."""

    output: Array
    lse: Array
    dq: Array | None
    dk: Array | None
    dv: Array | None


class Model(NamedTuple):
    """Embedded tokens, their labels, three projections (3, D, D) and a readout (D, vocabulary)."""

    x: Array
    labels: Array
    weights: Array
    readout: Array


class Step(NamedTuple):
    """The loss that is reported and the gradient of the three projections, as on every rank."""

    loss: float
    gradient: Array


class System:
    """A right implementation. An exhibit replaces one method, or names a fault of `simulate`."""

    fault: str | None = None

    def place(self, cu_seqlens: ArrayLike, cp_size: int) -> Layout:
        """Who owns what of a pack of documents."""
        return per_document(cu_seqlens, cp_size)

    def events(self, layout: Layout, rule: Visibility) -> list[Event]:
        """What every rank computes, sends and receives."""
        return list(schedule(layout, rule))

    def turn(self, x: Array, layout: Layout, base: float) -> Array:
        """Rows turned by their positions, each rank its own."""
        shards = zip(layout.shard(x), layout.owned, strict=True)
        return layout.unshard([rotary(shard, pos, base=base) for shard, pos in shards])

    def restore(self, parts: Sequence[Array], layout: Layout, axis: int) -> Array:
        """The ranks' results in logical order."""
        return layout.unshard(parts, axis)

    def attend(self, case: Case, layout: Layout) -> Answer:
        """Output, lse and, with dout, the gradients of query, key and value as they attend."""
        q, k = self.turned(case, layout)
        run = simulate(
            q, k, case.value, layout, case.rule, dout=case.dout, dropout=case.dropout,
            fault=self.fault, events=self.events(layout, case.rule),
        )  # fmt: skip
        return self.gathered(list(zip(*run.per_rank, strict=True)), layout)

    def turned(self, case: Case, layout: Layout) -> tuple[Array, Array]:
        """Query and key, turned if the case asks for it."""
        if case.base is None:
            return case.query, case.key
        return self.turn(case.query, layout, case.base), self.turn(case.key, layout, case.base)

    def gathered(self, fields: Sequence[Sequence[Array | None]], layout: Layout) -> Answer:
        """An answer from each of its five fields rank by rank."""
        whole = [
            None if parts[0] is None else self.restore([np.asarray(p) for p in parts], layout, axis)
            for parts, axis in zip(fields, (-2, -1, -2, -2, -2), strict=True)
        ]
        assert whole[0] is not None
        assert whole[1] is not None
        return Answer(whole[0], whole[1], *whole[2:])

    def loss(self, parts: Sequence[LossSum]) -> float:
        """The loss from (sum, count) of each rank."""
        return mean_loss(parts)

    def loss_gradient(self, logits: Array, labels: Array, parts: Sequence[LossSum]) -> Array:
        """Gradient of the loss with respect to one rank's logits; parts are those of all ranks."""
        return loss_gradient(logits, labels, sum(part.count for part in parts))

    def reduced(self, gradients: Sequence[Array]) -> Array:
        """The gradient of a shared weight from the part of each rank of the sequence."""
        return np.asarray(sum(gradients))

    def step(self, model: Model, layout: Layout, dropout: Dropout | None = None) -> Step:
        """Forward and backward through attention and loss, the ranks meeting where they must."""
        query, key, value = (model.x @ weight for weight in model.weights)
        case = Case(query, key, value, Visibility(), dropout=dropout)
        outputs = layout.shard(self.attend(case, layout).output)
        labels = layout.shard(model.labels, axis=0)
        pairs = [(out @ model.readout, own) for out, own in zip(outputs, labels, strict=True)]
        parts = [loss_sum(*pair) for pair in pairs]
        dlogits = [self.loss_gradient(*pair, parts) for pair in pairs]
        dout = layout.unshard([d @ model.readout.T for d in dlogits])
        answer = self.attend(replace(case, dout=dout), layout)
        grads = [layout.shard(np.asarray(g)) for g in answer[2:]]
        rows = zip(layout.shard(model.x), *grads, strict=True)
        gradients = [np.stack([x.T @ g for g in own]) for x, *own in rows]
        return Step(self.loss(parts), self.reduced(gradients))


def small_model(seed: int = 3) -> Model:
    """Twelve tokens of which the first three, the prompt, have no label."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 7, 12)
    labels = next_token_labels(tokens)
    labels[:3] = IGNORE
    x = rng.standard_normal((7, 4))[tokens]
    weights = 0.7 * rng.standard_normal((3, 4, 4))
    return Model(x, labels, weights, 0.7 * rng.standard_normal((4, 7)))


def losses(
    system: System, layout: Layout, steps: int, rate: float, model: Model | None = None
) -> list[float]:
    """The loss before each of `steps` updates by plain gradient descent."""
    model, found = model or small_model(), []
    for _ in range(steps):
        loss, gradient = system.step(model, layout)
        found.append(loss)
        model = model._replace(weights=model.weights - rate * gradient)
    return found
