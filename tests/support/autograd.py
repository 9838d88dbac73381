"""Attention and its gradients by torch autograd: an oracle that shares no line with ours."""

import numpy as np
import torch

from tests.support.tolerance import Answer, Problem


def by_autograd(problem: Problem) -> Answer:
    """All results by torch, key heads repeated by an explicit index."""
    seen = problem.seen
    rows, keys = seen.any(axis=-1)[..., None], seen.any(axis=-2)[..., None]
    heads = np.arange(problem.q.shape[-3]) if problem.q.ndim > 2 else None
    owner = None if heads is None else heads // (len(heads) // problem.k.shape[-3])
    used = keys if owner is None else keys[..., np.flatnonzero(np.diff(owner, prepend=-1)), :, :]
    parts = zip((problem.q, problem.k, problem.v), (rows, used, used), strict=True)
    q, k, v = (torch.tensor(np.where(use, x, 0), requires_grad=True) for x, use in parts)
    k_all, v_all = (x if owner is None else x[..., owner, :, :] for x in (k, v))
    mask, some = torch.tensor(seen.copy()), torch.tensor(rows)
    scores = (q @ k_all.transpose(-1, -2) * problem.factor).masked_fill(~mask, -torch.inf)
    scores = torch.where(some, scores, 0.0)  # a softmax over nothing would be NaN
    keep = 1.0 if problem.keep is None else torch.tensor(problem.keep)
    out = torch.where(some, (torch.softmax(scores, -1) * keep) @ v_all, 0.0)
    lse = np.where(rows[..., 0], torch.logsumexp(scores.detach(), -1).numpy(), -np.inf)
    out.backward(torch.tensor(np.where(rows, np.asarray(problem.dout), 0)))
    return Answer(out.detach().numpy(), lse, *(np.asarray(x.grad) for x in (q, k, v)))
