"""Every exercise of the bank: solutions pass, starters fail, wrong answers are found."""

import ast
import re
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpcore import exercises
from cpcore.exercises import catalogue, judge, run, specification, starter
from cpcore.exercises.exercise import LEVELS, Exercise, Wrong, call
from cpcore.exercises.judging import argument_names
from cpcore.exercises.sources import (
    function,
    model_source,
    solution,
    solution_source,
    wrong_answer,
)
from scripts import notebooks

BOOK = {path.name for path in notebooks.paths()}
EXERCISES = list(catalogue.values())
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
each_wrong = pytest.mark.parametrize(
    ("exercise", "wrong"),
    [pytest.param(e, w, id=f"{e.name}-{w.name}") for e in EXERCISES for w in e.wrong],
)


def arguments(exercise: Exercise) -> list[str]:
    """The parameters of the solution, read from its text."""
    tree = ast.parse(model_source(exercise.name))
    made = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == exercise.name)
    return [argument.arg for argument in made.args.args]


@each_exercise
def test_the_solution_passes_run_and_submit(exercise: Exercise) -> None:
    answer = solution(exercise.name)
    assert run(exercise.name, answer), run(exercise.name, answer)
    verdict = judge(answer)
    assert verdict, verdict
    assert verdict.cost is not None
    assert verdict.cost.lines > 0


@each_exercise
def test_the_starter_fails_run_and_submit_and_says_that_it_is_not_written(
    exercise: Exercise,
) -> None:
    answer = function(exercise.name, starter(exercise.name), "starter")
    assert not run(exercise.name, answer)
    verdict = judge(answer)
    assert verdict.failure is not None
    assert "not written yet" in verdict.failure.what


@each_wrong
def test_a_wrong_answer_is_rejected_and_passes_run_only_where_declared(
    exercise: Exercise, wrong: Wrong
) -> None:
    answer = wrong_answer(exercise, wrong)
    verdict = judge(answer)
    assert verdict.failure is not None, "accepted"
    assert bool(run(exercise.name, answer)) == wrong.passes_run


@each_exercise
def test_an_exercise_has_at_least_three_wrong_answers_under_names_of_their_own(
    exercise: Exercise,
) -> None:
    assert len({wrong.name for wrong in exercise.wrong}) == len(exercise.wrong) >= 3
    assert all(wrong.means and not wrong.means.endswith(".") for wrong in exercise.wrong)


def test_a_third_of_the_wrong_answers_follow_public_reports_and_some_pass_run() -> None:
    every = [wrong for exercise in EXERCISES for wrong in exercise.wrong]
    assert 3 * sum(bool(wrong.seen_in) for wrong in every) >= len(every)
    assert sum(wrong.passes_run for wrong in every) >= len(EXERCISES)


@each_exercise
def test_no_public_text_holds_a_line_of_the_solution(exercise: Exercise) -> None:
    """Hints give away ideas, the last one nearly all; none gives the code."""
    inside = re.search(r"# >>> yours\n(.*?)# <<<", solution_source(exercise.name), re.DOTALL)
    assert inside is not None
    lines = {line.strip() for line in inside[1].split("\n") if len(line.strip()) > 12}
    shown = "\n".join([starter(exercise.name), *exercise.hints])
    assert not [line for line in lines if line in shown]


@each_exercise
def test_an_exercise_is_described_in_full(exercise: Exercise) -> None:
    assert exercise.level in LEVELS
    assert 5 <= exercise.minutes <= 45
    assert exercise.chapter in BOOK
    assert len(set(exercise.hints)) == 3
    assert all(30 < len(text) < 400 and text[-1] in ".?" for text in exercise.hints)
    assert len(exercise.examples) >= 1
    assert len({claim.text for claim in exercise.claims}) == len(exercise.claims) >= 2
    text = specification(exercise.name)
    for argument in arguments(exercise):
        assert re.search(rf"\b{argument}\b", text), argument


@each_exercise
def test_oracle_and_solution_have_the_same_arguments(exercise: Exercise) -> None:
    """Except where the oracle sees the whole ring and the answer one rank."""
    if exercise.play is call:
        assert arguments(exercise) == argument_names(exercise)


def arrays(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    return [a for item in value for a in arrays(item)] if isinstance(value, tuple | list) else []


@each_exercise
def test_arguments_are_fresh_on_every_call(exercise: Exercise) -> None:
    """Or an answer that changes them would spoil the next test."""
    for example in exercise.examples:
        every = arrays(example.args()) + arrays(example.args())
        assert not any(np.shares_memory(a, b) for a, b in combinations(every, 2))
    for claim in exercise.claims:
        once, again = list(claim.cases()), list(claim.cases())
        assert len(once) == len(again) > 0
        for one, other in product(arrays(once), arrays(again)):
            assert one is not other


def modules() -> list[Path]:
    return sorted(Path(exercises.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_a_module_is_short_and_needs_numpy_and_the_core_only(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 200
    for node in ast.walk(ast.parse(source)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            root = name.split(".")[0]
            assert root in {"numpy", "cpcore"} or root in sys.stdlib_module_names, name
            assert not name.startswith(("cpcore.ui", "cpcore.distributed")), name


def test_importing_the_exercises_loads_neither_pictures_nor_torch() -> None:
    code = "import sys, cpcore.exercises; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "matplotlib", "ipywidgets", "IPython", "cpcore.ui"}
