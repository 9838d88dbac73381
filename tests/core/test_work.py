"""Verdict and pairs from intervals equal those of the mask, whichever way they are counted."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpcore import Visibility, work
from cpcore.work import find_runs, judge
from tests.support.cases import examples, rules
from tests.support.relation import double_loop


@st.composite
def blocks(draw: st.DrawFn) -> tuple[dict[str, Any], list[int], list[int]]:
    """A rule over up to 24 positions, and queries and keys: intervals, unions, or shuffled."""
    length = draw(st.integers(1, 24))
    positions = st.integers(0, length - 1)
    interval = st.tuples(positions, positions).map(lambda ends: [*range(min(ends), max(ends) + 1)])
    some = st.one_of(
        interval,
        st.tuples(interval, interval).map(lambda two: sorted({*two[0], *two[1]})),
        st.lists(positions, max_size=length, unique=True),
    )
    return draw(rules(length)), draw(some), draw(some)


@pytest.mark.parametrize("many", [-1, 2, 10**9], ids=["by row", "either", "by runs"])
@given(block=blocks())
@examples(250)
def test_interval_arithmetic_counts_what_a_double_loop_counts(
    many: int, block: tuple[dict[str, Any], list[int], list[int]]
) -> None:
    settings, q_pos, k_pos = block
    rule, seen = Visibility(**settings), double_loop(q_pos, k_pos, settings)
    queries, keys = (find_runs(rule, np.array(pos, np.int64)) for pos in (q_pos, k_pos))
    with patch.object(work, "MANY_RUNS", many):
        verdict, pairs = judge(rule, queries, keys)
    assert pairs == seen.sum()
    assert type(pairs) is int
    assert verdict == ("empty" if not pairs else "full" if seen.all() else "partial")
    assert verdict == rule.verdict(q_pos, k_pos)


@pytest.mark.parametrize(("sides", "by_row"), [((8, 8), False), ((13, 5), True)])
def test_more_than_64_pairs_of_runs_are_counted_row_by_row(
    sides: tuple[int, int], by_row: bool
) -> None:
    rule, settings = Visibility(window=9), {"window": 9}
    q_pos, k_pos = (np.arange(0, 2 * n, 2) for n in sides)
    with patch.object(work, "_pairs_by_row", wraps=work._pairs_by_row) as spy:
        _, pairs = judge(rule, find_runs(rule, q_pos), find_runs(rule, k_pos))
    assert spy.called is by_row
    assert pairs == double_loop(q_pos.tolist(), k_pos.tolist(), settings).sum()


def test_runs_end_at_gaps_documents_and_padding() -> None:
    rule = Visibility(documents=np.array([0, 0, 1, 1, -1, 1, 1, 2]))
    assert find_runs(rule, np.array([6, 7, 0, 1, 2, 4, 5])).runs == (
        (6, 7, 1), (7, 8, 2), (0, 2, 0), (2, 3, 1), (5, 6, 1),
    )  # fmt: skip
    assert find_runs(rule, np.arange(0)).runs == ()
    assert find_runs(Visibility(), np.array([0, 1, 3])).runs == ((0, 2, 0), (3, 4, 0))


def test_two_runs_of_one_document_see_each_other_across_padding() -> None:
    rule = Visibility(causal=False, documents=np.array([0, 0, -1, 0]))
    runs = find_runs(rule, np.arange(4))
    assert judge(rule, runs, runs) == ("partial", 9)
    assert judge(rule, find_runs(rule, np.array([0, 3])), find_runs(rule, np.array([1]))) == (
        "full",
        2,
    )
