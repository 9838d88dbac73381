"""The running state of a rank's rows in torch: as `cpcore.chunks`, updated in place.

Owns the merge of one more piece and the one division. A fused kernel returns a finished output and
its lse: that is a summary too, with sum 1 relative to a maximum equal to its lse.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Stats(NamedTuple):
    """What some keys contribute to each row, relative to the row's maximum; see `ChunkStats`.

    Shapes: output (B, Hq, Q, Dv), sum and max (B, Hq, Q), in the accumulate dtype. A row that saw
    no key has max -inf, sum 0 and output 0.
    """

    output: Tensor
    sum: Tensor
    max: Tensor


def accumulate_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of running state and of gradients on their way: at least float32."""
    return torch.promote_types(dtype, torch.float32)


def empty_state(rows: Tensor, value_width: int) -> Stats:
    """The state of rows that have seen no key.

    Shapes: rows (B, Hq, Q, D).
    """
    output = rows.new_zeros((*rows.shape[:-1], value_width), dtype=accumulate_dtype(rows.dtype))
    top = output.new_full(rows.shape[:-1], -torch.inf)
    return Stats(output, torch.zeros_like(top), top)


def merge_(state: Stats, rows: slice, chunk: Stats) -> None:
    """Merge a chunk into the state of its rows, both relative to the larger maximum.

    A side that saw no key has output 0 and weight 0 here, so that it changes no bit.
    """
    output, total, top = (part[:, :, rows] for part in state)
    highest = torch.maximum(top, chunk.max)
    safe = finite_or_zero(highest)  # -inf - -inf would be NaN
    keep, add = torch.exp(top - safe), torch.exp(chunk.max - safe)
    output.mul_(keep[..., None]).addcmul_(chunk.output, add[..., None])
    total.mul_(keep).addcmul_(chunk.sum, add)
    top.copy_(highest)


def take_(state: Stats, rows: slice, chunk: Stats) -> None:
    """The chunk becomes the state of rows that have seen no key."""
    for part, received in zip(state, chunk, strict=True):
        part[:, :, rows] = received


class Total:
    """A sum over slices of axis 2; the first share of a slice is copied instead of added to 0.

    array: not initialized; what no share reaches is 0 once `finish` has returned it.
    """

    def __init__(self, array: Tensor) -> None:
        self.array, self.fresh = array, np.ones(array.shape[2], bool)

    def add(self, part: slice, share: Tensor) -> None:
        """Add a share to a slice."""
        fresh = self.fresh[part]
        if fresh.all():
            self.array[:, :, part] = share
        else:
            if fresh.any():
                self._clear(part)
            self.array[:, :, part] += share
        fresh[:] = False

    def finish(self) -> Tensor:
        """The sum."""
        if self.fresh.any():
            self._clear(slice(None))
        return self.array

    def _clear(self, part: slice) -> None:
        mask = torch.from_numpy(self.fresh[part]).to(self.array.device)
        self.array[:, :, part].masked_fill_(mask[:, None], 0)


def finish(state: Stats) -> tuple[Tensor, Tensor]:
    """(output, lse) after the one division; a row that saw nothing: output 0, lse -inf.

    The state is used up.
    """
    divisor = torch.where(state.sum == 0, 1, state.sum)
    return state.output.div_(divisor[..., None]), state.max + divisor.log()


def finite_or_zero(top: Tensor) -> Tensor:
    """The maximum to subtract: 0 for a row that saw nothing."""
    return top.masked_fill(top == -torch.inf, 0)
