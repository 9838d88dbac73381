"""The examples in the docstrings of the core say what they print."""

import doctest
import importlib
from pathlib import Path

import pytest

import cpcore

PACKAGE = Path(cpcore.__file__).parent
PLANNER = [f"planner.{path.stem}" for path in PACKAGE.glob("planner/*.py")]
INTERVIEW = [f"interview.{path.stem}" for path in PACKAGE.glob("interview/*.py")]
MODULES = sorted([*(path.stem for path in PACKAGE.glob("*.py")), *PLANNER, *INTERVIEW])
WITH_EXAMPLES = {
    "chunks",
    "dense",
    "interview.counting",
    "interview.drills",
    "interview.expressions",
    "interview.judge",
    "interview.units",
    "layouts",
    "ledger",
    "loss",
    "masks",
    "packing",
    "planner.heads",
    "planner.memory",
    "planner.overlap",
    "planner.traffic",
    "planner.work",
    "positions",
    "ring",
}


def run(name: str) -> doctest.TestResults:
    module = cpcore if name == "__init__" else importlib.import_module(f"cpcore.{name}")
    return doctest.testmod(module)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_core_module_holds(name: str) -> None:
    assert run(name).failed == 0


def test_the_modules_a_reader_meets_have_examples() -> None:
    assert {name for name in MODULES if run(name).attempted} >= WITH_EXAMPLES
    assert sum(run(name).attempted for name in MODULES) >= 19
