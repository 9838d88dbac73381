"""All-to-all by heads: a rank trades its tokens' heads for all tokens of its own heads.

Owns the four exchanges, in, out, gradient in, gradient out, and which heads are whose. Nothing is
replayed over the network: a rank keeps its heads of all tokens for the backward pass. The schedule
has no part in it; `planner.heads` has its traffic in closed form.

Source: Jacobs et al. 2023, DeepSpeed Ulysses (arXiv:2309.14509).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from cpcore.distributed.arguments import Call
from cpcore.distributed.contract import Agreement
from cpcore.distributed.messages import Message
from cpcore.distributed.plan import plan
from cpcore.distributed.rank import Block, RankAttention, Setting
from cpcore.layouts import Layout, contiguous
from cpcore.planner.heads import split_heads


class HeadPasses:
    """Both passes of one rank: all tokens of a few heads, between two exchanges."""

    def __init__(self, call: Call, q: Tensor, k: Tensor) -> None:
        self.call, self.rank, size = call, call.rank, call.layout.cp_size
        split = split_heads(q.shape[1], k.shape[1], size)
        # The heads of each rank; `kv_copies` ranks in a row share one key head.
        self.q_heads = [slice(r * split.q_heads, (r + 1) * split.q_heads) for r in range(size)]
        first = [r // split.kv_copies * split.kv_heads for r in range(size)]
        self.kv_heads = [slice(a, a + split.kv_heads) for a in first]
        self.owned = [torch.tensor(pos.tolist(), dtype=torch.int64) for pos in call.layout.owned]
        self.owned = [pos.to(q.device) for pos in self.owned]

    def forward(
        self, agreement: Agreement, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The rank's rows of the output, and what the backward pass needs."""
        self._begin(agreement)
        q, k, v = self._to_heads("in", (q, k, v), (self.q_heads, self.kv_heads, self.kv_heads))
        rank = self._attention(q, v)
        rank.start()
        rank.attend(self._block(k, v))
        out, lse = rank.finish()
        (rows,) = self._to_rows("out", (out.to(q.dtype),), (self.q_heads,))
        return rows, (q, k, v, out, lse)

    def backward(
        self, agreement: Agreement, saved: Sequence[Tensor], dout: Tensor
    ) -> tuple[Tensor, ...]:
        """dq, dk and dv of the rank's tokens, in the accumulate dtype."""
        self._begin(agreement)
        q, k, v, out, lse = saved
        (dout,) = self._to_heads("gradient in", (dout,), (self.q_heads,))
        rank = self._attention(q, v)
        rank.start_replay(dout, out, lse)
        dk, dv = rank.replay(self._block(k, v))
        heads = self.q_heads, self.kv_heads, self.kv_heads
        return self._to_rows(
            "gradient out", (rank.dq.of_rows(q), dk.of_rows(k), dv.of_rows(v)), heads
        )

    def _begin(self, agreement: Agreement) -> None:
        """Enter a phase. Nothing could be computed while the others' words arrive."""
        self.tag = agreement.tag
        agreement.close()

    def _attention(self, q: Tensor, v: Tensor) -> RankAttention:
        """Rows of this rank's heads, all positions in logical order."""
        call, mine = self.call, self.q_heads[self.rank]
        setting = Setting(call.rule, call.scale, call.ops, call.dropout, np.r_[mine])
        return RankAttention(q, np.arange(call.layout.seq_len), v.shape[-1], setting)

    def _block(self, k: Tensor, v: Tensor) -> Block:
        """The whole sequence, as the only turn of a single rank."""
        turn = plan(_whole(self.call.layout.seq_len), self.call.visibility, "ring", 0).forward[0]
        return Block(k, v, turn.positions, turn.pieces)

    def _to_heads(
        self, phase: str, rows: Sequence[Tensor], heads: Sequence[list[slice]]
    ) -> tuple[Tensor, ...]:
        """(B, H, c, ·) of this rank's tokens -> (B, h, S, ·) of its heads, in logical order."""
        sent = [[x[:, part[p]] for x, part in zip(rows, heads, strict=True)] for p in self._ranks]
        shapes = [
            [(*x.shape[:2], len(pos), x.shape[3]) for x in sent[self.rank]] for pos in self.owned
        ]
        came = self._trade(phase, sent, shapes)
        lengths = self.call.layout.seq_len
        whole = tuple(x.new_empty((*x.shape[:2], lengths, x.shape[3])) for x in sent[self.rank])
        for pos, parts in zip(self.owned, came, strict=True):
            for array, part in zip(whole, parts, strict=True):
                array[:, :, pos] = part
        return whole

    def _to_rows(
        self, phase: str, arrays: Sequence[Tensor], heads: Sequence[list[slice]]
    ) -> tuple[Tensor, ...]:
        """The way back; what several ranks send for one head is added up."""
        sent = [[x[:, :, pos] for x in arrays] for pos in self.owned]
        shapes = [[tuple(x.shape) for x in sent[self.rank]] for _ in self._ranks]
        came = self._trade(phase, sent, shapes)
        rows = tuple(
            x.new_zeros((len(x), part[-1].stop, *x.shape[2:]))
            for x, part in zip(sent[self.rank], heads, strict=True)
        )
        for peer, parts in enumerate(came):
            for array, part, received in zip(rows, heads, parts, strict=True):
                array[:, part[peer]] += received
        return rows

    def _trade(
        self, phase: str, sent: list[list[Tensor]], shapes: list[list[tuple[int, ...]]]
    ) -> list[list[Tensor]]:
        """One packed message to and from every other rank, all in one call; own arrays stay."""
        others = [peer for peer in self._ranks if peer != self.rank]
        buffers = {p: torch.cat([x.reshape(-1) for x in sent[p]]) for p in others}
        sizes = [[int(np.prod(shape)) for shape in parts] for parts in shapes]
        arriving = {p: buffers[p].new_empty(sum(sizes[p])) for p in others}
        sends = [Message(phase, 0, peer, buffers[peer]) for peer in others]
        receives = [Message(phase, 0, peer, arriving[peer]) for peer in others]
        self.call.transport.post(sends, receives, collective=True, tag=self.tag).wait()
        came = list(sent)
        for p in others:
            parts = zip(torch.split(arriving[p], sizes[p]), shapes[p], strict=True)
            came[p] = [flat.view(shape) for flat, shape in parts]
        return came

    @property
    def _ranks(self) -> range:
        return range(len(self.owned))


@lru_cache(maxsize=16)
def _whole(seq_len: int) -> Layout:
    """The layout of one rank; one object per length, so that its plan is found again."""
    return contiguous(seq_len, 1)
