"""The coverage map: points of the source texts, where the book treats them, what shows them.

`pages` are `PAGE` or `PAGE#ANCHOR` below book/. `tests` are `tests/FILE.py::FUNCTION`, or
`book/CHAPTER.ipynb::TEXT` for a code cell, executed by nbval, whose code or printed output holds
TEXT. A point of a chapter that is not written yet is `pending: ISSUE`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml

from scripts.build import ROOT
from tests.support.anchors import anchors

MAP = ROOT / "tests" / "coverage_map.yml"
# What an open issue still owes; nothing else may be pending.
DUE = {
    7: {"11_field_bugs.ipynb", "12_exercises.ipynb"},
}
Point = dict[str, Any]


def points() -> dict[str, list[Point]]:
    """All points by source."""
    found: dict[str, list[Point]] = yaml.safe_load(MAP.read_text(encoding="utf-8"))
    return found


@cache
def anchors_of(page: Path) -> set[str]:
    """Read each page once."""
    return anchors(page)


@cache
def functions_of(path: Path) -> set[str]:
    """Test functions of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


@cache
def cells_of(path: Path) -> list[str]:
    """Code and printed output of each code cell."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    return ["\n".join([c.source, *(o.get("text", "") for o in c.outputs)]) for c in cells]


def page_faults(target: str) -> list[str]:
    """Why a page that exists does not have this anchor."""
    name, _, anchor = target.partition("#")
    fine = not anchor or anchor in anchors_of(ROOT / "book" / name)
    return [] if fine else [f"{target}: no such anchor"]


def test_faults(target: str) -> list[str]:
    """Why a file that exists does not hold this test or cell."""
    name, _, what = target.partition("::")
    path = ROOT / name
    if path.suffix == ".ipynb":
        fine = bool(what) and any(what in cell for cell in cells_of(path))
    else:
        fine = what.startswith("test_") and what in functions_of(path)
    return [] if fine else [f"{target}: no such {'cell' if path.suffix == '.ipynb' else 'test'}"]


test_faults.__test__ = False  # type: ignore[attr-defined]


def faults(point: Point) -> list[str]:
    """Everything about a point that does not resolve and is not pending."""
    pages, tests = point.get("pages", []), point.get("tests", [])
    issue = point.get("pending")
    found = [] if issue is None or issue in DUE else [f"issue {issue} may not be pending"]
    due = DUE.get(issue, set()) if issue is not None else set()
    if issue is not None and not {page.partition("#")[0] for page in pages} & due:
        found.append(f"issue {issue} owes none of {pages}")
    if not pages or not (tests or due):
        found.append("no page or no test")
    for target in pages:
        name = target.partition("#")[0]
        if (ROOT / "book" / name).is_file():
            found += page_faults(target)
        elif name not in due:
            found.append(f"{target}: no such page")
    for target in tests:
        name = target.partition("::")[0]
        if (ROOT / name).is_file():
            found += test_faults(target)
        elif not due or (name.startswith("book/") and name.removeprefix("book/") not in due):
            found.append(f"{target}: no such file")
    return found
