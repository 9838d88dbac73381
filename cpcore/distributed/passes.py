"""The two passes of one rank over its part of the schedule: send, compute, merge, wait.

Owns what travels by events: forward over those of phase "forward", backward over "replay" and
"return". The protocol by heads, which has no blocks, is `heads`.
"""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from cpcore.distributed.arguments import Call
from cpcore.distributed.contract import Agreement
from cpcore.distributed.plan import Packing, Turn, plan
from cpcore.distributed.protocols import Exchange
from cpcore.distributed.rank import Block, RankAttention, Setting
from cpcore.distributed.state import accumulate_dtype


class BlockPasses:
    """Both passes of one rank: keys and values come to it, block by block."""

    def __init__(self, call: Call, exchange: type[Exchange], k: Tensor, v: Tensor) -> None:
        self.call = call
        # Keys and values travel in their dtype, gradients in the accumulate dtype.
        self.kv = Packing(k.shape[0], k.shape[1], k.shape[3], v.shape[3], k.dtype, k.device, True)
        self.grad_kv = self.kv._replace(dtype=accumulate_dtype(k.dtype), by_head=False)
        self.plan = plan(call.layout, call.visibility, call.protocol, call.rank)
        self.exchange = exchange(call.transport, self.plan, self.kv, self.grad_kv)

    def forward(
        self, agreement: Agreement, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The rank's rows of the output, and what the backward pass needs."""
        self.exchange.begin(agreement)
        rank, own = self._attention(q), self.kv.pack(k, v)
        rank.start()
        for turn, message in self.exchange.blocks(self.plan.forward, own):
            rank.attend(self._block(turn, message))
        out, lse = rank.finish()
        return out.to(q.dtype), (q, own, out, lse)

    def backward(
        self, agreement: Agreement, saved: Sequence[Tensor], dout: Tensor
    ) -> tuple[Tensor, ...]:
        """dq, dk and dv of the rank's tokens, in the accumulate dtype."""
        self.exchange.begin(agreement)
        q, own, out, lse = saved
        rank = self._attention(q)
        rank.start_replay(dout, out, lse)
        home = self.exchange.homecoming()
        for turn, message in self.exchange.blocks(self.plan.replay, own):
            block = self._block(turn, self.exchange.replayed(message, own))
            home.give(turn, rank.replay(block))
        return rank.dq.of_rows(q), *self.grad_kv.open(home.finish(), q.shape[2])

    def _attention(self, q: Tensor) -> RankAttention:
        """The rank's rows, by their global positions."""
        call = self.call
        setting = Setting(call.rule, call.scale, call.ops, call.dropout, np.arange(q.shape[1]))
        return RankAttention(q, call.layout.owned[call.rank], self.kv.value_width, setting)

    def _block(self, turn: Turn, message: Tensor) -> Block:
        return Block(*self.kv.open(message, len(turn.positions)), turn.positions, turn.pieces)
