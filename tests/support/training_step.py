"""A whole training step, once without ranks and once rank by rank with a seam for each mistake."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpcore import (
    ChunkStats,
    Layout,
    Visibility,
    attention_chunk_stats,
    dense_attention,
    dense_attention_backward,
    empty_stats,
    finalize,
    merge_chunk_stats,
)
from cpcore.loss import IGNORE, loss_gradient, loss_sum, mean_loss, next_token_labels
from cpcore.positions import rotary
from cpcore.replay import block_gradients

Array = NDArray[Any]
Gradients = tuple[Array, Array, Array]
WIDTH, Q_HEADS, KV_HEADS, HEAD_DIM, VALUE_DIM, VOCABULARY = 6, 4, 2, 4, 3, 7
SCALE = HEAD_DIM**-0.5
RESULTS = ("output", "lse", "loss", "dq", "dk", "dv", "weights")


@dataclass(frozen=True)
class Batch:
    """One sequence and the weights; `labels` None: the loss is Σ pull · logits."""

    x: Array  # (S, WIDTH)
    weights: tuple[Array, Array, Array, Array]  # of query, key, value and logits
    pull: Array  # (S, VOCABULARY)
    tokens: Array  # (S,)
    documents: Array  # (S,)
    labels: Array | None

    @property
    def rule(self) -> Visibility:
        return Visibility(documents=self.documents)

    def projected(self) -> Gradients:
        """Query, key and value (heads, S, ·), not turned."""
        q, k, v = (self.x @ w for w in self.weights[:3])
        return heads(q, Q_HEADS), heads(k, KV_HEADS), heads(v, KV_HEADS)


def batch(seq_len: int, *, labeled: bool, real: int | None = None, ignored: Any = ()) -> Batch:
    """Random numbers; slots from `real` on are padding, `ignored` positions have no label."""
    rng = np.random.default_rng(7)
    columns = Q_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, KV_HEADS * VALUE_DIM
    wq, wk, wv = (0.5 * rng.standard_normal((WIDTH, n)) for n in columns)
    wo = rng.standard_normal((Q_HEADS * VALUE_DIM, VOCABULARY))
    x, pull = rng.standard_normal((seq_len, WIDTH)), rng.standard_normal((seq_len, VOCABULARY))
    documents = np.zeros(seq_len, int)
    if real is not None:
        documents[real:] = -1
    tokens = rng.integers(0, VOCABULARY, seq_len)
    labels = next_token_labels(tokens, documents)
    labels[list(ignored)] = IGNORE
    return Batch(x, (wq, wk, wv, wo), pull, tokens, documents, labels if labeled else None)


def heads(x: Array, count: int) -> Array:
    """(S, heads · n) as (heads, S, n)."""
    return x.reshape(len(x), count, -1).swapaxes(0, 1)


def flat(x: Array) -> Array:
    """(heads, S, n) as (S, heads · n)."""
    return x.swapaxes(0, 1).reshape(x.shape[-2], -1)


def turned_back(gradient: Array, positions: Array, turn: Any = rotary) -> Array:
    """The gradient of what was turned: the transpose of each row's rotation."""
    shape = gradient.shape[-2:]
    columns = np.stack([turn(np.broadcast_to(e, shape), positions) for e in np.eye(shape[-1])])
    return np.asarray(np.einsum("jsi,...si->...sj", columns, gradient))


def weight_gradients(
    x: Array, output: Array, dlogits: Array, gradients: Gradients
) -> tuple[Array, ...]:
    """What these rows add to the gradient of each weight."""
    return (*(x.T @ flat(g) for g in gradients), flat(output).T @ dlogits)


def together(weights: Any) -> Array:
    """All weight gradients as one vector."""
    return np.concatenate([w.ravel() for w in weights])


def dense_step(b: Batch) -> dict[str, Array]:
    """The right results, of the whole sequence at once."""
    pos = np.arange(len(b.x))
    q, k, v = b.projected()
    q, k, visible = rotary(q, pos), rotary(k, pos), b.rule.block(pos, pos)
    output, lse = dense_attention(q, k, v, visible=visible)
    logits = flat(output) @ b.weights[3]
    if b.labels is None:
        loss, dlogits = float((b.pull * logits).sum()), b.pull
    else:
        part = loss_sum(logits, b.labels)
        loss, dlogits = part.sum / part.count, loss_gradient(logits, b.labels, part.count)
    dout = heads(dlogits @ b.weights[3].T, Q_HEADS)
    dq, dk, dv = dense_attention_backward(q, k, v, dout, visible=visible)
    dq, dk = turned_back(dq, pos), turned_back(dk, pos)
    weights = together(weight_gradients(b.x, output, dlogits, (dq, dk, dv)))
    return dict(zip(RESULTS, (output, lse, np.asarray(loss), dq, dk, dv, weights), strict=True))


