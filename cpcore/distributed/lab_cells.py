"""The laboratory's cells: inputs, ways to split, masks and paths, and what each must show.

Owns the five positions of the two-owner laboratory and the reference by torch autograd. Leaves out
processes (`lab_ranks`) and verdicts (`lab`).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cpcore.layouts import Layout, from_lengths
from cpcore.masks import Visibility
from cpcore.schedule import Event, schedule

Array = NDArray[Any]
POSITIONS, WIDTH, EMPTY_ROW = 5, 2, 3
INPUTS: dict[str, Array] = {
    "q": np.array([[0.6, -0.2], [0.1, 0.9], [-0.7, 0.4], [1.1, 0.3], [0.5, -1.0]]),
    "k": np.array([[0.3, 0.8], [-0.5, 0.2], [0.9, -0.4], [-0.2, 1.0], [0.7, 0.5]]),
    "v": np.array([[1.0, -0.5], [0.2, 0.8], [-0.6, 1.2], [0.9, 0.1], [-0.3, -0.7]]),
    "dout": np.array([[0.4, -0.3], [-0.8, 0.5], [0.7, 0.2], [-0.1, 0.9], [0.6, -0.4]]),
}
SPLITS = {"2+3": (2, 3), "1+4": (1, 4), "1+0+4": (1, 0, 4), "2+1+1+1": (2, 1, 1, 1)}
RULES = {
    "causal": Visibility(),
    "full": Visibility(causal=False),
    "empty row": Visibility(
        relation=np.repeat(np.arange(POSITIONS) != EMPTY_ROW, POSITIONS).reshape(POSITIONS, -1)
    ),
}
BLOCKS: dict[str, int | None] = {"whole shard": None, "2 positions": 2, "1 position": 1}
# path -> what it gets wrong; all the rest must be right
PATHS: dict[str, frozenset[str]] = {
    "correct": frozenset(),
    "lost gradient": frozenset({"dk", "dv"}),
    "wrong divisor": frozenset({"loss", "dq", "dk", "dv"}),
}
# how a rank works -> protocols; the player takes each message by itself, in blocks of any size
CODES = {"player": ("ring", "direct"), "attention": ("ring", "all_gather")}
RESULTS = ("output", "lse", "dq", "dk", "dv")


class Cell(NamedTuple):
    """One experiment, by names."""

    split: str
    visibility: str
    block: str
    path: str
    code: str
    protocol: str

    @property
    def layout(self) -> Layout:
        """Who owns which position."""
        return from_lengths(SPLITS[self.split])

    @property
    def rule(self) -> Visibility:
        """Who sees whom."""
        return RULES[self.visibility]

    @property
    def events(self) -> list[Event]:
        """The whole schedule, all ranks."""
        return _events(self)

    @property
    def lost(self) -> tuple[int, int] | None:
        """(rank, owner) of the return that is lost: the last rank's rows see the first one's keys.

        The other way nothing could be lost: under a causal rule no row of rank 0 sees a later key.
        """
        return (self.layout.cp_size - 1, 0) if self.path == "lost gradient" else None

    def upstream(self, positions: Array) -> Array:
        """dout over all five positions; on the wrong path over the rank's own number of rows."""
        own = self.path == "wrong divisor"
        return INPUTS["dout"][positions] / (max(1, len(positions)) if own else POSITIONS)


@cache
def _events(cell: Cell) -> list[Event]:
    block = BLOCKS[cell.block]
    return list(schedule(cell.layout, cell.rule, protocol=cell.protocol, max_block=block))


def cells(cp_size: int | None = None) -> list[Cell]:
    """Every experiment, or those for this many ranks."""
    found = []
    for split, (code, protocols) in product(SPLITS, CODES.items()):
        if cp_size is None or len(SPLITS[split]) == cp_size:
            blocks = list(BLOCKS) if code == "player" else ["whole shard"]
            names = product([split], RULES, blocks, PATHS, [code], protocols)
            found += [Cell(*each) for each in names]
    return found


@cache
def reference(visibility: str) -> dict[str, Array]:
    """All results of the whole sequence, by torch autograd; the loss is Σ dout · output / 5."""
    everything = np.arange(POSITIONS)
    visible = torch.from_numpy(RULES[visibility].block(everything, everything))
    q, k, v = (torch.tensor(INPUTS[name], requires_grad=True) for name in "qkv")
    some = visible.any(dim=-1, keepdim=True)
    scores = (q @ k.T * WIDTH**-0.5).masked_fill(~visible, -torch.inf)
    # A softmax over nothing is NaN: such a row sees everything, and its output is then set to 0.
    output = torch.where(some, scores.masked_fill(~some, 0.0).softmax(dim=-1) @ v, 0.0)
    loss = (torch.from_numpy(INPUTS["dout"]) * output).sum() / POSITIONS
    loss.backward()  # type: ignore[no-untyped-call]
    lse = torch.logsumexp(scores, dim=-1).detach()
    found = {"output": output.detach(), "lse": lse, "loss": loss.detach()}
    gradients = {f"d{n}": x.grad for n, x in zip("qkv", (q, k, v), strict=True)}
    return {name: np.asarray(x) for name, x in (found | gradients).items() if x is not None}
