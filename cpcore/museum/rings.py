"""A ring in its published form: every block gives (output, lse), and pairs are merged.

Owns two guards that the running state of `cpcore.chunks` has built in, each a method of its own, so
that an exhibit can leave one out. Right as it stands: it passes every check.
"""

import numpy as np

from cpcore.checks import Array
from cpcore.dense import dense_attention
from cpcore.layouts import Layout
from cpcore.museum.system import Answer, Case, System

Pair = tuple[Array, Array]


class PairRing(System):
    """Attention over the blocks of a ring, merged as (output, lse), replayed from the row's lse."""

    def shift(self, lse: Array) -> Array:
        """What to subtract from the lse of two pairs: the larger, or 0 if neither saw a key."""
        return np.where(np.isneginf(lse), 0, lse)

    def saved(self, lse: Array) -> Array:
        """What to subtract from the scores of a row: its lse, or 0 if it saw no key."""
        return np.where(np.isneginf(lse), 0, lse)

    def merge(self, acc: Pair, block: Pair) -> Pair:
        """Both pairs weighted by their mass."""
        top = self.shift(np.maximum(acc[1], block[1]))
        with np.errstate(invalid="ignore", divide="ignore"):
            masses = [np.exp(lse - top) for _, lse in (acc, block)]
            total = np.maximum(masses[0] + masses[1], np.finfo(top.dtype).tiny)
            outputs = zip((acc[0], block[0]), masses, strict=True)
            output = sum(out * (mass / total)[..., None] for out, mass in outputs)
            empty = np.isneginf(acc[1]) & np.isneginf(block[1]) & (top == 0)
            return np.asarray(output), np.where(empty, -np.inf, top + np.log(total))

    def attend(self, case: Case, layout: Layout) -> Answer:
        """Every rank merges the blocks in ring order; then it replays them."""
        q, k = self.turned(case, layout)
        q, k, v = (_without_padding(x, case) for x in (q, k, case.value))
        results, size = [], layout.cp_size
        for rank, rows in enumerate(layout.owned):
            mine = q[..., rows, :]
            shape = (*mine.shape[:-1], v.shape[-1])
            acc = np.zeros(shape, q.dtype), np.full(shape[:-1], -np.inf, q.dtype)
            for owner in ((rank - step) % size for step in range(size)):
                keys = layout.owned[owner]
                visible, keep = case.rule.block(rows, keys), _keep(case, rows, keys)
                block = k[..., keys, :], v[..., keys, :]
                acc = self.merge(acc, dense_attention(mine, *block, visible=visible, keep=keep))
            results.append(acc)
        fields = [list(x) for x in zip(*results, strict=True)]
        if case.dout is None:
            return self.gathered([*fields, *[[None] * size] * 3], layout)
        grads = self.replayed(case, layout, (q, k, v), results)
        return self.gathered([*fields, *(layout.shard(g) for g in grads)], layout)

    def replayed(
        self, case: Case, layout: Layout, arrays: tuple[Array, ...], results: list[Pair]
    ) -> list[Array]:
        """dq, dk and dv; every rank adds its share for the keys of all owners."""
        q, k, v = arrays
        group = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
        wide = [np.repeat(x, group, axis=-3) if group > 1 else x for x in (k, v)]
        dout, scale = _without_padding(np.asarray(case.dout), case), q.shape[-1] ** -0.5
        dq, dk, dv = np.zeros_like(q), *(np.zeros_like(x) for x in wide)
        every = np.arange(layout.seq_len)
        for rows, (out, lse) in zip(layout.owned, results, strict=True):
            visible, keep = case.rule.block(rows, every), _keep(case, rows, every)
            up = dout[..., rows, :]
            scores = np.where(visible, q[..., rows, :] @ wide[0].swapaxes(-1, -2) * scale, -np.inf)
            with np.errstate(invalid="ignore"):
                probs = np.exp(scores - self.saved(lse)[..., None])
                kept = probs if keep is None else probs * keep
                delta = (up * np.where(np.isneginf(lse)[..., None], 0, out)).sum(axis=-1)
                dscores = kept * (up @ wide[1].swapaxes(-1, -2)) - probs * delta[..., None]
                dq[..., rows, :] = dscores @ wide[0] * scale
                dk += dscores.swapaxes(-1, -2) @ q[..., rows, :] * scale
                dv += kept.swapaxes(-1, -2) @ up
        folded = [x.reshape(*y.shape[:-2], group, *y.shape[-2:]).sum(-3) if group > 1 else x
                  for x, y in ((dk, k), (dv, v))]  # fmt: skip
        return [dq, *folded]


def _without_padding(x: Array, case: Case) -> Array:
    """`x` with zeros in every slot of padding."""
    padding = case.rule.padding(np.arange(x.shape[-2]))
    return np.where(padding[:, None], 0, x)


def _keep(case: Case, rows: Array, keys: Array) -> Array | None:
    """The dropout factor of a block."""
    dropout = case.dropout
    return None if dropout is None else dropout.factor(case.query.shape, rows, keys)
