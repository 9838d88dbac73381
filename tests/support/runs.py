"""Right runs and faulty runs of `simulate` on one problem, and what of them agrees."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpcore import Dropout, Layout, Run, Visibility, simulate
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, reference, tolerance

Array = NDArray[Any]
RESULTS = ("output", "lse", "dq", "dk", "dv")


@dataclass(frozen=True)
class Setting:
    """One attention over ranks; its dense reference is computed from the same numbers."""

    layout: Layout
    rule: dict[str, Any]
    problem: Problem
    dropout: Dropout | None = None

    def run(self, **options: Any) -> Run:
        p = self.problem
        return simulate(
            p.q, p.k, p.v, self.layout, Visibility(**self.rule), dout=p.dout, scale=p.scale,
            dropout=self.dropout, **options,
        )  # fmt: skip

    def agreeing(self, run: Run) -> set[str]:
        """The results within the design's tolerance of dense; the others are far outside it.

        "Far" is 1000 times the tolerance, so that no result is in between.
        """
        right, allowed = reference(self.problem), tolerance(self.problem, self.layout.seq_len)
        agree = {
            name
            for name, got, wanted, bound in zip(RESULTS, run[:5], right, allowed, strict=True)
            if _agrees(name, got, wanted, bound)
        }
        weights = self.problem.dout
        loss, wanted_loss = ((weights * out).sum() for out in (run.output, right.out))
        limit = (np.abs(weights) * allowed.out).sum()
        return agree | ({"loss"} if _agrees("loss", loss, wanted_loss, limit) else set())


def _agrees(name: str, got: Any, wanted: Any, bound: Any) -> bool:
    finite = np.isfinite(wanted)
    assert not np.isnan(got).any(), f"{name}: NaN"
    if not np.array_equal(np.isfinite(got), finite):
        return False
    error = np.abs(np.where(finite, got, 0) - np.where(finite, wanted, 0)) / bound
    assert not 1 < error.max() < 1000, f"{name}: neither right nor clearly wrong, {error.max()}"
    return bool(error.max() <= 1)


def setting(
    layout: Layout,
    *,
    dropout: Dropout | None = None,
    seed: int = 0,
    heads: tuple[int, int] = (4, 2),
    **rule: Any,
) -> Setting:
    """Random query, key, value and dout under a rule, causal unless it says otherwise."""
    rng, total = np.random.default_rng(seed), layout.seq_len
    shapes = (heads[0], total, 3), (heads[1], total, 3), (heads[1], total, 2), (heads[0], total, 2)
    q, k, v, dout = (rng.standard_normal(shape) for shape in shapes)
    keep = None
    if dropout is not None:
        h, pos = np.arange(heads[0])[:, None, None], np.arange(total)
        keep = dropout.keep(0, h, pos[:, None], pos) / (1 - dropout.rate)
    visible = double_loop(range(total), range(total), rule)
    return Setting(layout, rule, Problem(q, k, v, visible, None, keep, dout), dropout)
