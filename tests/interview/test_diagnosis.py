"""The diagnosis round: evidence that is computed, checks in an order, and the grade for it."""

from __future__ import annotations

import pytest

from cpcore.faults import AGREES
from cpcore.interview import Case, Check, best_order, cases, grade, pairs_by_step
from cpcore.interview.diagnosis_results import CAUSES, evidence

BY_CAUSE = {case.truth: case for case in cases()}
MADE_UP = Case(
    "made up",
    "",
    (Check("cheap", 1), Check("dear", 5), Check("useless", 1)),
    {"a": ("x", "p", "same"), "b": ("x", "q", "same"), "c": ("y", "q", "same")},
    "a",
)


def test_there_are_fifteen_cases_of_two_kinds() -> None:
    assert len(cases()) == 15
    assert {case.name.rsplit(" ", 1)[0] for case in cases()} == {"wrong results", "slow runs"}


def test_what_a_fault_leaves_right_is_what_the_package_declares_of_it() -> None:
    """`AGREES` is declared and tested elsewhere; the evidence is played here."""
    names = ["output", "lse", "dq", "dk", "dv"]
    for cause, fault in CAUSES.items():
        row = evidence().seen[cause]
        shown = dict(zip(names, (row[0], *row[4:8]), strict=True))
        declared = AGREES.get(fault, {"output", "lse", "dq"}) if isinstance(fault, str) else {
            "output", "lse", "dq",
        }  # fmt: skip
        for name, word in shown.items():
            assert (word == "agrees") == (name in declared), (cause, name)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.truth)
def test_the_best_order_proves_the_cause_and_earns_all_points(case: Case) -> None:
    order = best_order(case)
    assert case.left(order) == (case.truth,)
    result = grade(case, order, case.truth)
    assert (result.points, result.wasted, result.spent) == (3, (), result.best)


def test_the_cheapest_informative_check_comes_first() -> None:
    assert best_order(MADE_UP) == ("cheap", "dear")


def test_a_check_that_tells_much_comes_before_a_cheaper_one_that_tells_little() -> None:
    causes = "abcdef"
    seen = {cause: ("last" if cause == "f" else "other", cause) for cause in causes}
    case = Case("made up", "", (Check("cheap", 2), Check("telling", 3)), seen, "a")
    assert best_order(case) == ("telling",)


def test_points_fall_with_wasted_minutes_with_guesses_and_with_the_wrong_cause() -> None:
    assert grade(MADE_UP, ["cheap", "dear"], "a").points == 3
    assert grade(MADE_UP, ["cheap", "dear", "useless"], "a").points == 3
    assert grade(MADE_UP, ["cheap"], "a").points == 1
    assert grade(MADE_UP, [], "a").left == ("a", "b", "c")
    assert grade(MADE_UP, ["cheap", "dear"], "b").points == 0
    wide = Case("wide", "", (Check("one", 1), Check("two", 9)), MADE_UP.seen, "c")
    assert grade(wide, ["two", "one"], "c").points == 2


def test_a_check_that_can_tell_nothing_is_named_as_wasted() -> None:
    result = grade(MADE_UP, ["useless", "cheap", "dear"], "a")
    assert result.wasted == ("useless",)
    assert "Told nothing new: useless." in result.text


def test_a_check_that_could_have_told_something_is_not_wasted() -> None:
    """Judged by what it could show, not by luck: "dear" happens to confirm what is known."""
    assert grade(MADE_UP, ["dear"], "a").wasted == ()


def test_waiting_and_transfer_are_told_apart_by_pairs_before_links() -> None:
    case = BY_CAUSE["contiguous shards"]
    assert best_order(case)[0] == "pairs that each rank computes in all"
    assert case.observe("run again with links of twice the speed") == "hardly faster"
    near = BY_CAUSE["the ring leaves the node with short shards"]
    assert near.observe("run again with links of twice the speed") == "much faster"


def test_even_totals_hide_packed_documents_and_steps_show_them() -> None:
    case = BY_CAUSE["zigzag over packed documents"]
    assert case.observe("pairs that each rank computes in all") == "even"
    assert case.observe("pairs of the ranks at each single step") == "uneven within a step"


def test_the_pairs_behind_a_timeline_are_those_of_its_evidence() -> None:
    contiguous, packed = map(pairs_by_step, ("contiguous shards", "zigzag over packed documents"))
    assert contiguous.sum() == 256 * 257 // 2
    assert packed.sum() == 4 * 64 * 65 // 2
    assert len({*packed.sum(axis=0)}) == 1 < len({*contiguous.sum(axis=0)})
    with pytest.raises(ValueError, match="cause: expected one of"):
        pairs_by_step("gremlins")


@pytest.mark.parametrize(("order", "cause"), [(["smell"], "a"), (["cheap"], "z")])
def test_unknown_checks_and_causes_are_refused(order: list[str], cause: str) -> None:
    with pytest.raises(ValueError, match=r"check: expected one of|cause: expected one of"):
        grade(MADE_UP, order, cause)
