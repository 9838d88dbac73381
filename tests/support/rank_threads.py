"""Attention by one thread per rank: what each computes with the arrays that reach it.

Independent of the package: plain numpy on whole blocks, masks from a bool matrix. No thread
outlives `run_ranks`.
"""

import queue
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.message_passing import LIMIT_S, Peer, World

Array = NDArray[Any]


class RankThread(Peer):
    """One rank: forward, replay and return, each over the arrays that its links bring."""

    error: Exception | None = None
    workspace = 0

    def run(self) -> None:
        try:
            self.forward()
            self.backward()
        except Exception as error:
            self.error = error

    def tiles(self, phase: str) -> Iterator[tuple[int, slice, Array, Array, Array]]:
        """(owner, its keys, k, v per query head, scores with -inf where hidden), if any is seen."""
        done: Counter[int] = Counter()
        for owner, (k, v) in self.blocks(phase):
            keys = slice(done[owner], done[owner] + k.shape[-2])
            done[owner] = keys.stop
            seen = self.world.visible[np.ix_(self.world.owned[self.rank], self.world.owned[owner])]
            if seen[:, keys].any():
                group = len(self.q) // len(k)
                k, v = (np.repeat(x.astype(np.float64), group, axis=0) for x in (k, v))
                scores = self.q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])
                self.workspace = max(self.workspace, scores.size)
                yield owner, keys, k, v, np.where(seen[:, keys], scores, -np.inf)

    def forward(self) -> None:
        """Sums of exp(score - top) and of the values so weighted; top is the largest so far."""
        rows = self.q.shape[:-1]
        weighted, total, top = np.zeros((*rows, self.v.shape[-1])), np.zeros(rows), np.zeros(rows)
        for _, _, _, v, scores in self.tiles("forward"):
            higher = np.maximum(top, scores.max(axis=-1))
            weights, factor = np.exp(scores - higher[..., None]), np.exp(top - higher)
            weighted = weighted * factor[..., None] + weights @ v
            total, top = total * factor + weights.sum(axis=-1), higher
        self.online_state = weighted.size + total.size + top.size
        some = np.where(total == 0, 1, total)
        self.output = weighted / some[..., None]
        self.lse = np.where(total == 0, -np.inf, top + np.log(some))

    def backward(self) -> None:
        """P from the row's lse; each owner's share is kept apart until it is sent."""
        self.dq = np.zeros_like(self.q)
        heads, owned = len(self.k), self.world.owned
        widths = self.k.shape[-1], self.v.shape[-1]
        owed = [[np.zeros((heads, len(pos), w)) for w in widths] for pos in owned]
        delta = (self.dout * self.output).sum(axis=-1, keepdims=True)
        lse = np.where(np.isinf(self.lse), 0, self.lse)[..., None]
        for owner, keys, k, v, scores in self.tiles("replay"):
            probs = np.exp(scores - lse)
            dscores = probs * (self.dout @ v.swapaxes(-1, -2) - delta) / np.sqrt(k.shape[-1])
            self.dq += dscores @ k
            shares = dscores.swapaxes(-1, -2) @ self.q, probs.swapaxes(-1, -2) @ self.dout
            for total, share in zip(owed[owner], shares, strict=True):
                total[:, keys] += share.reshape(heads, -1, *share.shape[1:]).sum(axis=1)
        self.return_shares(owed)
        self.dk, self.dv = owed[self.rank]

    def held(self) -> dict[str, int]:
        """Elements by name: what the rank still holds at the end, and the peaks."""
        return {
            "qkv": self.q.size + self.k.size + self.v.size,
            "remote_block": self.remote_block,
            "online_state": self.online_state,
            "workspace": self.workspace,
            "output": self.output.size,
            "lse": self.lse.size,
            "gradients": self.dq.size + self.dk.size + self.dv.size,
        }


def run_ranks(world: World, q: Array, k: Array, v: Array, dout: Array) -> list[RankThread]:
    """All ranks to their end. Their errors are raised together; queues must be empty afterwards."""
    size = len(world.owned)
    links: Any = {pair: queue.Queue() for pair in product(range(size), repeat=2)}
    ranks = [RankThread(rank, world, links, [q, k, v, dout]) for rank in range(size)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(timeout=3 * LIMIT_S)
    assert not any(rank.is_alive() for rank in ranks)
    errors = [rank.error for rank in ranks if rank.error is not None]
    if errors:
        raise ExceptionGroup("ranks that failed", errors)
    assert all(link.empty() for link in links.values()), "a message was never received"
    return ranks
