"""Names a mistake: which wrong answer of the bank behaves like the reader's.

Owns the comparison with the known wrong answers. It says what is wrong, never what is right.
"""

import copy
from functools import partial
from typing import Any

from cpcore.exercises.calls import guarded, space_of
from cpcore.exercises.compare import difference
from cpcore.exercises.exercise import Answer, Args, Exercise, call
from cpcore.exercises.sources import wrong_answer

QUICK_S = 0.5  # a wrong answer of the bank needs milliseconds


def known_mistake(exercise: Exercise, answer: Answer, cases: list[Args]) -> str:
    """The one wrong answer of the bank that gives the same results in all these cases, in words.

    "" if none does, or more than one: a single number may agree by chance.
    """
    mine = _results(exercise, answer, cases)
    right = _results(exercise, exercise.oracle, cases, call)
    if mine is None or right is None or _alike(mine, right):
        return ""
    found = [
        wrong
        for wrong in exercise.wrong
        if _alike(mine, _results(exercise, wrong_answer(exercise, wrong), cases))
    ]
    if len(found) != 1:
        return ""
    seen = f" (seen in {found[0].seen_in})" if found[0].seen_in else ""
    return f"This is what comes out if {found[0].means}{seen}."


def _results(
    exercise: Exercise, answer: Answer, cases: list[Args], play: Any = None
) -> list[Any] | None:
    """The results in all cases, None if one of them has none."""
    found = []
    for args in cases:
        fresh = copy.deepcopy(args)
        outcome = guarded(
            partial(play or exercise.play, answer, *fresh),
            space=space_of(answer),
            limit_s=QUICK_S,
        )
        if outcome.error:
            return None
        found.append(outcome.value)
    return found


def _alike(mine: list[Any], other: list[Any] | None) -> bool:
    try:
        return other is not None and difference(mine, other) is None
    except Exception:  # a reader's object may compare as it likes
        return False
