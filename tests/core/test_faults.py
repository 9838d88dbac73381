"""Every named fault is wrong on generic inputs, and what it leaves right is exactly declared."""

import numpy as np
import pytest

from cpcore import Dropout, Layout, contiguous, from_lengths, from_owned, striped, zigzag
from cpcore.faults import AGREES
from cpcore.schedule import PROTOCOLS
from cpcore.simulation import FAULTS
from tests.support.errors import refused
from tests.support.runs import RESULTS, Setting, setting

EQUAL_SHARDS_ONLY = {"wrong_direction", "stale_kv", "return_one_hop_short"}
NEEDS_DROPOUT = {"dropped_denominator", "local_dropout"}
# Contiguous shards hide this one; see test_faults_hidden.
NEEDS_TWO_PLACES = {"mask_by_rank"}
GENERIC: dict[str, Layout] = {
    "zigzag 3": zigzag(12, 3),
    "zigzag 4": zigzag(16, 4),
    "contiguous 3": contiguous(12, 3),
    "contiguous 4": contiguous(16, 4),
    "striped 3": striped(12, 3),
    "uneven 3": from_lengths([5, 3, 4]),
    "uneven 4, mixed": from_owned([[9, 0, 4], [5, 1, 8, 3], [2, 10], [6, 7]]),
    "one empty": from_lengths([3, 0, 4, 2]),
}


def fitting(name: str) -> list[str]:
    """The layouts that neither hide the fault nor make it impossible."""
    fits = []
    for label, layout in GENERIC.items():
        equal = len(set(layout.lengths)) == 1
        runs_on = all((np.diff(pos) == 1).all() for pos in layout.owned)
        if (equal or name not in EQUAL_SHARDS_ONLY) and not (runs_on and name in NEEDS_TWO_PLACES):
            fits.append(label)
    return fits


CASES = [(name, label) for name in sorted(AGREES) for label in fitting(name)]


def problem(label: str, *, dropped: bool) -> Setting:
    return setting(GENERIC[label], dropout=Dropout(0.4, 3) if dropped else None)


def test_every_fault_that_can_be_named_declares_what_still_agrees() -> None:
    assert set(AGREES) == set(FAULTS)
    assert len(AGREES) >= 16
    assert all(agrees < {*RESULTS, "loss"} for agrees in AGREES.values())
    assert all(("loss" in agrees) == ("output" in agrees) for agrees in AGREES.values())
    for name, cls in FAULTS.items():
        assert "Backward:" in str(cls.__doc__) or AGREES[name] >= {"output", "lse"}, name


@pytest.mark.parametrize("name", sorted(AGREES))
def test_every_fault_is_tried_on_three_layouts_or_more(name: str) -> None:
    assert len(fitting(name)) >= 3


@pytest.mark.parametrize("label", GENERIC)
@pytest.mark.parametrize("dropped", [False, True])
def test_without_a_fault_all_agrees(label: str, dropped: bool) -> None:
    case = problem(label, dropped=dropped)
    assert case.agreeing(case.run()) == {*RESULTS, "loss"}


@pytest.mark.parametrize(("name", "label"), CASES)
def test_a_fault_leaves_right_what_it_declares_and_nothing_else(name: str, label: str) -> None:
    case = problem(label, dropped=name in NEEDS_DROPOUT)
    assert case.agreeing(case.run(fault=name)) == AGREES[name]


@pytest.mark.parametrize("name", sorted(AGREES))
def test_dropout_changes_nothing_about_what_a_fault_leaves_right(name: str) -> None:
    case = problem("zigzag 3", dropped=True)
    assert case.agreeing(case.run(fault=name)) == AGREES[name]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", sorted(AGREES))
def test_a_fault_shows_under_every_protocol_and_with_blocks_cut_up(
    name: str, protocol: str
) -> None:
    case = problem("zigzag 4", dropped=name in NEEDS_DROPOUT)
    assert case.agreeing(case.run(fault=name, protocol=protocol, max_block=3)) == AGREES[name]


@pytest.mark.parametrize(
    "name", ["local_masks", "diagonal_as_full", "local_dropout", "own_lse", "weighted_dout"]
)
def test_a_fault_shows_under_windows_and_documents_too(name: str) -> None:
    documents = np.array([0, 0, 0, 1, 1, 1, 1, 1, -1, 2, 2, 2])
    case = setting(zigzag(12, 3), dropout=Dropout(0.4, 3), window=4, documents=documents)
    assert case.agreeing(case.run()) == {*RESULTS, "loss"}
    assert case.agreeing(case.run(fault=name)) == AGREES[name]


@pytest.mark.parametrize("name", sorted(EQUAL_SHARDS_ONLY))
def test_a_fault_that_would_not_even_run_on_uneven_shards_says_so(name: str) -> None:
    with refused("layout", "shards of one length for this fault", (4, 4, 3)):
        setting(from_lengths([4, 4, 3])).run(fault=name)
