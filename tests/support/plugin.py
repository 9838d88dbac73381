"""What the whole test run needs in every process that runs tests: coverage, and a last word.

Loaded by name (`-p tests.support.plugin`), before any conftest, so that coverage also sees the
lines that run when a module is imported.

Coverage is measured in tests/core and nowhere else: the core must be covered by its own tests, and
measuring makes tests half as slow again. It is asked for by CPCORE_COVERAGE=1, not by the
plugin pytest-cov: with that one nbval also measures inside the kernels, and hangs there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

MEASURED = Path(__file__).resolve().parent.parent / "core"
# They run thousands of cases through lines that the other tests of the core read as well.
SWEEPS = {
    "test_ledger_double.py",
    "test_ring_properties.py",
    "test_schedule_work.py",
    "test_simulate_metamorphic.py",
    "test_simulate_poison.py",
    "test_simulate_random.py",
}
SAID = "said"

measure = coverage.Coverage(data_suffix=True) if os.environ.get("CPCORE_COVERAGE") else None
if measure:
    measure.start()


def pytest_collection_finish() -> None:
    if measure:
        measure.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure the tests of the core, with their fixtures."""
    if measure and MEASURED in item.path.parents and item.path.name not in SWEEPS:
        measure.start()
        try:
            return (yield)
        finally:
            measure.stop()
    return (yield)


def pytest_unconfigure() -> None:
    if measure:
        measure.save()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have to say even when they pass, whichever process they ran in."""
    passed = terminalreporter.stats.get("passed", [])
    said = [text for report in passed for kind, text in report.user_properties if kind == SAID]
    for text in said:
        terminalreporter.write_line(str(text))
