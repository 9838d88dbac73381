"""Where each fault hides: inputs on which the wrong program is right, useless as a test."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cpcore import Dropout, Layout, contiguous, from_lengths, zigzag
from cpcore.faults import AGREES
from tests.support.runs import RESULTS, Setting, setting

EVERYTHING = {*RESULTS, "loss"}
DROPOUT = Dropout(0.4, 3)


def uniform(case: Setting) -> Setting:
    """Queries of zero: every visible score is 0."""
    return replace(case, problem=replace(case.problem, q=np.zeros_like(case.problem.q)))


def small_values(case: Setting) -> Setting:
    """Values 0 or 1, so that their sums are exact in 16 bits."""
    return replace(case, problem=replace(case.problem, v=(case.problem.v > 0) * 1.0))


def same_keys_on_every_rank(case: Setting) -> Setting:
    p, size = case.problem, case.layout.lengths[0]
    k, v = (np.tile(x[:, :size], (1, case.layout.cp_size, 1)) for x in (p.k, p.v))
    return replace(case, problem=replace(p, k=k, v=v))


def equal_values(case: Setting) -> Setting:
    """Every block's own output is the row's."""
    return replace(case, problem=replace(case.problem, v=np.ones_like(case.problem.v)))


FULL: dict[str, Any] = {"causal": False}
HIDDEN: list[tuple[str, str, Setting]] = [
    ("diagonal_as_full", "not causal", setting(contiguous(9, 3), **FULL)),
    ("diagonal_as_full", "one token a rank", setting(contiguous(4, 4))),
    ("mask_by_rank", "contiguous", setting(contiguous(12, 4), dropout=DROPOUT)),
    ("mask_by_rank", "contiguous and uneven", setting(from_lengths([3, 0, 5]))),
    ("wrong_direction", "R = 2", setting(zigzag(8, 2))),
    ("one_hop_too_few", "short window", setting(contiguous(12, 3), window=4)),
    ("rescale_only_the_sum", "uniform scores", uniform(setting(zigzag(12, 3)))),
    ("flipped_sign", "uniform scores", uniform(setting(zigzag(12, 3)))),
    ("sixteen_bit_accumulator", "exact sums", small_values(uniform(setting(zigzag(12, 3))))),
    ("dropped_denominator", "no dropout", setting(zigzag(12, 3))),
    ("local_dropout", "no dropout", setting(zigzag(12, 3))),
    ("own_output", "equal values", equal_values(setting(zigzag(12, 3)))),
    ("stale_kv", "equal shards", same_keys_on_every_rank(setting(contiguous(12, 3), **FULL))),
]


@pytest.mark.parametrize(("name", "where", "case"), HIDDEN, ids=[f"{n}-{w}" for n, w, _ in HIDDEN])
def test_a_fault_hides_here(name: str, where: str, case: Setting) -> None:
    assert case.agreeing(case.run(fault=name)) == EVERYTHING
    assert np.abs(case.run().output).max() > 0.1


def test_equal_masses_hide_the_mean_in_the_output_but_not_in_dq() -> None:
    """The masses are equal here, their derivatives are not; dK is 0 with the queries."""
    case = uniform(setting(contiguous(12, 3), **FULL))
    assert case.agreeing(case.run(fault="equal_weight_mean")) == EVERYTHING - {"dq"}
    uneven = uniform(setting(from_lengths([5, 3, 4]), **FULL))
    assert uneven.agreeing(uneven.run(fault="equal_weight_mean")) == {"lse", "dk"}


SHOWS_ON_ONE_RANK = {
    # A wrong mask or accumulator needs no other rank.
    "diagonal_as_full",
    "sixteen_bit_accumulator",
    "dropped_denominator",
}


@pytest.mark.parametrize("name", sorted(AGREES))
def test_one_rank_hides_every_fault_that_needs_another(name: str) -> None:
    case = setting(zigzag(8, 1), dropout=DROPOUT)
    hidden = case.agreeing(case.run(fault=name)) == EVERYTHING
    assert hidden == (name not in SHOWS_ON_ONE_RANK)


@pytest.mark.parametrize(
    "name",
    [
        "rescale_only_the_sum",
        "flipped_sign",
        "equal_weight_mean",
        "own_output",
        "own_output_and_lse",
        "weighted_dout",
        "own_lse",
    ],
)
def test_blocks_cut_up_show_on_one_rank_what_whole_blocks_hide(name: str) -> None:
    case = setting(zigzag(8, 1))
    assert case.agreeing(case.run(fault=name, max_block=3)) == AGREES[name]


@pytest.mark.parametrize("name", sorted(AGREES))
def test_an_empty_sequence_hides_everything(name: str) -> None:
    layout: Layout = from_lengths([0, 0])
    run = setting(layout, dropout=DROPOUT).run(fault=name)
    assert [x.size for x in run[:5] if x is not None] == [0] * 5
