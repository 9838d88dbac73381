"""Seconds of Run and Submit for every exercise, with its own solution.

`python -m benchmarks.exercises`. A reader waits for Submit; the aim is 2 seconds at most.
"""

from __future__ import annotations

import os
import time

from cpcore.exercises import catalogue, judge, run
from cpcore.exercises.sources import solution, wrong_answer

AIM_S = 2.0


def seconds(call: object, *args: object) -> float:
    """The time of one call."""
    began = time.perf_counter()
    call(*args)  # type: ignore[operator]
    return time.perf_counter() - began


def main() -> None:
    """One line per exercise: Run, Submit accepted, the slowest Submit of a wrong answer."""
    os.environ["CPCORE_PROGRESS"] = "off"
    print(f"{'exercise':22} {'run':>6} {'submit':>7} {'wrong':>6}")
    worst = 0.0
    for name, exercise in catalogue.items():
        right = seconds(judge, solution(name))
        wrong = max(seconds(judge, wrong_answer(exercise, each)) for each in exercise.wrong)
        print(f"{name:22} {seconds(run, name, solution(name)):6.2f} {right:7.2f} {wrong:6.2f}")
        worst = max(worst, right, wrong)
    print(f"slowest {worst:.2f} s, aim {AIM_S} s")


if __name__ == "__main__":
    main()
