"""Scores in full, and the forms in which arrays enter a product or a kernel.

Owns grouping of heads, widening, and what a fused kernel cannot tell about scores that overflow.
"""

import torch
from torch import Tensor

from cpcore.distributed.state import accumulate_dtype


def scores_of(q: Tensor, k: Tensor, scale: float, visible: Tensor | None) -> Tensor:
    """Scaled scores (B, Hq, Q, K), -inf where hidden."""
    scores = grouped(wide(q) * scale, k) @ wide(k).mT
    scores = scores.reshape(*q.shape[:-1], k.shape[-2])
    return scores if visible is None else scores.masked_fill_(~visible, -torch.inf)


def overflow_shown(q: Tensor, k: Tensor, lse: Tensor, scale: float, triangle: bool) -> Tensor:
    """A kernel's lse, -inf where it is 0 because every score that the row sees is -inf."""
    rows = (lse == 0).any(dim=1).any(dim=0).nonzero()[:, 0]
    seen = torch.arange(k.shape[-2], device=k.device) <= rows[:, None] if triangle else None
    top = scores_of(q[:, :, rows], k, scale, seen).amax(dim=-1)
    lse[:, :, rows] = lse[:, :, rows].masked_fill(top.isneginf(), -torch.inf)
    return lse


def grouped(rows: Tensor, shared: Tensor) -> Tensor:
    """(B, Hq, Q, n) -> (B, Hkv, group·Q, n): rows of the heads that share a key head."""
    return rows.reshape(len(rows), shared.shape[1], -1, rows.shape[-1])


def wide(x: Tensor) -> Tensor:
    """The array in the dtype in which sums are kept."""
    return x.to(accumulate_dtype(x.dtype))


def dense(x: Tensor) -> Tensor:
    """The array with the numbers of each row side by side in memory."""
    return x if x.stride(-1) == 1 else x.contiguous()
