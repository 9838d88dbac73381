"""`python -m cpcore drill`: estimate drills in a terminal, as many as the reader likes.

Owns the conversation. The drills are in `drills`, the verdicts in `judge`.
"""

from __future__ import annotations

import argparse
import itertools
import sys

from cpcore.interview.drill_base import Drill
from cpcore.interview.drills import KINDS, drill


def main(argv: list[str]) -> int:
    """Ask one drill after another, until an empty line or the end of the input.

    An answer is a number with a unit; `?` shows the worked solution.
    """
    parser = argparse.ArgumentParser(
        prog="python -m cpcore drill",
        description="Answer with a number and a unit; ? shows the solution, an empty line ends.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first drill (default 0)")
    parser.add_argument("--kind", choices=sorted(KINDS), help="one kind only")
    args = parser.parse_args(argv)
    for seed in itertools.count(args.seed):
        if not _ask(seed, drill(seed, args.kind)):
            return 0
    return 0


def _ask(seed: int, one: Drill) -> bool:
    """Ask until the answer is right or its solution was shown; False ends the conversation."""
    print(f"\n[{seed}] {one}")
    while True:
        print("> ", end="", flush=True)
        answer = sys.stdin.readline().strip()
        if not answer:
            return False
        if answer == "?":
            print(one.solution())
            return True
        verdict = one.judge(answer)
        print(verdict.text)
        if verdict.right:
            return True
