"""Ranks that are threads: every protocol, layout and rule, without a network's help or harm."""

from unittest.mock import patch

import pytest

from cpcore.distributed import rank, run_threads
from tests.support.rank_cases import CELLS, RankCase, rank_case
from tests.support.rank_checks import RESULTS, same_bits, wrong_messages, wrong_results
from tests.support.rank_workers import Ran, attend

EVERY = range(0, 2 * len(CELLS), 3)


def threads(case: RankCase, poison: bool = True) -> list[Ran]:
    with patch.object(rank, "TILE", case.tile):
        return run_threads(attend, case.cp_size, case, poison=poison, recording=True)


@pytest.mark.parametrize("cp_size", [1, 2, 3, 5])
def test_output_gradients_and_messages_of_threads_are_right(cp_size: int) -> None:
    for number in EVERY:
        case = rank_case(number, cp_size)
        ran = threads(case)
        assert [bool(r.refusal) for r in ran] == [case.refused] * cp_size, f"{case}"
        if not case.refused:
            assert wrong_results(case, ran) == [], f"case {number}, {case.cell}"
            if case.protocol != "all_to_all":
                for r, each in enumerate(ran):
                    assert wrong_messages(case, r, each) == [], f"case {number}, {case.cell}"


@pytest.mark.parametrize("number", range(0, 2 * len(CELLS), 37))
def test_poison_in_receive_buffers_changes_no_bit(number: int) -> None:
    case = rank_case(number, 4)
    with_poison, without = threads(case), threads(case, poison=False)
    for one, other in zip(with_poison, without, strict=True):
        assert one.refusal == other.refusal
        if not case.refused:
            assert all(same_bits(getattr(one, n), getattr(other, n)) for n in RESULTS)
