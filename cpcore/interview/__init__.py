"""Interview preparation: drills, judging, the question bank's engine, and the rounds.

Engine only: the bank itself is data in `book/data/interview`. `cpcore.interview` is imported by
name; `import cpcore` does not load it. It needs numpy for its second way of counting, never torch.
"""

from cpcore.interview.bank import Bank, Card, Mock, make_bank
from cpcore.interview.diagnosis import Case, Grade, best_order, cases, grade
from cpcore.interview.diagnosis_base import Check
from cpcore.interview.diagnosis_times import pairs_by_step
from cpcore.interview.drill_base import Drill
from cpcore.interview.drills import KINDS, drill, prepared
from cpcore.interview.expressions import evaluate, way_of
from cpcore.interview.judge import Slip, Verdict, judge
from cpcore.interview.schema import AXES, LEVELS, STEPS, filled
from cpcore.interview.units import UNITS, Answer, read, show

__all__ = [
    "AXES",
    "KINDS",
    "LEVELS",
    "STEPS",
    "UNITS",
    "Answer",
    "Bank",
    "Card",
    "Case",
    "Check",
    "Drill",
    "Grade",
    "Mock",
    "Slip",
    "Verdict",
    "best_order",
    "cases",
    "drill",
    "evaluate",
    "filled",
    "grade",
    "judge",
    "make_bank",
    "pairs_by_step",
    "prepared",
    "read",
    "show",
    "way_of",
]
