"""Random attention problems for ranks that are processes or threads, one per number.

A number fixes everything. The cell (protocol, layout, rule) follows from it by counting and the
dtype alternates, so that any `2 * len(CELLS)` consecutive numbers hold every cell in both dtypes.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpcore import Dropout, Layout, Visibility
from cpcore.distributed.plan import plan
from cpcore.schedule import PROTOCOLS
from tests.support.random_runs import LAYOUTS, RULES, drawn_layout, drawn_rule
from tests.support.relation import double_loop
from tests.support.tolerance import Problem

Array = NDArray[Any]
ALL_PROTOCOLS = (*PROTOCOLS, "all_to_all")
CELLS = tuple(itertools.product(ALL_PROTOCOLS, LAYOUTS, RULES))
# (query heads, key heads) that all_to_all can divide among so many ranks, and one that it cannot
HEADS = {
    1: [(1, 1), (2, 1), (4, 2), (3, 3)],
    2: [(2, 2), (4, 2), (2, 1), (3, 3)],
    3: [(3, 3), (6, 3), (3, 1), (4, 2)],
    4: [(4, 4), (8, 4), (4, 2), (6, 3)],
    5: [(5, 5), (5, 1), (10, 5), (4, 4)],
}


@dataclass(frozen=True, repr=False)
class RankCase:
    """One configuration with its arrays in logical order."""

    number: int
    cp_size: int
    cell: tuple[str, str, str]
    layout: Layout
    rule: dict[str, Any] | None
    problem: Problem
    dropout: Dropout | None
    plain: bool  # plain math for every piece
    tile: int

    def __repr__(self) -> str:
        return f"rank_case({self.number}, {self.cp_size}): {', '.join(self.cell)}"

    @property
    def visibility(self) -> Visibility | None:
        return None if self.rule is None else Visibility(**self.rule)

    @property
    def protocol(self) -> str:
        return self.cell[0]

    @property
    def heads(self) -> tuple[int, int]:
        return self.problem.q.shape[1], self.problem.k.shape[1]

    @property
    def refused(self) -> bool:
        """Whether heads cannot be divided: a rank needs whole query heads and their key heads."""
        q_heads, kv_heads = self.heads
        uneven = q_heads % self.cp_size or (kv_heads % self.cp_size and self.cp_size % kv_heads)
        return self.protocol == "all_to_all" and bool(uneven)

    def arrays(self) -> list[Array]:
        p = self.problem
        return [p.q, p.k, p.v, np.asarray(p.dout)]

    def shards(self, rank: int) -> list[Array]:
        return [self.layout.shard(x)[rank] for x in self.arrays()]

    def pieces(self) -> int:
        """The most pieces that one row's state is merged from, counted generously."""
        if self.protocol == "all_to_all":
            return 1 + self.layout.seq_len // self.tile
        turns = plan(self.layout, self.visibility, self.protocol, 0).forward
        tiles = sum(1 + len(turn.positions) // self.tile for turn in turns)
        return max(tiles, sum(len(turn.pieces) for turn in turns))


def rank_case(number: int, cp_size: int) -> RankCase:
    """The configuration of this number on so many ranks."""
    cell = CELLS[number // 2 % len(CELLS)]
    rng = np.random.default_rng([number, cp_size])
    seq_len = int(rng.integers(cp_size, 25) if rng.random() > 0.1 else rng.integers(1, cp_size + 1))
    cuts = np.sort(rng.integers(0, seq_len + 1, rng.integers(0, 4))).tolist()
    bounds = np.array([0, *cuts, seq_len])
    rule = drawn_rule(rng, cell[2], bounds)
    layout = drawn_layout(rng, cell[1], cp_size, bounds)
    dtype = (np.float64, np.float32)[number % 2]
    problem, dropout = _problem(rng, rule, seq_len, HEADS[cp_size][_which(rng)], dtype)
    plain, tile = bool(rng.random() < 0.3), int(rng.choice([512, 512, 3]))
    return RankCase(number, cp_size, cell, layout, rule, problem, dropout, plain, tile)


def _which(rng: np.random.Generator) -> int:
    """Seldom the last entry, which all_to_all refuses."""
    return 3 if rng.random() < 0.1 else int(rng.integers(3))


def _problem(
    rng: np.random.Generator,
    rule: dict[str, Any] | None,
    seq_len: int,
    heads: tuple[int, int],
    dtype: Any,
) -> tuple[Problem, Dropout | None]:
    q_heads, kv_heads = heads
    batch, width = int(rng.integers(1, 3)), int(rng.integers(1, 6))
    value_width = width if rng.random() < 0.7 else int(rng.integers(1, 5))
    padded = np.zeros(seq_len, bool)
    if rule is not None and rule.get("documents") is not None:
        padded = rule["documents"] == -1
    garbage = [0, 200, np.nan, np.inf][rng.integers(4)]

    def numbers(heads: int, width: int, size: float = 1.0) -> Array:
        array = (size * rng.standard_normal((batch, heads, seq_len, width))).astype(dtype)
        array[..., padded, :] = garbage
        return array

    size = [1.0, 1.0, 0.0, 1e-3, 8.0][rng.integers(5)]
    q, k = numbers(q_heads, width, size), numbers(kv_heads, width, size)
    v, dout = numbers(kv_heads, value_width), numbers(q_heads, value_width)
    every = range(seq_len)
    visible = None if rule is None else double_loop(every, every, rule)
    scale = [None, None, 0.3, -1.5][rng.integers(4)]
    if rng.random() > 0.3:
        return Problem(q, k, v, visible, scale, None, dout), None
    dropout = Dropout(float(rng.choice([0.2, 0.7])), int(rng.integers(2**32)))
    keep = dropout.keep(*np.ix_(range(batch), range(q_heads), every, every)) / (1 - dropout.rate)
    return Problem(q, k, v, visible, scale, keep, dout), dropout
