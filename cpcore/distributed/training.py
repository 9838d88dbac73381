"""Training steps of the small model, by one process alone or by the ranks of a sequence.

Owns what ranks must do together in a step: count labels, attend, add up gradients, and the four
wrong ways to do one of these. Leaves out the comparison of runs: that is `train`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from cpcore.distributed import where
from cpcore.distributed.attention import attention_with
from cpcore.distributed.corpus import Sequence, sequences
from cpcore.distributed.faults import exchange_with
from cpcore.distributed.group import GroupTransport
from cpcore.distributed.model import Attention, Model, whole_attention
from cpcore.distributed.recipe import LAYOUTS, Recipe
from cpcore.layouts import Layout
from cpcore.loss import IGNORE
from cpcore.masks import Visibility
from cpcore.training_pitfalls import shift_after_shard

Array = NDArray[Any]


class Trained(NamedTuple):
    """One rank's account of a run.

    losses: the mean over all labels, of each step before its update. weights: all of them as one
    vector after some steps, {} on ranks other than 0. digest: of all the weights at the end, equal
    on all ranks or the copies have drifted apart.
    """

    losses: list[float]
    weights: dict[int, Array]
    digest: str


def saved_steps(steps: int) -> list[int]:
    """After how many steps weights are compared: 0, powers of two, and the last."""
    return sorted({0, steps, *(2**n for n in range(steps.bit_length()) if 2**n <= steps)})


def train_alone(recipe: Recipe, documents: list[bytes]) -> Trained:
    """The reference: one process, whole sequences, attention by autograd; no group is used."""

    def gradients(model: Model, sequence: Sequence) -> float:
        everything = np.arange(recipe.seq_len)
        visible = Visibility(documents=sequence.documents).block(everything, everything)
        tokens, labels = (torch.from_numpy(x) for x in (sequence.tokens, sequence.labels))
        attend = whole_attention(torch.from_numpy(visible))
        logits = model(tokens, torch.from_numpy(everything), attend)
        loss = functional.cross_entropy(logits, labels, ignore_index=IGNORE)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    return _run(recipe, documents, gradients)


def train_rank(
    rank: int, cp_size: int, recipe: Recipe, documents: list[bytes], switch: str | None = None
) -> Trained:
    """One rank's part of the same run: its shard of every sequence, and a copy of the weights."""
    cut = LAYOUTS[recipe.layout]

    def gradients(model: Model, sequence: Sequence) -> float:
        layout = cut(recipe.seq_len, cp_size)
        mine = layout.owned[rank]
        tokens = torch.from_numpy(sequence.tokens[mine])
        labels = torch.from_numpy(_labels(sequence, layout, switch)[rank])
        positions = torch.tensor(range(len(mine)) if switch == "local_positions" else mine)
        attend = _sharded_attention(layout, sequence, recipe.protocol, switch)
        logits = model(tokens, positions, attend)
        total = functional.cross_entropy(logits, labels, ignore_index=IGNORE, reduction="sum")
        scale, loss = _divisor(total.detach(), int((labels != IGNORE).sum()), cp_size, switch)
        (total * scale).backward()  # type: ignore[no-untyped-call]
        _add_up(model)
        return loss

    return _run(recipe, documents, gradients, keep=rank == 0)


def _run(
    recipe: Recipe,
    documents: list[bytes],
    gradients: Callable[[Model, Sequence], float],
    keep: bool = True,
) -> Trained:
    """All steps. `gradients` leaves them in the model and returns the loss."""
    model = Model(recipe.shape, getattr(torch, recipe.dtype), recipe.seed)
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    stops = saved_steps(recipe.steps)
    losses, weights = [], {0: _vector(model)} if keep else {}
    stream = islice(sequences(documents, recipe.seq_len, recipe.seed), recipe.steps)
    for step, sequence in enumerate(stream, start=1):
        where.at(f"training step {step}")
        model.zero_grad()
        losses.append(gradients(model, sequence))
        _descend(model, velocity, recipe)
        if keep and step in stops:
            weights[step] = _vector(model)
    digest = hashlib.sha256(_vector(model).tobytes()).hexdigest()
    return Trained(losses, weights, digest)


@torch.no_grad()
def _descend(model: Model, velocity: list[Tensor], recipe: Recipe) -> None:
    """Gradient descent with momentum, in four lines: torch.optim takes seconds to import.

    No Adam: it divides by the size of a gradient, so that rounding of a tiny one would grow.
    """
    for weight, speed in zip(model.parameters(), velocity, strict=True):
        if weight.grad is not None:
            speed.mul_(recipe.momentum).add_(weight.grad)
            weight.sub_(recipe.learning_rate * speed)


def _labels(sequence: Sequence, layout: Layout, switch: str | None) -> list[Array]:
    """Each rank's labels, shifted before the split, or by mistake after it."""
    if switch != "shift_after_shard":
        return layout.shard(sequence.labels, axis=0)
    shards = shift_after_shard(sequence.tokens, layout)
    owners = layout.shard(sequence.documents, axis=0)
    return [np.where(d == -1, IGNORE, x) for x, d in zip(shards, owners, strict=True)]


def _sharded_attention(
    layout: Layout, sequence: Sequence, protocol: str, switch: str | None
) -> Attention:
    """Attention in which the ranks of the layout take part."""
    rule = Visibility(documents=sequence.documents)
    fault = ("lost_return", layout.cp_size - 1, 0) if switch == "lost_return" else None
    exchange = exchange_with(fault, layout.cp_size)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        settings = layout, rule, protocol, None, None, None
        return attention_with(exchange, (q, k, v), GroupTransport(), *settings)

    return attend


def _divisor(total: Tensor, count: int, cp_size: int, switch: str | None) -> tuple[float, float]:
    """What a rank multiplies its sum of losses by, and the loss over all ranks.

    The sums of all ranks over the counts of all ranks: the mean over labels, wherever they are.
    """
    share = total.item() / max(1, count)
    told = torch.tensor([total.item(), count, share / cp_size], dtype=torch.float64)
    dist.all_reduce(told)
    if switch == "mean_of_means":
        return 1 / (max(1, count) * cp_size), float(told[2])
    everyone = max(1, int(told[1]))
    return 1 / everyone, float(told[0]) / everyone


def _add_up(model: Model) -> None:
    """Each rank has a part of every gradient, not an estimate of it: the parts are summed."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    parts = torch.split(flat, [g.numel() for g in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def _vector(model: Model) -> Array:
    """All weights in one vector, a copy."""
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
