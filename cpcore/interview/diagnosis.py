"""The diagnosis round: a planted fault, checks that cost minutes, and a grade for their order.

Owns the case and the grade. What each check shows under each cause is computed: by `simulate` with
the fault played (`diagnosis_results`), by the schedule and the planner (`diagnosis_times`). So a
check that cannot tell the remaining causes apart is known to be wasted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cpcore.checks import expected
from cpcore.interview.diagnosis_base import Check
from cpcore.interview.diagnosis_results import evidence as results
from cpcore.interview.diagnosis_times import evidence as times


class Grade(NamedTuple):
    """0 to 3 points, minutes spent and needed, checks that told nothing, causes that are left."""

    points: int
    spent: int
    best: int
    wasted: tuple[str, ...]
    left: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Case:
    """One planted fault: what is reported, which causes are possible, and what checks show.

    seen: for each cause, the observation of every check, in the order of `checks`.
    """

    name: str
    story: str
    checks: tuple[Check, ...]
    seen: Mapping[str, tuple[str, ...]]
    truth: str

    def observe(self, check: str) -> str:
        """What the check of this name shows here.

        Raises: ValueError for a name that is not among the checks.
        """
        return self.seen[self.truth][self._place(check)]

    def left(self, checks: Sequence[str]) -> tuple[str, ...]:
        """Causes that agree with everything these checks have shown."""
        places = [self._place(check) for check in checks]
        shown = [self.seen[self.truth][place] for place in places]
        return tuple(
            cause for cause, row in self.seen.items() if [row[place] for place in places] == shown
        )

    def _place(self, check: str) -> int:
        names = [one.name for one in self.checks]
        if check not in names:
            raise expected("check", f"one of {', '.join(names)}", repr(check))
        return names.index(check)


def best_order(case: Case) -> tuple[str, ...]:
    """Checks that single out the cause, each the best for its minutes among those left.

    Best: it leaves the fewest causes on average, over the minutes it takes. It does not look at
    the truth before it has chosen.
    """
    order: list[str] = []
    while len(left := case.left(order)) > 1:
        useful = [c for c in case.checks if _expected_left(case, c.name, left) < len(left)]
        if not useful:
            break
        order.append(max(useful, key=lambda c: _gain(case, c, left)).name)
    return tuple(order)


def _gain(case: Case, check: Check, left: tuple[str, ...]) -> float:
    return (len(left) - _expected_left(case, check.name, left)) / check.minutes


def _expected_left(case: Case, check: str, left: tuple[str, ...]) -> float:
    """How many of these causes remain on average, each being equally likely."""
    place = [one.name for one in case.checks].index(check)
    seen = [case.seen[cause][place] for cause in left]
    return sum(seen.count(shown) for shown in seen) / len(seen)


def grade(case: Case, order: Sequence[str], cause: str) -> Grade:
    """Points for the cause that was named after the checks in this order.

    3: right, proved, and in at most one and a half times the minutes of the best order. 2: right
    and proved. 1: right, while other causes were still possible. 0: wrong.

    Raises: ValueError for a check or a cause that is not in the case.
    """
    if cause not in case.seen:
        raise expected("cause", f"one of {', '.join(case.seen)}", repr(cause))
    minutes = {check.name: check.minutes for check in case.checks}
    left = case.left(order)  # names every check, or raises
    wasted = tuple(
        check
        for i, check in enumerate(order)
        if _expected_left(case, check, case.left(order[:i])) == len(case.left(order[:i]))
    )
    spent, best = (sum(map(minutes.__getitem__, o)) for o in (order, best_order(case)))
    proved = left == (case.truth,)
    points = 0 if cause != case.truth else 1 if not proved else 3 if spent <= 1.5 * best else 2
    said = ("Wrong", "Right, not yet proved", "Right and proved, not the shortest way", "Right")
    parts = [f"{said[points]}: {case.truth}.", f"{spent} minutes; {best} would have done."]
    if wasted:
        parts.append(f"Told nothing new: {', '.join(wasted)}.")
    if len(left) > 1:
        parts.append(f"Still possible: {', '.join(left)}.")
    return Grade(points, spent, best, wasted, left, " ".join(parts))


@cache
def cases() -> tuple[Case, ...]:
    """Every case: each cause of both tables once."""
    return tuple(
        Case(f"{table.name} {i}", table.story, table.checks, table.seen, truth)
        for table in (results(), times())
        for i, truth in enumerate(table.seen, start=1)
    )
