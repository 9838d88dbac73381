"""Real Gloo processes, 2, 3 and 4: every protocol, layout and rule against dense and autograd.

The processes of one rank count are started once and run all of its cases.
"""

from collections import Counter
from functools import cache

import pytest

from cpcore.distributed import launch
from tests.support.rank_cases import ALL_PROTOCOLS, CELLS, RankCase, rank_case
from tests.support.rank_checks import wrong_messages, wrong_results, wrong_trades
from tests.support.rank_workers import Ran, attend_in_turn

RANKS = (2, 3, 4)
DTYPES = {"float32", "float64"}


def numbers(cp_size: int) -> list[int]:
    """Every cell, in float64 and float32 by turns over the rank counts.

    In both for all_to_all, which refuses some of its cases.
    """
    both = range(2 * len(CELLS))
    return [n for n in both if CELLS[n // 2][0] == "all_to_all" or (n + n // 2 + cp_size) % 2]


@cache
def runs(cp_size: int) -> list[tuple[RankCase, list[Ran]]]:
    """Every case of this rank count, with what its ranks returned. Receive buffers are poisoned."""
    chosen = numbers(cp_size)
    told = launch(attend_in_turn, cp_size, chosen, {"poison": True}, time_limit_s=300)
    cases = [rank_case(number, cp_size) for number in chosen]
    return [(case, list(ran)) for case, ran in zip(cases, zip(*told, strict=True), strict=True)]


def accepted(cp_size: int) -> list[tuple[RankCase, list[Ran]]]:
    return [(case, ran) for case, ran in runs(cp_size) if not case.refused]


@pytest.mark.parametrize("cp_size", RANKS)
def test_output_and_every_gradient_equal_dense_and_autograd(cp_size: int) -> None:
    for case, ran in accepted(cp_size):
        assert [each.refusal for each in ran] == [""] * cp_size, case
        assert wrong_results(case, ran) == [], case


@pytest.mark.parametrize("cp_size", RANKS)
def test_recorded_messages_equal_schedule_and_ledger(cp_size: int) -> None:
    for case, ran in accepted(cp_size):
        check = wrong_trades if case.protocol == "all_to_all" else wrong_messages
        for rank, each in enumerate(ran):
            assert check(case, rank, each) == [], f"{case}, rank {rank}"


@pytest.mark.parametrize("cp_size", RANKS)
def test_heads_that_cannot_be_divided_are_refused_on_every_rank_before_any_message(
    cp_size: int,
) -> None:
    refused = [(case, ran) for case, ran in runs(cp_size) if case.refused]
    assert refused
    for case, ran in refused:
        assert all(each.refusal.startswith("protocol: expected") for each in ran), case
        assert all(each.records == () for each in ran), case


def test_every_cell_that_is_not_refused_holds_three_cases(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = [case for cp_size in RANKS for case, _ in runs(cp_size)]
    done = Counter(case.cell for case in cases if not case.refused)
    refusals = Counter(case.protocol for case in cases if case.refused)
    with capsys.disabled():
        print(f"\n{done.total()} runs of real processes, {refusals.total()} refused")
        for protocol in ALL_PROTOCOLS:
            counts = [done[cell] for cell in CELLS if cell[0] == protocol]
            print(f"{protocol:>16}: {sum(counts):>4} runs, {min(counts)} or more in each of"
                  f" {len(counts)} cells, {refusals[protocol]} refused")  # fmt: skip
    assert min(done[cell] for cell in CELLS) >= 3
    assert refusals.keys() == {"all_to_all"}
    for cell in CELLS:  # in both dtypes
        assert {case.problem.q.dtype.name for case in cases if case.cell == cell} == DTYPES
