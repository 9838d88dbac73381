"""What the practice page needs, as one structure of plain values: bank, mocks, drills, cases.

Owns which mocks and drills are prepared when the book is built. The page's script holds no
question, no unit and no number of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpcore.interview.bank import Bank
from cpcore.interview.diagnosis import Case, best_order, cases
from cpcore.interview.drill_base import Drill
from cpcore.interview.drills import KINDS, prepared
from cpcore.interview.judge import ALWAYS, BINARY_NAMES, FAR, NEAR, TIED, best_shown
from cpcore.interview.schema import AXES, LEVELS
from cpcore.interview.units import COUNTS, POWERS, SPELLINGS, UNITS

MINUTES = (15, 30, 45, 60)
DRILLS = 132  # twelve of each kind


def page_data(bank: Bank, steps: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the practice page shows; `steps` names the eight steps of an answer."""
    return {
        "axes": list(AXES),
        "levels": list(LEVELS),
        "minutes": list(MINUTES),
        "steps": dict(steps),
        "ladder": {axis: list(rungs) for axis, rungs in bank.ladder.items()},
        "questions": {name: _question(entry) for name, entry in bank.questions.items()},
        "mocks": {
            level: {
                str(minutes): [[m.chain, list(m.questions)] for m in bank.mocks(level, minutes)]
                for minutes in MINUTES
            }
            for level in LEVELS
        },
        "kinds": list(KINDS),
        "drills": [_drill(drill) for drill in prepared(DRILLS)],
        "cases": [_case(case) for case in cases()],
        "judge": judge_tables(),
    }


def judge_tables() -> dict[str, Any]:
    """The tables by which an answer is read and judged."""
    return {
        "units": {name: [unit.quantity, unit.factor] for name, unit in UNITS.items()},
        "spellings": SPELLINGS,
        "counts": list(COUNTS),
        "powers": {name: factor for name, factor in POWERS.items() if name},
        "always": {name: [list(slip) for slip in slips] for name, slips in ALWAYS.items()},
        "binary": BINARY_NAMES,
        "near": NEAR,
        "tied": TIED,
        "far": FAR,
    }


def _question(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A question as the page shows it; links lead to built pages."""
    left_out = {"id", "sources", "function"}
    shown = {key: value for key, value in entry.items() if key not in left_out}
    return {**shown, "link": entry["link"].replace(".ipynb", ".html").replace(".md", ".html")}


def _drill(drill: Drill) -> dict[str, Any]:
    return {
        "kind": drill.kind,
        "prompt": drill.prompt,
        "value": drill.value,
        "unit": drill.unit,
        "right": best_shown(drill.value, drill.unit),
        "factor": drill.factor,
        "slips": [list(slip) for slip in drill.slips],
        "steps": list(drill.steps),
    }


def _case(case: Case) -> dict[str, Any]:
    minutes = {check.name: check.minutes for check in case.checks}
    return {
        "name": case.name,
        "story": case.story,
        "checks": [list(check) for check in case.checks],
        "seen": {cause: list(row) for cause, row in case.seen.items()},
        "truth": case.truth,
        "best": sum(minutes[name] for name in best_order(case)),
    }
