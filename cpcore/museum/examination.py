"""Every check and every probe run on every exhibit, each pair once.

Owns the matrix that shows what the checklist can tell apart, in its two forms, text and table.
"""

from functools import cache

from cpcore.museum.backward import BACKWARD
from cpcore.museum.checklist import CHECKLIST
from cpcore.museum.checks import Verdict
from cpcore.museum.exhibits import Exhibit
from cpcore.museum.facts import Facts
from cpcore.museum.forward import FORWARD
from cpcore.museum.grid import grid
from cpcore.museum.page import Page
from cpcore.museum.system import System

EXHIBITS: dict[str, Exhibit] = {exhibit.id: exhibit for exhibit in (*FORWARD, *BACKWARD)}


@cache
def verdicts(exhibit_id: str) -> dict[str, Verdict]:
    """Verdict of each check on an exhibit, by the id of the check."""
    return examine(EXHIBITS[exhibit_id].system)


def examine(system: System) -> dict[str, Verdict]:
    """Verdict of each check on a system, in the order of the checklist."""
    return {check.id: check.run(system) for check in CHECKLIST}


@cache
def symptom(exhibit_id: str) -> Facts:
    """What a visitor sees of an exhibit."""
    return EXHIBITS[exhibit_id].probe(EXHIBITS[exhibit_id].system)


@cache
def repaired(exhibit_id: str) -> Facts:
    """The same probe of the right system."""
    return EXHIBITS[exhibit_id].probe(System())


def failed(exhibit_id: str) -> tuple[str, ...]:
    """The ids of the checks that an exhibit fails, in the order of the checklist."""
    return tuple(name for name, verdict in verdicts(exhibit_id).items() if not verdict.passed)


def matrix() -> Page:
    """Rows are the exhibits, columns the checks by number; a last row is the right system."""
    rows = {id_: [v.passed for v in verdicts(id_).values()] for id_ in EXHIBITS}
    rows["right system"] = [v.passed for v in examine(System()).values()]
    numbers = [str(i) for i in range(1, len(CHECKLIST) + 1)]
    lines = ["".join([f"{'':13}", *(f"{n:>3}" for n in numbers)])]
    for name, passed in rows.items():
        lines.append("".join([f"{name:13}", *("  ." if ok else "  x" for ok in passed)]))
    lines.append("x fails, . passes")
    return Page("\n".join(lines), grid(rows))
