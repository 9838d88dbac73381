"""Numbers of the merge stepper: presets, and what the core makes of them chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpcore.chunks import (
    ChunkStats,
    attention_chunk_stats,
    empty_stats,
    finalize,
    merge_chunk_stats,
)
from cpcore.dense import dense_attention
from cpcore.ui.summaries import Summary

CHUNKS, PER_CHUNK = 4, 2
KEYS = CHUNKS * PER_CHUNK
LAST = CHUNKS + 1  # the cursor's last position divides and compares
LN2, LN4 = float(np.log(2)), float(np.log(4))


@dataclass(frozen=True)
class Preset:
    """Scores and values of eight keys, and the chunks that the query may not see."""

    text: str
    scores: tuple[float, ...]
    values: tuple[float, ...]
    hidden: tuple[int, ...] = ()


PRESETS = {
    "hand": Preset("hand-sized", (0, LN2, LN4, 0, LN2, LN2, LN4, LN2), (6, 0, 2, 6, 3, 3, 1, 0)),
    "rising": Preset("rising maxima", (0, 1, 2, 3, 4, 5, 6, 7), (3, 1, 4, 1, 5, 9, 2, 6)),
    "empty-first": Preset(
        "first chunk all masked", (0, 0, 0, 0, 0, 0, 0, 0), (9, 9, 2, 4, 0, 6, 5, 1), (0,)
    ),
    "empty-middle": Preset(
        "a middle chunk all masked", (1, 0, 5, 5, 2, 0, 1, 3), (2, 8, 9, 9, 4, 0, 6, 1), (1,)
    ),
    "all-masked": Preset(
        "everything masked", (1, 0, 5, 5, 2, 0, 1, 3), (2, 8, 9, 9, 4, 0, 6, 1), (0, 1, 2, 3)
    ),
    "overflow": Preset(
        "scores near 100", (88, 95, 100, 90, 99, 101, 97, 85), (3, 1, 4, 1, 5, 9, 2, 6)
    ),
}
PRECISIONS = {"float64": np.float64, "float32": np.float32, "float16": np.float16}


@dataclass(frozen=True)
class Facts:
    """What the picture and the table both show after ``step`` moves of the cursor."""

    step: int
    inputs: str  # dtype of scores and values
    state: str  # dtype that sums are kept in
    order: tuple[int, ...]  # ranks in order of arrival
    hidden: tuple[int, ...]
    scores: NDArray[Any]
    values: NDArray[Any]
    weights: NDArray[Any]  # exp(score - max of the state), 0 for keys that are not in it
    before: Summary
    chunk: Summary | None  # the chunk that arrived in this step
    after: Summary
    factors: tuple[float, float]  # of the state, of the chunk
    finished: float
    lse: float
    dense: float  # float64 attention over the keys seen so far
    limit: float  # differences below this are rounding only
    plain: tuple[float, float]  # sum and output without subtracting a maximum

    @property
    def arrived(self) -> tuple[int, ...]:
        """Ranks whose chunk is in."""
        return self.order[: min(self.step, CHUNKS)]

    @property
    def right(self) -> bool:
        """Does the state, if finished now, equal dense attention over the same keys?"""
        return abs(self.finished - self.dense) <= self.limit

    @property
    def plain_answer(self) -> float:
        """Plain output over plain sum; a row that saw nothing has none."""
        total, output = self.plain
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.float64(output) / np.float64(total))

    @property
    def plain_right(self) -> bool:
        """Is the way without a maximum right as well?"""
        return bool(abs(self.plain_answer - self.dense) <= self.limit)


def facts(preset: str, order: str, precision: str, step: int) -> Facts:
    """Compute one state with the core."""
    chosen, dtype = PRESETS[preset], PRECISIONS[precision]
    scores, values = np.array(chosen.scores, dtype), np.array(chosen.values, dtype)
    ranks = tuple(range(CHUNKS))[:: 1 if order == "given" else -1]
    query = np.ones((1, 1), dtype)
    state = before = empty_stats((1,), 1, dtype)
    chunk = None
    for rank in ranks[:step]:
        mine = slice(PER_CHUNK * rank, PER_CHUNK * (rank + 1))
        visible = np.full((1, PER_CHUNK), rank not in chosen.hidden)
        chunk = attention_chunk_stats(
            query, scores[mine, None], values[mine, None], visible=visible, scale=1.0
        )
        before, state = state, merge_chunk_stats(state, chunk)
    output, lse = finalize(state, dtype)
    seen = np.repeat([r in ranks[:step] and r not in chosen.hidden for r in range(CHUNKS)], 2)
    dense = _dense(scores, values, seen)
    return Facts(
        step, precision, str(state.sum.dtype), ranks, chosen.hidden,
        scores, values, _weights(scores, seen, state),
        _summary(before), None if chunk is None else _summary(chunk), _summary(state),
        (_factor(before, state), 0.0 if chunk is None else _factor(chunk, state)),
        output.item(), lse.item(), dense, _limit(state, dtype, dense, values),
        _plain(scores[seen], values[seen], state),
    )  # fmt: skip


def _summary(stats: ChunkStats) -> Summary:
    return Summary(stats.max.item(), stats.sum.item(), stats.output.item())


def _factor(side: ChunkStats, merged: ChunkStats) -> float:
    """exp(own max - new max), and 0 for a side that saw nothing."""
    return float(np.exp(side.max - merged.max).item()) if side.sum.item() else 0.0


def _weights(scores: NDArray[Any], seen: NDArray[np.bool_], state: ChunkStats) -> NDArray[Any]:
    """What each key adds to the state's sum; the older keys shrink when the maximum rises."""
    shifted = np.where(seen, scores.astype(state.max.dtype), -np.inf) - (
        state.max if seen.any() else 0
    )
    weights: NDArray[Any] = np.exp(shifted)
    return weights


def _dense(scores: NDArray[Any], values: NDArray[Any], seen: NDArray[np.bool_]) -> float:
    """The oracle in float64, on the same (already rounded) inputs."""
    keys, columns = scores.astype(float)[:, None], values.astype(float)[:, None]
    out, _ = dense_attention(np.ones((1, 1)), keys, columns, visible=seen[None, :], scale=1.0)
    return float(out.item())


def _limit(state: ChunkStats, dtype: Any, dense: float, values: NDArray[Any]) -> float:
    """100 eps of the state's precision, and for float16 the one cast at the end."""
    cast = float(np.finfo(dtype).eps) * abs(dense) if dtype is np.float16 else 0.0
    return 100 * float(np.finfo(state.sum.dtype).eps) * float(np.abs(values).max()) + cast


def _plain(scores: NDArray[Any], values: NDArray[Any], state: ChunkStats) -> tuple[float, float]:
    """Sum and weighted values from exp(score) itself, in the state's precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.exp(scores.astype(state.sum.dtype))
        return float(weights.sum()), float((weights * values.astype(weights.dtype)).sum())