class Step:
    """The same step by the ranks of a layout; a wrong one replaces a method or two."""

    def __init__(self, b: Batch, layout: Layout) -> None:
        self.batch, self.layout = b, layout
        self.ranks = range(layout.cp_size)

    def turn(self, x: Array, positions: Array) -> Array:
        return rotary(x, positions)

    def exchanged(self, k: Array, v: Array) -> tuple[Array, Array]:
        """The keys and values that are sent."""
        return k, v

    def home(self, gradient: Array) -> Array:
        """The gradient of a key or value from that of what was sent."""
        return gradient

    def visible(self, rank: int, owner: int) -> Array:
        return self.batch.rule.block(self.layout.owned[rank], self.layout.owned[owner])

    def merge(self, acc: ChunkStats, chunk: ChunkStats) -> ChunkStats:
        return merge_chunk_stats(acc, chunk)

    def chunks(self, rank: int) -> list[ChunkStats]:
        """What each owner's keys contribute to the rank's rows."""
        blocks = enumerate(zip(self.k, self.v, strict=True))
        return [
            attention_chunk_stats(self.q[rank], k, v, visible=self.visible(rank, owner))
            for owner, (k, v) in blocks
        ]

    def forward(self, rank: int) -> tuple[Array, Array]:
        acc = empty_stats(self.q[rank].shape[:-1], VALUE_DIM, np.float64)
        for chunk in self.chunks(rank):
            acc = self.merge(acc, chunk)
        return finalize(acc)

    def block_backward(self, rank: int, owner: int, dout: Array) -> Gradients:
        """Right formulas on the output and lse that were saved."""
        output, lse = self.saved[rank]
        delta = (dout * output).sum(axis=-1)
        q, k, v = self.q[rank], self.k[owner], self.v[owner]
        return block_gradients(q, k, v, dout, lse, delta, self.visible(rank, owner), SCALE)

    def backward(self, douts: list[Array]) -> list[Gradients]:
        """Each rank's dq, dk and dv of what was turned and sent."""
        parts = [[self.block_backward(r, o, douts[r]) for o in self.ranks] for r in self.ranks]
        by_owner = [[parts[r][o] for r in self.ranks] for o in self.ranks]
        return [
            (
                self.total([part[0] for part in parts[rank]]),
                self.total([part[1] for part in by_owner[rank]]),
                self.total([part[2] for part in by_owner[rank]]),
            )
            for rank in self.ranks
        ]

    def total(self, parts: list[Array]) -> Array:
        return np.asarray(np.sum(parts, axis=0))

    def reduce(self, parts: list[Array]) -> Array:
        """One weight's gradient from those of the ranks."""
        return self.total(parts)

    def labels(self) -> list[Array]:
        assert self.batch.labels is not None
        return self.layout.shard(self.batch.labels, axis=0)

    def head(self, logits: list[Array]) -> tuple[float, list[Array]]:
        """The loss, and its gradient for each rank's logits."""
        if self.batch.labels is not None:
            return self.labeled(logits, self.labels())
        pull = self.layout.shard(self.batch.pull)
        losses = [(p * x).sum() for p, x in zip(pull, logits, strict=True)]
        return float(sum(losses)), pull

    def labeled(self, logits: list[Array], labels: list[Array]) -> tuple[float, list[Array]]:
        pairs = list(zip(logits, labels, strict=True))
        parts = [loss_sum(*pair) for pair in pairs]
        count = sum(part.count for part in parts)
        return mean_loss(parts), [loss_gradient(*pair, count) for pair in pairs]

    def run(self) -> dict[str, Array]:
        b, layout = self.batch, self.layout
        q, k, self.v = (layout.shard(x) for x in b.projected())
        self.q = [self.turn(x, pos) for x, pos in zip(q, layout.owned, strict=True)]
        self.k = [self.turn(x, pos) for x, pos in zip(k, layout.owned, strict=True)]
        sent = [self.exchanged(*pair) for pair in zip(self.k, self.v, strict=True)]
        self.k, self.v = [k for k, _ in sent], [v for _, v in sent]
        self.saved = [self.forward(rank) for rank in self.ranks]
        outputs = [output for output, _ in self.saved]
        loss, dlogits = self.head([flat(output) @ b.weights[3] for output in outputs])
        gradients = []
        douts = [heads(d @ b.weights[3].T, Q_HEADS) for d in dlogits]
        for pos, (dq, dk, dv) in zip(layout.owned, self.backward(douts), strict=True):
            dq, dk = (turned_back(g, pos, self.turn) for g in (dq, self.home(dk)))
            gradients.append((dq, dk, self.home(dv)))
        rows = zip(layout.shard(b.x), outputs, dlogits, gradients, strict=True)
        by_weight = zip(*(weight_gradients(*row) for row in rows), strict=True)
        weights = together([self.reduce(list(parts)) for parts in by_weight])
        dq, dk, dv = (layout.unshard(list(parts)) for parts in zip(*gradients, strict=True))
        lse = layout.unshard([lse for _, lse in self.saved], axis=-1)
        values = (layout.unshard(outputs), lse, np.asarray(loss), dq, dk, dv, weights)
        return dict(zip(RESULTS, values, strict=True))


def agreeing(got: dict[str, Array], right: dict[str, Array]) -> set[str]:
    """The results within 100·eps of the largest right number; the others differ by over 1e-6."""
    agree = set()
    for name in RESULTS:
        finite = np.isfinite(right[name])
        largest = max(1, np.abs(right[name][finite]).max())
        with np.errstate(invalid="ignore"):
            apart = np.where(got[name] == right[name], 0, np.abs(got[name] - right[name])).max()
        within = bool(apart <= 100 * np.finfo(np.float64).eps * largest)
        assert within or np.isnan(apart) or apart > 1e-6, f"{name}: {apart}, neither right nor off"
        agree |= {name} if within else set()
    return agree
