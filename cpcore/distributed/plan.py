"""One rank's part of a schedule, and the messages it needs: who does what, and in which buffers.

Owns the plan, which is the same in every call with one layout and one visibility, and the packing
of two arrays into one message. Leaves out sending (`protocols`) and computing (`rank`).
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from cpcore.checks import Array
from cpcore.distributed.blocks import Piece, cut
from cpcore.layouts import Layout
from cpcore.masks import Visibility
from cpcore.schedule import Event, schedule


class Turn(NamedTuple):
    """One event of the rank, with the positions of its block and how the block is cut."""

    event: Event
    positions: Array
    pieces: tuple[Piece, ...]


class Plan(NamedTuple):
    """All that one rank does. relays: it hands on what has just arrived, as around a ring."""

    relays: bool
    forward: tuple[Turn, ...]
    replay: tuple[Turn, ...]
    returns: dict[int, Event]  # by step


@lru_cache(maxsize=64)
def plan(layout: Layout, visibility: Visibility | None, protocol: str, rank: int) -> Plan:
    """The rank's turns, backward included."""
    rule = Visibility(causal=False) if visibility is None else visibility
    mine = [e for e in schedule(layout, visibility, protocol=protocol) if e.rank == rank]
    by_phase: dict[str, list[Event]] = {"forward": [], "replay": [], "return": []}
    for event in mine:
        by_phase[event.phase].append(event)
    pieces = {
        e.owner: tuple(cut(rule, layout.owned[rank], layout.owned[e.owner], e.verdict))
        for e in by_phase["forward"]
    }
    forward, replay = (
        tuple(Turn(e, layout.owned[e.owner], pieces[e.owner]) for e in by_phase[phase])
        for phase in ("forward", "replay")
    )
    returns = {event.step: event for event in by_phase["return"]}
    return Plan(protocol.startswith("ring"), forward, replay, returns)


class Packing(NamedTuple):
    """Two arrays of one owner, (B, Hkv, c, D) and (B, Hkv, c, Dv), in one flat message.

    by_head: the tokens of a head lie side by side, as kernels read them fastest; else the heads of
    a token do, as kernels write them.
    """

    batch: int
    heads: int
    width: int
    value_width: int
    dtype: torch.dtype
    device: torch.device
    by_head: bool

    @property
    def token(self) -> int:
        """Elements of one token."""
        return self.batch * self.heads * (self.width + self.value_width)

    def empty(self, tokens: int) -> Tensor:
        """A message of this many tokens, to be filled by another rank."""
        return torch.empty(self.token * tokens, dtype=self.dtype, device=self.device)

    def pack(self, k: Tensor, v: Tensor) -> Tensor:
        """A message with a copy of both."""
        message = self.empty(k.shape[2])
        for room, array in zip(self.open(message, k.shape[2]), (k, v), strict=True):
            room.copy_(array)
        return message

    def open(self, message: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        """Both arrays, as views of the message."""
        middle = self.batch * self.heads * tokens * self.width
        k = self._array(message[:middle], tokens, self.width)
        return k, self._array(message[middle:], tokens, self.value_width)

    def _array(self, part: Tensor, tokens: int, width: int) -> Tensor:
        if self.by_head:
            return part.view(self.batch, self.heads, tokens, width)
        return part.view(self.batch, tokens, self.heads, width).transpose(1, 2)
