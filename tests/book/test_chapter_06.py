"""Chapter 6: the numbers of one query and two keys are those of closed forms, to the last digit."""

from __future__ import annotations

import math
import re
from typing import Any

import nbformat
import pytest

from scripts import notebooks

E1 = math.e
P0, P1 = 1 / (1 + E1), E1 / (1 + E1)  # scores 0 and 1; values 0 and 1, dout 1, so out = P1
NUMBER = re.compile(r"-?\d\.\d{5}")


def outputs() -> list[str]:
    """What the code cells print, cell by cell."""
    notebook: Any = nbformat.read(notebooks.BOOK / "06_backward.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(o.get("text", "") for o in cell.outputs) for cell in cells]


def line(start: str) -> str:
    """The one printed line that starts like this."""
    found = [text for out in outputs() for text in out.splitlines() if text.startswith(start)]
    assert len(found) == 1, (start, found)
    return found[0]


def numbers(start: str) -> list[float]:
    return [float(x) for x in NUMBER.findall(line(start))]


@pytest.mark.parametrize(
    ("start", "dq", "dk", "dv"),
    [
        ("the whole row", P0 * P1, (-P0 * P1, P0 * P1), (P0, P1)),
        ("block output", 0, (0, 0), (P0, P1)),  # C22a
        ("output and lse", 0, (0, 0), (1, 1)),  # C22b
        ("scaled dout", 0, (0, 0), (P0, P1)),  # C22c
        ("block lse", P0, (-P1, P0), (1, 1)),  # C22d: P = 1, dS_j = v_j - out
    ],
)
def test_each_memory_of_a_block_has_its_closed_form(
    start: str, dq: float, dk: tuple[float, float], dv: tuple[float, float]
) -> None:
    assert numbers(f"{start:15}dQ") == [round(x, 5) for x in (dq, *dk, *dv)]


def test_hand_finite_difference_and_block_by_block_agree_with_the_closed_form() -> None:
    right = [round(x, 5) for x in (P0 * P1, -P0 * P1, P0 * P1, P0, P1)]
    assert numbers("dQ 0.19661 | dK") == numbers("dQ, dK, dV:") == right
    assert numbers("P ") == [round(x, 5) for x in (P0, P1, P1, -P0 * P1, P0 * P1)]
    first, second = numbers("block 0:"), numbers("block 1:")
    assert [first[0] + second[0], first[1], second[1], first[2], second[2]] == right


def test_the_printed_shares_of_delta_add_up_to_it() -> None:
    (*parts,) = numbers("query 23, by owner")
    total, delta = numbers("sum ")
    assert len(parts) == 4
    assert total == delta
    assert sum(parts) == pytest.approx(delta, abs=4 * 0.5e-5)  # each is rounded to five digits


def test_the_losses_start_equal_and_the_faulty_run_stays_above() -> None:
    right, faulty = (
        [float(x) for x in re.findall(r"\d+\.\d\d", line(start))]
        for start in ("all messages arrive", "one is lost")
    )
    assert len(right) == len(faulty) == 6
    assert right[0] == faulty[0]
    assert all(b > a for a, b in zip(right[1:], faulty[1:], strict=True))
    for curve in (right, faulty):
        assert curve == sorted(curve, reverse=True)


def test_hops_are_one_fewer_than_ranks_or_as_many() -> None:
    assert line("ring: on").endswith(f"{[ranks - 1 for ranks in range(1, 6)]} hops")
    full = [ranks if ranks > 1 else 0 for ranks in range(1, 6)]
    assert line("ring_full_return: on").endswith(f"{full} hops")
