"""The running state of a rank's rows in torch: as `cpcore.chunks`, updated in place.

Owns the merge of one more piece, the one division, and sums of gradients. A fused kernel returns a
finished output and its lse: that is a summary too, with sum 1 relative to a maximum equal to its
lse.
"""

from typing import NamedTuple

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


def heads_together(array: Tensor) -> Tensor:
    """The array with all heads of a row side by side in memory, as fused kernels write them.

    A range of rows is then one range of memory, and is copied and added as such.

    Shapes: array and result (B, H, Q, ·).
    """
    return array.transpose(1, 2).contiguous().transpose(1, 2)


def empty_rows(rows: Tensor, width: int) -> Tensor:
    """Room for results of these rows, heads together, not initialized, in the accumulate dtype.

    Shapes: rows (B, H, Q, ·), result (B, H, Q, width).
    """
    batch, heads, queries, _ = rows.shape
    dtype = accumulate_dtype(rows.dtype)
    return rows.new_empty((batch, queries, heads, width), dtype=dtype).transpose(1, 2)


def empty_state(rows: Tensor, value_width: int) -> Stats:
    """The state of rows that have seen no key.

    Shapes: rows (B, Hq, Q, D).
    """
    output = empty_rows(rows, value_width).zero_()
    total = torch.zeros_like(output[..., 0])
    return Stats(output, total, torch.full_like(total, -torch.inf))


def merge_(state: Stats, chunk: Stats) -> None:
    """Merge a chunk into the state of its rows, both relative to the larger maximum.

    A side that saw no key has output 0 and weight 0 here, so that it changes no bit.
    """
    output, total, top = state
    highest = torch.maximum(top, chunk.max)
    safe = finite_or_zero(highest)  # -inf - -inf would be NaN
    keep, add = torch.exp(top - safe), torch.exp(chunk.max - safe)
    output.mul_(keep[..., None]).addcmul_(chunk.output, add[..., None])
    total.mul_(keep).addcmul_(chunk.sum, add)
    top.copy_(highest)


class Total:
    """A sum over slices of axis 2, kept as the shares that came: one share is never copied.

    A share that is added belongs to the total, and may be changed.
    """

    def __init__(self) -> None:
        self.parts: dict[tuple[int, int], Tensor] = {}

    def add(self, part: slice, share: Tensor) -> None:
        """Add a share to a slice."""
        for (start, stop), known in self.parts.items():
            if start <= part.start and part.stop <= stop:
                known[:, :, part.start - start : part.stop - start].add_(share)
                return
        self.parts[part.start, part.stop] = share

    def add_to(self, array: Tensor) -> None:
        """Add the sum to an array."""
        for (start, stop), share in self.parts.items():
            array[:, :, start:stop].add_(share)

    def write_to(self, array: Tensor) -> None:
        """Write the sum into an array that is not initialized. The total is used up."""
        start, stop = max(self.parts, key=lambda part: part[1] - part[0], default=(0, 0))
        if start:
            array[:, :, :start].zero_()
        if stop < array.shape[2]:
            array[:, :, stop:].zero_()
        if self.parts:
            array[:, :, start:stop].copy_(self.parts.pop((start, stop)))
        self.add_to(array)

    def of_rows(self, rows: Tensor) -> Tensor:
        """The sum as an array for these rows, in the accumulate dtype. The total is used up."""
        array = self.parts.pop((0, rows.shape[2]), None)
        if array is None:
            array = empty_rows(rows, rows.shape[3]).zero_()
        self.add_to(array)
        return array


def finish(state: Stats) -> tuple[Tensor, Tensor]:
    """(output, lse) after the one division; a row that saw nothing: output 0, lse -inf.

    The state is used up.
    """
    divisor = torch.where(state.sum == 0, 1, state.sum)
    return state.output.div_(divisor[..., None]), state.max + divisor.log()


def finite_or_zero(top: Tensor) -> Tensor:
    """The maximum to subtract: 0 for a row that saw nothing."""
    return top.masked_fill(top == -torch.inf, 0)
