"""Machine-made changes of the solutions: at least nine in ten are found, survivors have reasons."""

from pathlib import Path

import pytest
import yaml

from cpcore.exercises import catalogue
from cpcore.exercises.exercise import Answer, Exercise
from cpcore.exercises.judging import judge_case
from cpcore.exercises.sources import function, model_source
from cpcore.exercises.values import size
from tests.support.answers import mutants

# exercise -> change -> "equivalent: …" or "survives: …"
REASONS: dict[str, dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "survivors.yml").read_text(encoding="utf-8")
)
LIMIT_S = 1.0  # of one call; solutions need milliseconds


def found_by(exercise: Exercise, answer: Answer) -> str | None:
    """The first claim that breaks, None if the answer would be accepted."""
    for claim in exercise.all_claims():
        for args in sorted(claim.cases(), key=lambda case: size(list(case))):
            failure, _ = judge_case(exercise, claim, answer, args, LIMIT_S)
            if failure is not None:
                return claim.text
    return None


def survivors(exercise: Exercise) -> tuple[list[str], int]:
    """Changes that no claim notices, and how many were tried."""
    alive, tried = [], 0
    for what, source in mutants(model_source(exercise.name), exercise.name):
        tried += 1
        try:
            answer = function(exercise.name, source, "mutant")
        except Exception:  # does not even define the function
            continue
        if found_by(exercise, answer) is None:
            alive.append(what)
    return alive, tried


@pytest.mark.parametrize("exercise", catalogue.values(), ids=lambda e: e.name)
def test_changes_of_a_solution_are_found_or_have_a_reason(exercise: Exercise) -> None:
    alive, tried = survivors(exercise)
    known = REASONS.get(exercise.name, {})
    assert sorted(alive) == sorted(known)
    assert all(reason.startswith(("equivalent: ", "survives: ")) for reason in known.values())
    equivalent = sum(reason.startswith("equivalent: ") for reason in known.values())
    assert tried >= 5
    assert 10 * (tried - len(alive)) >= 9 * (tried - equivalent)


def test_survivors_are_listed_for_exercises_that_exist() -> None:
    assert set(REASONS) <= set(catalogue)
