"""Numbers of the split explorer: presets, and what the core makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpcore.chunks import attention_chunk_stats, finalize
from cpcore.dense import dense_attention
from cpcore.masks import Visibility
from cpcore.pitfalls import equal_weight_mean

Array = NDArray[np.float64]
KEYS = 8
LN2, LN3, LN4 = (float(np.log(n)) for n in (2, 3, 4))
SPLITS = {
    "4-4": (4, 4),
    "3-5": (3, 5),
    "6-2": (6, 2),
    "2-2-4": (2, 2, 4),
    "1-1-6": (1, 1, 6),
    "4-0-4": (4, 0, 4),
    "2-2-2-2": (2, 2, 2, 2),
    "ones": (1,) * KEYS,
}
SCORES = {
    "rising": (0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5),
    "uniform": (0,) * KEYS,
    "peak": (0, 0, 0, 0, 0, 3, 0, 0),
    "equal-masses": (0, LN2, LN3, LN2, LN4, LN2, 0, 0),
    "future": (0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5),
}
QUERY_POSITION = np.array([3])  # matters only where the future is hidden
VALUES = {
    "mixed": (3, 1, 4, 1, 5, 9, 2, 6),
    "alternating": (2, 6, 2, 6, 2, 6, 2, 6),
    "constant": (5,) * KEYS,
    "one": (0, 0, 0, 0, 0, 8, 0, 0),
}


@dataclass(frozen=True)
class Facts:
    """What the picture and the table both show."""

    sizes: tuple[int, ...]
    scores: Array
    values: Array
    visible: NDArray[np.bool_]
    alone: Array  # weight of each key in its own chunk's softmax
    exact_weights: Array
    outputs: Array  # one per chunk
    shares: Array  # Z_b / Z, one per chunk
    exact: float
    mean: float

    @property
    def owners(self) -> list[int]:
        """The rank that owns each key."""
        return [rank for rank, size in enumerate(self.sizes) for _ in range(size)]

    @property
    def seeing(self) -> NDArray[np.bool_]:
        """True for the ranks that see at least one key: the n chunks of the mean."""
        return self.shares > 0

    @property
    def say(self) -> Array:
        """What the mean gives each rank: 1/n to those that see a key."""
        return np.where(self.seeing, 1 / self.seeing.sum(), 0.0)

    @property
    def error(self) -> float:
        """Mean minus exact."""
        return self.mean - self.exact

    @property
    def formula(self) -> float:
        """The same error from shares alone: the sum over b of (1/n - Z_b/Z) O_b."""
        return float(((self.say - self.shares) * self.outputs).sum())

    @property
    def right(self) -> bool:
        """Is the mean right up to rounding? Values here are at most ten."""
        return abs(self.error) < 1e-12


def facts(split: str, scores: str, values: str) -> Facts:
    """Compute one state with the core. Identity columns beside the values return the weights."""
    sizes, query = SPLITS[split], np.ones((1, 1))
    s, v = np.array(SCORES[scores], float), np.array(VALUES[values], float)
    visibility = Visibility(causal=scores == "future")
    visible = visibility.block(QUERY_POSITION, np.arange(KEYS))
    columns = np.column_stack([v, np.eye(KEYS)])  # (8, 1 + 8)
    whole, lse = dense_attention(query, s[:, None], columns, visible=visible, scale=1.0)
    cuts = np.cumsum(sizes)[:-1]
    keys, masks = np.split(s[:, None], cuts), np.split(visible, cuts, axis=1)
    ended = [
        finalize(attention_chunk_stats(query, k, c, visible=m, scale=1.0))
        for k, c, m in zip(keys, np.split(columns, cuts), masks, strict=True)
    ]
    outputs = np.array([out[0, 0] for out, _ in ended])
    alone = np.sum([out[0, 1:] for out, _ in ended], axis=0)  # chunks own disjoint keys
    shares = np.exp([float(part[0] - lse[0]) for _, part in ended])
    mean = equal_weight_mean(
        query, keys, np.split(v[:, None], cuts),
        visibility=visibility, query_positions=QUERY_POSITION, scale=1.0,
    )  # fmt: skip
    return Facts(
        sizes,
        s,
        v,
        visible[0],
        alone,
        whole[0, 1:],
        outputs,
        shares,
        float(whole[0, 0]),
        mean.item(),
    )
