"""Numbers of the network lab: one scalar graph, and a two-chunk sum computed by the core."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cpcore.chunks import ChunkStats, attention_chunk_stats, finalize, merge_chunk_stats
from cpcore.dense import dense_attention
from cpcore.ui.summaries import Summary

BIAS = -0.5
LAST = 4
LN2, LN4 = float(np.log(2)), float(np.log(4))
SCORES = ((0.0, LN2), (LN4, 0.0))  # exponentials 1, 2 | 4, 1: every number stays hand-sized
VALUES = ((6.0, 0.0), (2.0, 6.0))


@dataclass(frozen=True)
class Scalar:
    """The graph x·w + b, then sigmoid, and its gradients."""

    x: float
    w: float

    @property
    def product(self) -> float:
        """x·w"""
        return self.x * self.w

    @property
    def total(self) -> float:
        """x·w + b"""
        return self.product + BIAS

    @property
    def out(self) -> float:
        """sigmoid(x·w + b)"""
        return 1 / (1 + math.exp(-self.total))

    @property
    def slope(self) -> float:
        """d out / d total, which is also d out / d b."""
        return self.out * (1 - self.out)


@dataclass(frozen=True)
class TwoChunks:
    """The worked sum: a summary per chunk, both rescaled and added, one division."""

    left: Summary
    right: Summary
    merged: Summary
    factors: tuple[float, float]
    result: float
    dense: float


def two_chunks() -> TwoChunks:
    """The worked sum, computed by the core."""
    query = np.ones((1, 1))
    left, right = (
        attention_chunk_stats(query, np.array(s)[:, None], np.array(v)[:, None], scale=1.0)
        for s, v in zip(SCORES, VALUES, strict=True)
    )
    merged = merge_chunk_stats(left, right)
    keys, values = (np.concatenate(parts)[:, None] for parts in (SCORES, VALUES))
    dense, _ = dense_attention(query, keys, values, scale=1.0)
    keep, add = (float(np.exp(side.max - merged.max).item()) for side in (left, right))
    return TwoChunks(
        _summary(left), _summary(right), _summary(merged), (keep, add),
        finalize(merged)[0].item(), dense.item(),
    )  # fmt: skip


def _summary(stats: ChunkStats) -> Summary:
    return Summary(stats.max.item(), stats.sum.item(), stats.output.item())
