"""What one process of the laboratory does: every cell for its number of ranks, one after another.

Owns the run of a cell by either code and what the rank reports. Leaves out every judgment.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cpcore.distributed.attention import attention_with
from cpcore.distributed.faults import exchange_with
from cpcore.distributed.group import GroupTransport
from cpcore.distributed.lab_cells import INPUTS, Cell
from cpcore.distributed.player import Player
from cpcore.schedule import Event

Array = NDArray[Any]


class RankReport(NamedTuple):
    """One rank's results in its own order, and what it sent.

    loss: its share, Σ of its upstream · output. sent: elements, bytes and messages of each phase.
    lse and events are the player's: the events in the order in which it took them. The attention
    keeps both to itself; what it sent is seen all the same.
    """

    rank: int
    positions: Array
    output: Array | None
    lse: Array | None
    dq: Array | None
    dk: Array | None
    dv: Array | None
    loss: float
    sent: dict[str, dict[str, int]]
    events: list[Event] | None


def run_cells(rank: int, cells: list[Cell]) -> list[RankReport]:
    """The rank's report on each cell; all ranks visit them in one order."""
    return [(_play if cell.code == "player" else _attend)(rank, cell) for cell in cells]


def _shard(rank: int, cell: Cell) -> tuple[Array, list[torch.Tensor]]:
    mine = cell.layout.owned[rank]
    return mine, [torch.from_numpy(INPUTS[name][mine]) for name in "qkv"]


def _play(rank: int, cell: Cell) -> RankReport:
    """By the player: every message of its own."""
    mine, (q, k, v) = _shard(rank, cell)
    player = Player(rank, cell.layout, cell.rule, cell.protocol, cell.events, (q, k, v), cell.lost)
    output, lse = player.forward()
    dout = torch.from_numpy(cell.upstream(mine))
    gradients = player.backward(dout)
    sent = [(m.phase, m.elements, m.bytes) for m in player.sent]
    return _report(rank, mine, (output, lse, *gradients), dout, sent, player.played)


def _attend(rank: int, cell: Cell) -> RankReport:
    """By the autograd function that a model would call; its messages are recorded."""
    mine, arrays = _shard(rank, cell)
    q, k, v = (x[None, None].requires_grad_() for x in arrays)  # (1, 1, c, D)
    carrier = GroupTransport(poison=True, recording=True)
    settings = cell.layout, cell.rule, cell.protocol, None, None, None
    fault = None if cell.lost is None else ("lost_return", *cell.lost)
    exchange = exchange_with(fault, cell.layout.cp_size)
    output = attention_with(exchange, (q, k, v), carrier, *settings)
    dout = torch.from_numpy(cell.upstream(mine))
    output.backward(dout[None, None])  # type: ignore[no-untyped-call]
    gradients = [x.grad[0, 0] for x in (q, k, v) if x.grad is not None]
    sent = [(m.phase, m.elements, m.bytes) for m in carrier.records if m.direction == "sent"]
    return _report(rank, mine, (output[0, 0], None, *gradients), dout, sent, None)


def _report(
    rank: int,
    mine: Array,
    results: tuple[torch.Tensor | None, ...],
    dout: torch.Tensor,
    sent: list[tuple[str, int, int]],
    events: list[Event] | None,
) -> RankReport:
    totals: dict[str, Counter[str]] = {}
    for phase, elements, size in sent:
        count = totals.setdefault(phase, Counter())
        count.update(elements=elements, bytes=size, messages=1)
    output, lse, dq, dk, dv = (None if x is None else np.asarray(x.detach()) for x in results)
    loss = float((dout.numpy() * output).sum())
    phases = {phase: dict(count) for phase, count in totals.items()}
    return RankReport(rank, mine, output, lse, dq, dk, dv, loss, phases, events)
