"""Run an answer against the examples, or judge it by every hidden test.

Owns the order of the tests and what a failure tells: the claim that broke and the smallest input
that shows it, never the solution.
"""

import copy
import inspect
from dataclasses import replace
from typing import Any

from cpcore.checks import expected
from cpcore.exercises.bank import catalogue
from cpcore.exercises.budgets import over_budget
from cpcore.exercises.calls import Outcome, guarded, space_of
from cpcore.exercises.compare import Difference, difference
from cpcore.exercises.cost import measured, of_model
from cpcore.exercises.exercise import Answer, Args, Claim, Exercise
from cpcore.exercises.mistakes import known_mistake
from cpcore.exercises.results import Failure, RunResult, Shown, Verdict
from cpcore.exercises.tracing import as_text, steps
from cpcore.exercises.values import same, short, size


def find(name: str) -> Exercise:
    """The exercise of that name."""
    if name not in catalogue:
        raise expected("name", f"one of {', '.join(catalogue)}", repr(name))
    return catalogue[name]


def run(name: str, answer: Answer) -> RunResult:
    """Every example: yours beside the expected one, the first difference and what it means."""
    exercise = find(name)
    _check_callable(answer)
    examples = exercise.examples
    mistake = known_mistake(exercise, answer, [example.args() for example in examples])
    shown: list[Shown] = []
    for one in examples:
        shown.append(_example(exercise, answer, one.title, one.args(), mistake))
        if "stopped" in shown[-1].what:
            break  # the next would take as long
    first = next((i for i, seen in enumerate(shown) if not seen.right), 0)
    args = examples[first].args()
    trace = as_text(steps(lambda: exercise.play(answer, *args), answer))
    return RunResult(name, tuple(shown), examples[first].title, trace)


def judge(answer: Answer, name: str | None = None) -> Verdict:
    """Every hidden test of the exercise, by default the one that is named like the function."""
    _check_callable(answer)
    exercise = find(getattr(answer, "__name__", "") if name is None else name)
    failure, held, notes = None, 0, ""
    claims = exercise.all_claims()
    for claim in claims:
        broken, printed = _claim(exercise, claim, answer)
        notes = notes or printed
        if broken is None:
            held += 1
        elif failure is None:
            failure = broken
        if broken is not None and "stopped" in broken.what:
            break
    cost = model = None
    if failure is None:
        cost, model = measured(exercise, answer), of_model(exercise)
        failure = over_budget(exercise, cost)
    return Verdict(exercise.name, held, len(claims), failure, cost, model, notes)


def _check_callable(answer: Any) -> None:
    if not callable(answer):
        raise expected("answer", "the function that you wrote", type(answer).__name__)


def attempt(
    exercise: Exercise, answer: Answer, args: Args, measure: bool = False,
    limit_s: float | None = None,
) -> Outcome:  # fmt: skip
    """One guarded call, whose error also tells of a changed argument."""
    kept = copy.deepcopy(args)
    outcome = guarded(
        lambda: exercise.play(answer, *args),
        space=space_of(answer),
        measure=measure,
        limit_s=limit_s,
    )
    names = argument_names(exercise)
    changed = [n for n, a, b in zip(names, args, kept, strict=True) if not same(a, b)]
    if not outcome.error and changed:
        outcome.error = f"it changed its argument {changed[0]}; write the result into a new array"
    if not outcome.error and inspect.isgenerator(outcome.value):
        outcome.error = "it returned a generator: use return instead of yield"
    return outcome


def argument_names(exercise: Exercise) -> list[str]:
    """The names of the arguments, as the oracle has them."""
    return list(inspect.signature(exercise.oracle).parameters)


def call_text(exercise: Exercise, args: Args) -> str:
    """The arguments of a call, one a line."""
    names = argument_names(exercise)
    rows = [f"{n} = {short(a)}" for n, a in zip(names, args, strict=True)]
    return "\n".join([exercise.shared, *rows] if exercise.shared else rows)


def _example(exercise: Exercise, answer: Answer, title: str, args: Args, mistake: str) -> Shown:
    kept, text = copy.deepcopy(args), call_text(exercise, args)
    outcome = attempt(exercise, answer, args)
    want = exercise.oracle(*copy.deepcopy(kept))
    wanted = short(want, exercise.parts)
    if outcome.error:
        return Shown(title, text, "", wanted, outcome.error, "", outcome.printed)
    found, yours = _compare(exercise, None, outcome.value, kept)
    if found is None:
        return Shown(title, text, yours, wanted, "", "", outcome.printed)
    meaning = mistake or found.meaning
    return Shown(title, text, yours, wanted, str(found), meaning, outcome.printed)


def _claim(exercise: Exercise, claim: Claim, answer: Answer) -> tuple[Failure | None, str]:
    """The failure of the smallest case that fails, and what was printed."""
    printed = ""
    for args in sorted(claim.cases(), key=lambda case: size(list(case))):
        failure, text = judge_case(exercise, claim, answer, args)
        printed = printed or text
        if failure is not None:
            named = failure.yours and known_mistake(exercise, answer, list(claim.cases()))
            return replace(failure, meaning=named or failure.meaning), printed
    return None, printed


def judge_case(
    exercise: Exercise,
    claim: Claim,
    answer: Answer,
    args: Args,
    limit_s: float | None = None,
) -> tuple[Failure | None, str]:
    """One case of one claim: the failure, and what was printed."""
    kept = copy.deepcopy(args)
    outcome = attempt(exercise, answer, args, claim.peak is not None, limit_s)
    what = yours = meaning = ""
    if outcome.error:
        what = outcome.error
    else:
        found, text = _compare(exercise, claim, outcome.value, kept)
        if found is not None:
            yours, what, meaning = text, str(found), found.meaning
        elif claim.clean and outcome.flags:
            what = (
                "the result is right, but this claim allows no such operation: numpy met "
                + " and ".join(sorted(outcome.flags))
            )
        elif claim.peak is not None and outcome.peak_bytes > claim.peak(*kept):
            what = f"it held {outcome.peak_bytes:,} bytes at once, over {claim.peak(*kept):,}"
    if not what:
        return None, outcome.printed
    text = call_text(exercise, kept)
    return Failure(claim.text, text, what, yours, meaning), outcome.printed


def _compare(
    exercise: Exercise, claim: Claim | None, got: Any, args: Args
) -> tuple[Difference | None, str]:
    """The first difference, and the result as text. A reader's object may do anything meanwhile."""
    outcome = guarded(
        lambda: (_found(exercise, claim, got, args), short(got, exercise.parts)),
        space=None,
    )
    if outcome.error:
        return Difference(
            "result", f"of type {type(got).__name__}", f"a plain value, but {outcome.error}"
        ), ""
    found: tuple[Difference | None, str] = outcome.value
    return found


def _found(exercise: Exercise, claim: Claim | None, got: Any, args: Args) -> Difference | None:
    """The first difference, or the complaint of the claim's own check."""
    check = exercise.claims[0].check if claim is None else claim.check
    if check is None:
        tolerance = None if claim is None else claim.tolerance
        want = exercise.oracle(*copy.deepcopy(args))
        return difference(got, want, tolerance, exercise.parts)
    try:
        complaint = check(got, *copy.deepcopy(args))
    except Exception:  # a check meets results of any form
        return Difference("result", short(got), "the form that the specification names")
    return Difference("result", short(got), complaint) if complaint else None
