"""What one rank computes: its rows against one block of keys after another, and the replay.

Owns the rank's running state and its dq, one method per decision so that a fault overrides just
one. Leaves out where a block comes from (`protocols`) and how a piece is computed (`block_ops`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cpcore.checks import Array
from cpcore.distributed.block_ops import BlockOp, Rule, Saved, fresh
from cpcore.distributed.blocks import Kind, Piece
from cpcore.distributed.state import (
    Stats,
    Total,
    accumulate_dtype,
    empty_state,
    finish,
    heads_together,
    merge_,
)
from cpcore.dropout import Dropout
from cpcore.masks import Visibility

TILE = 512  # plain math works on tiles of at most TILE × TILE scores per head


class Setting(NamedTuple):
    """What is the same for all blocks of one rank.

    Shapes: heads (Hq,), the global index of each query head: dropout is decided by it.
    """

    rule: Visibility
    scale: float
    ops: Mapping[Kind, BlockOp]
    dropout: Dropout | None
    heads: Array


class Block(NamedTuple):
    """Keys and values of one owner: (B, Hkv, K, ·), their positions (K,) and how they are cut."""

    k: Tensor
    v: Tensor
    positions: Array
    pieces: Sequence[Piece]


class RankAttention:
    """The rows of one rank, (B, Hq, c, D), in the order in which it stores them."""

    def __init__(self, q: Tensor, positions: Array, value_width: int, setting: Setting) -> None:
        self.q, self.positions, self.setting = q, positions, setting
        self.value_width = value_width

    def start(self) -> None:
        """Rows that have seen no key."""
        self.state: Stats | None = None
        self.sees = np.zeros(self.q.shape[2], bool)

    def attend(self, block: Block) -> None:
        """Forward: merge what the rows see of the block into their running state."""
        for rows, keys, op, rule in self._work(block):
            k, v = block.k[:, :, keys], block.v[:, :, keys]
            chunk = Stats(*fresh(op, op.attend(self.q[:, :, rows], k, v, rule)))
            if self.state is None and len(self.sees[rows]) == len(self.sees):
                self.state = chunk  # the merge with nothing
            else:
                self.state = self.state or empty_state(self.q, self.value_width)
                merge_(Stats(*(part[:, :, rows] for part in self.state)), chunk)
            self.sees[rows] |= True if rule.visible is None else rule.visible.any(-1).cpu().numpy()

    def finish(self) -> tuple[Tensor, Tensor]:
        """(output, lse) in the accumulate dtype: the one division.

        The lse is NaN for a row whose scores are all -inf although nothing hides them.
        """
        output, lse = finish(self.state or empty_state(self.q, self.value_width))
        sees = torch.from_numpy(self.sees).to(lse.device)
        return output, lse.masked_fill_(sees & lse.isneginf(), torch.nan)

    def start_replay(self, dout: Tensor, out: Tensor, lse: Tensor) -> None:
        """Take what the forward pass saved of the whole rows."""
        # As the kernels read it: once here, not in every call.
        self.saved = Saved(heads_together(dout), out, lse)
        self.dq = Total()

    def replay(self, block: Block) -> tuple[Total, Total]:
        """Backward: add the block's share to dq. What it adds to its owner's dk and dv."""
        totals = self.dq, Total(), Total()
        for rows, keys, op, rule in self._work(block):
            q, k, v = self.q[:, :, rows], block.k[:, :, keys], block.v[:, :, keys]
            saved = Saved(*(x[:, :, rows] for x in self.saved))
            shares = fresh(op, op.gradients(q, k, v, saved, rule))
            for total, part, share in zip(totals, (rows, keys, keys), shares, strict=True):
                total.add(part, share)
        return totals[1:]

    def _work(self, block: Block) -> Iterator[tuple[slice, slice, BlockOp, Rule]]:
        """Rows, keys, operation and rule of every part in which some pair is visible."""
        if not self.q.numel() or not block.k.numel():
            return  # a batch of none
        for piece in block.pieces:
            op = self.setting.ops[piece.kind]
            if "masked" not in op.kinds:  # a fused kernel takes the piece as it is
                triangle = Rule(self.setting.scale, triangle=piece.kind == "triangle")
                yield piece.rows, piece.keys, op, triangle
                continue
            for rows, keys in product(_tiles(piece.rows), _tiles(piece.keys)):
                rule = self._masked(piece.kind, rows, block.positions, keys)
                if rule is not None:
                    yield rows, keys, op, rule

    def _masked(self, kind: Kind, rows: slice, k_pos: Array, keys: slice) -> Rule | None:
        """The rule of a tile, None if all of it is hidden."""
        q_pos, k_pos, device = self.positions[rows], k_pos[keys], self.q.device
        visible = None
        if kind != "full":
            mask = self.setting.rule.block(q_pos, k_pos)
            if not mask.any():
                return None
            visible = None if mask.all() else torch.from_numpy(mask).to(device)
        return Rule(self.setting.scale, False, visible, self._keep(q_pos, k_pos))

    def _keep(self, q_pos: Array, k_pos: Array) -> Tensor | None:
        """The dropout factor of a tile, by global batch entry, head and positions."""
        dropout = self.setting.dropout
        if dropout is None:
            return None
        batch = np.arange(len(self.q))[:, None, None, None]
        heads = self.setting.heads[:, None, None]
        keep = dropout.keep(batch, heads, q_pos[:, None], k_pos)  # (B, Hq, Q, K)
        factor = torch.from_numpy(keep).to(self.q.device, accumulate_dtype(self.q.dtype))
        return factor / (1 - dropout.rate)


def _tiles(span: slice) -> Iterator[slice]:
    for start in range(span.start, span.stop, TILE):
        yield slice(start, min(start + TILE, span.stop))
