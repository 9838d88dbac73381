"""Numbers of the laboratory: fixed inputs, the run of one computation path, and the reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cpcore.dense import dense_attention, dense_attention_backward
from cpcore.layouts import Layout, from_lengths
from cpcore.masks import Visibility
from cpcore.results import Run
from cpcore.ring import simulate
from cpcore.schedule import Event

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]
POSITIONS, WIDTH, EMPTY_ROW = 5, 2, 3
INPUTS = {
    "q": np.array([[0.6, -0.2], [0.1, 0.9], [-0.7, 0.4], [1.1, 0.3], [0.5, -1.0]]),
    "k": np.array([[0.3, 0.8], [-0.5, 0.2], [0.9, -0.4], [-0.2, 1.0], [0.7, 0.5]]),
    "v": np.array([[1.0, -0.5], [0.2, 0.8], [-0.6, 1.2], [0.9, 0.1], [-0.3, -0.7]]),
    "dout": np.array([[0.4, -0.3], [-0.8, 0.5], [0.7, 0.2], [-0.1, 0.9], [0.6, -0.4]]),
}
SPLITS = {"2-3": (2, 3), "1-4": (1, 4), "3-2": (3, 2), "4-1": (4, 1)}
BLOCKS = {"1": 1, "2": 2, "whole": None}
LOST = (1, 0)  # the return that is lost: from rank 1, of the gradients of rank 0's keys
RULES = {
    "causal": Visibility(),
    "full": Visibility(causal=False),
    "empty-row": Visibility(
        relation=np.repeat(np.arange(POSITIONS) != EMPTY_ROW, POSITIONS).reshape(POSITIONS, -1)
    ),
}
FAULTS: dict[str, str | tuple[str, int, int] | None] = {
    "correct": None,
    "local-masks": "local_masks",
    "mean": "equal_weight_mean",
    "lost": ("lost_return", *LOST),
}
NAMES = ("output", "dQ", "dK", "dV")
ROUNDING = 1e-13  # numbers here are near 1: some hundred units in the last place


@dataclass(frozen=True)
class Facts:
    """One computation path after all of its events, beside the reference."""

    layout: Layout
    rule: Visibility
    path: str
    run: Run
    results: tuple[Array, ...]  # output, dQ, dK, dV
    reference: tuple[Array, ...]

    @property
    def differences(self) -> tuple[float, ...]:
        """The largest absolute difference of each result."""
        pairs = zip(self.results, self.reference, strict=True)
        return tuple(float(np.abs(mine - right).max()) for mine, right in pairs)

    @property
    def right(self) -> bool:
        """Do all results equal the reference up to rounding?"""
        return max(self.differences) < ROUNDING

    @property
    def loss(self) -> float:
        """Σ dout · output / 5: a row that saw nothing counts too."""
        return _loss(self.results[0])

    @property
    def reference_loss(self) -> float:
        """The loss of the reference."""
        return _loss(self.reference[0])

    @property
    def events(self) -> list[Event]:
        """What the cursor visits: blocks with keys, and gradients sent.

        Under `direct` an event may carry only the other side of a message; it is left out here.
        """
        return [
            e
            for e in self.run.events
            if (e.sent_tokens if e.phase == "return" else e.key_stop - e.key_start)
        ]

    def mask(self, event: Event) -> Mask:
        """What the rank's queries see of the block, as this path numbers positions."""
        rows, keys = self.rows(event), self.keys(event)
        if self.path == "local-masks":
            rows, keys = np.arange(len(rows)), np.arange(event.key_start, event.key_stop)
        return self.rule.block(rows, keys)

    def rows(self, event: Event) -> Positions:
        """The positions of the rank's queries."""
        return self.layout.owned[event.rank]

    def keys(self, event: Event) -> Positions:
        """The positions of the block's keys."""
        return self.layout.owned[event.owner][event.key_start : event.key_stop]


def _loss(output: Array) -> float:
    return float((INPUTS["dout"] * output).sum() / POSITIONS)


@cache
def facts(split: str, block: str, visibility: str, path: str) -> Facts:
    """One state of the selectors: the run under `direct`, and dense attention."""
    layout, rule = from_lengths(SPLITS[split]), RULES[visibility]
    q, k, v, dout = INPUTS.values()
    upstream = dout / POSITIONS
    run = simulate(
        q, k, v, layout, rule,
        dout=upstream, protocol="direct", max_block=BLOCKS[block], fault=FAULTS[path],
    )  # fmt: skip
    everything = np.arange(POSITIONS)
    visible = rule.block(everything, everything)
    output, _ = dense_attention(q, k, v, visible=visible)
    grads = dense_attention_backward(q, k, v, upstream, visible=visible)
    results = tuple(np.asarray(x) for x in (run.output, run.dq, run.dk, run.dv))
    return Facts(layout, rule, path, run, results, (output, *grads))
