"""Random runs of `simulate`, one per seed, and their comparison with dense and with autograd.

A seed fixes everything. The cell (layout, rule, protocol) follows from it by counting, so that any
`len(CELLS) * n` consecutive seeds hold every cell n times; the rest is drawn.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import cpcore
from cpcore import Dropout, Layout, Run, Visibility, schedule, simulate, simulation
from cpcore.schedule import PROTOCOLS, Event
from tests.support.autograd import by_autograd
from tests.support.cases import FLOATS
from tests.support.relation import double_loop
from tests.support.tolerance import Answer, Problem, assert_within, reference, tolerance

Array = NDArray[Any]
LAYOUTS = ("contiguous", "striped", "zigzag", "from_lengths", "from_owned", "per_document")
RULES = ("full", "causal", "window", "two-sided window", "documents", "relation")
CELLS = tuple(itertools.product(LAYOUTS, RULES, PROTOCOLS))
FIELDS = ("output", "lse", "dq", "dk", "dv")


@dataclass(frozen=True)
class Drawn:
    """One configuration with its arrays, and what a run of it takes."""

    seed: int
    cell: tuple[str, str, str]
    layout: Layout
    rule: dict[str, Any] | None
    problem: Problem
    dropout: Dropout | None
    max_block: int | None
    tile: int

    @property
    def visibility(self) -> Visibility | None:
        return None if self.rule is None else Visibility(**self.rule)

    @cached_property
    def events(self) -> list[Event]:
        options: dict[str, Any] = {"protocol": self.cell[2], "max_block": self.max_block}
        return list(schedule(self.layout, self.visibility, **options))

    def simulate(self) -> Run:
        p = self.problem
        with patch.object(simulation, "TILE", self.tile):
            return simulate(
                p.q, p.k, p.v, self.layout, self.visibility, dout=p.dout, scale=p.scale,
                protocol=self.cell[2], max_block=self.max_block, dropout=self.dropout,
            )  # fmt: skip

    def pieces(self) -> int:
        """The most tiles that one row's state is merged from."""
        tiles = [0] * self.layout.cp_size
        for event in self.events:
            if event.phase == "forward" and event.pairs:
                pos = self.layout.owned[event.owner][event.key_start : event.key_stop]
                runs = np.split(pos, np.flatnonzero(np.diff(pos) != 1) + 1)
                tiles[event.rank] += sum(-(-len(run) // self.tile) for run in runs)
        return max(1, *tiles)


def drawn(seed: int) -> Drawn:
    """The configuration of this seed."""
    cell = CELLS[seed % len(CELLS)]
    rng = np.random.default_rng(seed)
    cp_size = int(rng.integers(1, 6))
    few, many = rng.integers(rng.random() > 0.1, cp_size + 1), rng.integers(1, 13)
    seq_len = int(few if rng.random() < 0.15 else many)
    cuts = np.sort(rng.integers(0, seq_len + 1, rng.integers(0, 4))).tolist()
    bounds = np.array([0, *cuts, seq_len])
    rule = drawn_rule(rng, cell[1], bounds)
    problem, dropout = _problem(rng, rule, seq_len)
    layout = drawn_layout(rng, cell[0], cp_size, bounds)
    max_block, tile = [None, None, 1, 2, 3, 50][rng.integers(6)], [512, 512, 2, 3][rng.integers(4)]
    return Drawn(seed, cell, layout, rule, problem, dropout, max_block, tile)


def drawn_layout(rng: np.random.Generator, kind: str, cp_size: int, bounds: Array) -> Layout:
    seq_len = int(bounds[-1])
    cuts = np.sort(rng.integers(0, seq_len + 1, cp_size - 1))
    if kind == "from_lengths":
        return cpcore.from_lengths(np.diff(cuts, prepend=0, append=seq_len).tolist())
    if kind == "from_owned":
        return cpcore.from_owned(np.split(rng.permutation(seq_len), cuts))
    if kind == "per_document":
        inner = [cpcore.zigzag, cpcore.contiguous, cpcore.striped][rng.integers(3)]
        return cpcore.per_document(bounds, cp_size, inner)
    if kind == "striped":
        return cpcore.striped(seq_len, cp_size, stripe=int(rng.integers(1, 4)))
    layout: Layout = getattr(cpcore, kind)(seq_len, cp_size)
    return layout


def drawn_rule(rng: np.random.Generator, kind: str, bounds: Array) -> dict[str, Any] | None:
    seq_len = int(bounds[-1])
    causal, window = bool(rng.integers(2)), int(rng.integers(1, 7))
    if kind == "full":
        return None
    if kind == "causal":
        return {}
    if kind == "window":
        return {"window": window}
    if kind == "two-sided window":
        return {"window": window, "causal": False}
    if kind == "relation":
        return {"causal": causal, "relation": rng.random((seq_len, seq_len)) < rng.random()}
    ids = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    ids[rng.random(seq_len) < 0.25] = -1
    return {"causal": causal, "documents": ids, "window": window if rng.random() < 0.3 else None}


def _problem(
    rng: np.random.Generator, rule: dict[str, Any] | None, seq_len: int
) -> tuple[Problem, Dropout | None]:
    heads, group = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    lead: tuple[int, ...] = [(), (heads,), (2, heads)][rng.integers(3)]
    q_lead = (*lead[:-1], lead[-1] * group) if lead else ()
    width, value_width = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    dtype, size = FLOATS[rng.integers(3)], [1.0, 1.0, 1.0, 0.0, 1e-3, 20.0][rng.integers(6)]
    padded = np.zeros(seq_len, bool)
    if rule is not None and rule.get("documents") is not None:
        padded = rule["documents"] == -1

    def numbers(lead: tuple[int, ...], width: int, size: float = 1.0) -> Array:
        array = (size * rng.standard_normal((*lead, seq_len, width))).astype(dtype)
        array[..., padded, :] = [0, 200, np.nan, np.inf][rng.integers(4)]
        array.setflags(write=False)  # a run that writes to its inputs raises
        return array

    q, k = numbers(q_lead, width, size), numbers(lead, width, size)
    v, dout = numbers(lead, value_width), numbers(q_lead, value_width)
    every = range(seq_len)
    visible = None if rule is None else double_loop(every, every, rule)
    scale = [None, None, 0.3, -1.5][rng.integers(4)]
    dropout = keep = None
    if rng.integers(2):
        dropout = Dropout(float(rng.choice([0.0, 0.2, 0.7])), int(rng.integers(2**32)))
        batches, query_heads = (1, 1, *q_lead)[-2:]
        index = np.ix_(range(batches), range(query_heads), every, every)
        factor = dropout.keep(*index) / (1 - dropout.rate)
        keep = factor.reshape(*q_lead, seq_len, seq_len)
    return Problem(q, k, v, visible, scale, keep, dout), dropout


def check(seed: int) -> None:
    """Run this seed's configuration and compare all that comes out; say how to repeat a failure."""
    drawing = drawn(seed)
    try:
        with np.errstate(divide="raise", invalid="raise"):
            run = drawing.simulate()
        _compare(drawing, run)
    except Exception as error:
        repeat = f'python -c "from tests.support.random_runs import check; check({seed})"'
        raise AssertionError(f"seed {seed} {drawing.cell}: {error}\nrepeat: {repeat}") from error


def _compare(drawing: Drawn, run: Run) -> None:
    problem = drawing.problem
    allowed = tolerance(problem, drawing.pieces())
    _within(problem, run, reference(problem), allowed)
    if problem.q.dtype == np.float64:  # autograd rounds in float64 too: twice the bound
        _within(problem, run, by_autograd(problem), Answer(*(2 * bound for bound in allowed)))
    for name in FIELDS:
        got, axis = getattr(run, name), -1 if name == "lse" else -2
        for result, part in zip(run.per_rank, drawing.layout.shard(got, axis), strict=True):
            own = getattr(result, name)
            assert own.dtype == got.dtype, f"{name}: {own.dtype}"
            assert np.array_equal(own, part), name
    assert run.events == drawing.events


def _within(problem: Problem, run: Run, wanted: Answer, allowed: Answer) -> None:
    for name, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
        got, dtype = getattr(run, name), problem.q.dtype
        if name == "lse":
            dtype = np.result_type(np.float32, dtype)
        elif name != "output" and dtype == np.float16:  # the bound of `output` has its cast
            bound = with_cast(bound, ref)
        assert got.dtype == dtype, f"{name}: {got.dtype}"
        assert_within(name, got, ref, bound)


def with_cast(allowed: Array, wanted: Array) -> Array:
    """The bound of a result that is rounded once to float16."""
    half = np.finfo(np.float16)
    return allowed + half.eps * np.abs(wanted) + half.smallest_subnormal
