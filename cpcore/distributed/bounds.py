"""The right answer of an attention in float64, and how far rounding may move each element from it.

Owns the reference by torch autograd over the whole sequence, and the error bound of the project:
4 eps (A + √n) M + tiny / eps, with eps and tiny of the dtype in which sums are kept, M the same
formula on absolute values, A = 1 + the largest Σ|q||k| · scale + ln(most keys of a row), and n at
most the keys of a row. Results of 16 bits are rounded once more, and fused kernels round
probabilities to 16 bits as well: that adds 2 eps16 (M + |result|).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

RESULTS = ("output", "dq", "dk", "dv")
HALF = (torch.float16, torch.bfloat16)


class Problem(NamedTuple):
    """One attention of a whole sequence, padding slots zero.

    Shapes: q (B, Hq, S, D), k (B, Hkv, S, D), v and dout (…, S, Dv), visible (S, S) bool, keep the
        dropout factor (B, Hq, S, S) or None.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    dout: Tensor
    visible: Tensor
    scale: float
    keep: Tensor | None

    def wide(self) -> Problem:
        """The same numbers in float64."""
        q, k, v, dout = (x.to(torch.float64) for x in self[:4])
        keep = None if self.keep is None else self.keep.to(torch.float64)
        return Problem(q, k, v, dout, self.visible, self.scale, keep)

    @property
    def factor(self) -> Tensor:
        """What probabilities are multiplied by."""
        return torch.ones((), dtype=torch.float64) if self.keep is None else self.keep


def solve(problem: Problem) -> dict[str, Tensor]:
    """Output and gradients in float64, key heads repeated and every score at once."""
    p = problem.wide()
    leaves = [x.clone().requires_grad_() for x in (p.q, p.k, p.v)]
    q, k, v = leaves[0], *(_per_query_head(x, p.q) for x in leaves[1:])
    output = (_probabilities(p, q, k) * p.factor) @ v
    output.backward(p.dout)  # type: ignore[no-untyped-call]
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]
    return dict(zip(RESULTS, (output.detach(), *gradients), strict=True))


def allowed(problem: Problem, right: dict[str, Tensor]) -> dict[str, Tensor]:
    """The largest difference from `right` that rounding explains, element by element."""
    p, dtype = problem.wide(), problem.q.dtype
    kept = torch.finfo(torch.float32 if dtype in HALF else dtype)
    q, k, v = p.q.abs(), *(_per_query_head(x.abs(), p.q) for x in (p.k, p.v))
    probs = _probabilities(p, p.q, _per_query_head(p.k, p.q))
    strength = torch.where(p.visible, q @ k.transpose(-1, -2) * abs(p.scale), 0.0)
    keys = max(1, int(p.visible.sum(dim=-1).max())) if p.visible.numel() else 1
    largest = float(strength.max()) if strength.numel() else 0.0
    unit = 4 * kept.eps * (1 + largest + math.log(keys) + math.sqrt(keys))
    kept_probs, dout = probs * p.factor, p.dout.abs()
    output = kept_probs @ v
    flow = (dout @ v.transpose(-1, -2)) * p.factor
    dscores = probs * (flow + (dout * output).sum(dim=-1, keepdim=True)) * abs(p.scale)
    sizes = (
        output,
        dscores @ k,
        _per_key_head(dscores.transpose(-1, -2) @ q, p.k),
        _per_key_head(kept_probs.transpose(-1, -2) @ dout, p.v),
    )
    bounds = {}
    for name, size in zip(RESULTS, sizes, strict=True):
        bounds[name] = unit * size + kept.tiny / kept.eps
        if dtype in HALF:
            half = torch.finfo(dtype)
            bounds[name] += 2 * half.eps * (size + right[name].abs()) + half.tiny * half.eps
    return bounds


def worst(got: Tensor, want: Tensor, bound: Tensor) -> float:
    """The largest error as a share of what is allowed; infinite for NaN or another shape."""
    if got.shape != want.shape:
        return math.inf
    share = ((got.to(torch.float64) - want).abs() / bound).nan_to_num(nan=math.inf)
    return float(share.max()) if share.numel() else 0.0


def _probabilities(p: Problem, q: Tensor, k: Tensor) -> Tensor:
    """Softmax over visible keys; 0 everywhere in a row that sees none."""
    some = p.visible.any(dim=-1, keepdim=True)
    scores = (q @ k.transpose(-1, -2) * p.scale).masked_fill(~p.visible, -torch.inf)
    # A softmax over nothing is NaN, and so is its gradient: such a row gets scores of 0 first.
    return torch.where(some & p.visible, scores.masked_fill(~some, 0.0).softmax(dim=-1), 0.0)


def _per_query_head(x: Tensor, q: Tensor) -> Tensor:
    """Key heads repeated: query head h reads key head h // group."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def _per_key_head(x: Tensor, k: Tensor) -> Tensor:
    """Summed over the query heads that share a key head."""
    group = x.shape[1] // k.shape[1]
    return x.reshape(x.shape[0], k.shape[1], group, *x.shape[2:]).sum(dim=2)
