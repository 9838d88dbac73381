"""One rank that plays its events one by one, message by message, in plain torch.

Owns the laboratory's second implementation: no overlap, no fused kernel, no autograd, any
`max_block`. It reads like the schedule and shares no arithmetic with the simulation, so that the
two can be compared. `attention` is the one to use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from cpcore.distributed import where
from cpcore.layouts import Layout
from cpcore.masks import Visibility
from cpcore.schedule import Event

Pair = tuple[Tensor, Tensor]


class Sent(NamedTuple):
    """One message as it left: counted from the buffer, not from the plan."""

    phase: str
    step: int
    peer: int
    elements: int
    bytes: int


class Player:
    """The rank's arrays, its part of the schedule, and a record of what it sent.

    lost: (rank, owner) of a gradient message that is sent as 0.

    Shapes: q, k (c, D) and v (c, Dv), one head, in the order in which the layout stores them.
    """

    def __init__(
        self,
        rank: int,
        layout: Layout,
        rule: Visibility,
        protocol: str,
        events: list[Event],
        arrays: tuple[Tensor, Tensor, Tensor],
        lost: tuple[int, int] | None = None,
    ) -> None:
        self.rank, self.layout, self.rule, self.lost = rank, layout, rule, lost
        self.events = [event for event in events if event.rank == rank]
        self.relays = protocol.startswith("ring")  # a rank hands on what it has just used
        self.q, self.k, self.v = arrays
        self.scale = self.q.shape[-1] ** -0.5
        self.sent: list[Sent] = []
        self.played: list[Event] = []
        self.under_way: list[tuple[Any, Tensor]] = []  # with its buffer, kept until it is through

    def forward(self) -> tuple[Tensor, Tensor]:
        """(output, lse): the running state of every row, divided once."""
        rows = len(self.q)
        self.top, self.total = self.q.new_full((rows,), -torch.inf), self.q.new_zeros(rows)
        self.sum = self.q.new_zeros(rows, self.v.shape[-1])
        self._pass("forward", self._attend)
        seen = self.total > 0
        self.out = self.sum / torch.where(seen, self.total, 1.0)[:, None]
        self.lse = torch.where(seen, self.top + self.total.log(), -torch.inf)
        return self.out, self.lse

    def backward(self, dout: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(dq, dk, dv) of the rank's own rows: replay, then the return."""
        self.dout, self.delta = dout, (dout * self.out).sum(dim=-1)
        self.dq = torch.zeros_like(self.q)
        self.owed = [
            (self.k.new_zeros(n, self.k.shape[-1]), self.v.new_zeros(n, self.v.shape[-1]))
            for n in self.layout.lengths
        ]
        self._pass("replay", self._replay)
        for _, step in groupby(self._phase("return"), key=lambda event: event.step):
            self._give_back(list(step))
        return self.dq, *self.owed[self.rank]

    def _phase(self, phase: str) -> list[Event]:
        return [event for event in self.events if event.phase == phase]

    def _pass(self, phase: str, use: Callable[[Event, Pair], None]) -> None:
        """Receive, compute, send: every event of the phase in turn."""
        for _, group in groupby(self._phase(phase), key=lambda event: event.step):
            step = list(group)
            if not self.relays:  # owners send their own shard, and no one waits for anyone
                for event, start in _places(step, "sent_tokens"):
                    self._send(event, self._piece(start, start + event.sent_tokens))
            for event in step:
                where.step(f"{event.phase} step {event.step}")
                self.played.append(event)
                block = self._piece(event.key_start, event.key_stop)
                if event.owner != self.rank:
                    block = self._receive(event)
                use(event, block)
                if self.relays:
                    self._send(event, block)
        self._finish()

    def _piece(self, start: int, stop: int) -> Pair:
        return self.k[start:stop], self.v[start:stop]

    def _visible(self, event: Event) -> Tensor:
        owned = self.layout.owned
        keys = owned[event.owner][event.key_start : event.key_stop]
        return torch.from_numpy(self.rule.block(owned[self.rank], keys))

    def _scores(self, event: Event, k: Tensor) -> Tensor:
        scores: Tensor = self.q @ k.T * self.scale
        hidden = ~self._visible(event)
        return scores.masked_fill_(hidden, -torch.inf)

    def _attend(self, event: Event, block: Pair) -> None:
        """Forward: both summaries relative to the larger maximum, then added."""
        k, v = block
        if not len(k) or not len(self.q):
            return
        scores = self._scores(event, k)
        top = torch.maximum(self.top, scores.max(dim=-1).values)
        safe = torch.where(top.isneginf(), 0.0, top)  # -inf - -inf would be NaN
        keep, probs = (self.top - safe).exp(), (scores - safe[:, None]).exp()
        self.total = keep * self.total + probs.sum(dim=-1)
        self.sum = keep[:, None] * self.sum + probs @ v
        self.top = top

    def _replay(self, event: Event, block: Pair) -> None:
        """Backward: the block's part of the whole row's softmax, by the row's lse and delta."""
        k, v = block
        if not len(k) or not len(self.q):
            return
        lse = torch.where(self.lse.isneginf(), 0.0, self.lse)
        probs = (self._scores(event, k) - lse[:, None]).exp()
        dscores = probs * (self.dout @ v.T - self.delta[:, None])
        self.dq += dscores @ k * self.scale
        dk, dv = self.owed[event.owner]
        dk[event.key_start : event.key_stop] += dscores.T @ self.q * self.scale
        dv[event.key_start : event.key_stop] += probs.T @ self.dout

    def _give_back(self, step: list[Event]) -> None:
        """Send what is owed to one owner, keep nothing of it, and add what arrives."""
        owner = self.rank - 1 - step[0].step if self.relays else self.rank
        arriving = self.owed[owner % self.layout.cp_size]
        for event, _ in _places(step, "sent_tokens"):
            keys = slice(event.key_start, event.key_stop)
            dk, dv = (x[keys].clone() for x in self.owed[event.owner])
            for x in self.owed[event.owner]:
                x[keys] = 0
            kept = (self.rank, event.owner) != self.lost
            self._send(event, (dk * kept, dv * kept))
        for event, start in _places(step, "received_tokens"):
            where.step(f"{event.phase} step {event.step}")
            self.played.append(event)
            for total, share in zip(arriving, self._receive(event), strict=True):
                total[start : start + len(share)] += share
        self._finish()

    def _send(self, event: Event, block: Pair) -> None:
        """One message for both arrays, if the event sends."""
        if event.send_to is None:
            return
        buffer = torch.cat([x.flatten() for x in block])
        size = buffer.numel() * buffer.element_size()
        self.sent.append(Sent(event.phase, event.step, event.send_to, buffer.numel(), size))
        self.under_way.append((dist.isend(buffer, event.send_to), buffer))

    def _receive(self, event: Event) -> Pair:
        """The arrays of one message; none arrives if the event receives nothing."""
        widths, tokens = (self.k.shape[-1], self.v.shape[-1]), event.received_tokens
        # NaN until it arrives: a message that is missing cannot pass for zeros.
        buffer = self.k.new_full((sum(widths) * tokens,), torch.nan)
        if event.recv_from is not None:
            dist.recv(buffer, event.recv_from)
        k, v = torch.split(buffer, [width * tokens for width in widths])
        return k.view(tokens, widths[0]), v.view(tokens, widths[1])

    def _finish(self) -> None:
        for work, _ in self.under_way:
            work.wait()
        self.under_way = []


def _places(step: list[Event], side: str) -> Iterator[tuple[Event, int]]:
    """Each event of a step with where its piece starts on one side."""
    start = 0
    for event in step:
        yield event, start
        start += int(getattr(event, side))
