"""Exercises with a judge: write a function, Run it on examples, Submit it to every test.

The same calls work in Jupyter, in plain Python, under pytest and in the page. numpy only.
"""

from dataclasses import replace

from cpcore.exercises import progress
from cpcore.exercises.bank import catalogue
from cpcore.exercises.exercise import Answer, Exercise
from cpcore.exercises.hints import Hints, hint
from cpcore.exercises.judging import find, judge, run
from cpcore.exercises.overview import Overview, overview
from cpcore.exercises.results import RunResult, Verdict
from cpcore.exercises.sources import specification, starter


def submit(name: str, answer: Answer) -> Verdict:
    """`judge`, and a solved exercise is remembered in the reader's progress.

    Raises: ValueError for an unknown name or an answer that is no function.
    """
    verdict = judge(answer, name)
    notes = [verdict.note]
    minutes = progress.minutes_since_begin(name)
    if minutes is not None:
        notes.append(f"{minutes:.0f} of {find(name).minutes} minutes since begin")
    if verdict.accepted:  # which also stops the clock
        stopped = {} if minutes is None else {"started": 0}
        notes.append(progress.update(name, solved=True, **stopped))
    return replace(verdict, note="; ".join(filter(None, notes)))


def begin(name: str) -> str:
    """Start the clock of an exercise, and return its starter.

    Raises: ValueError for an unknown name.
    """
    progress.begin(find(name).name)
    return starter(name)


__all__ = [
    "Exercise",
    "Hints",
    "Overview",
    "RunResult",
    "Verdict",
    "begin",
    "catalogue",
    "hint",
    "judge",
    "overview",
    "progress",
    "run",
    "specification",
    "starter",
    "submit",
]
