"""Every core test runs with numpy's division and invalid flags raised and warnings as errors.

Hypothesis is derandomized, so that a test has one outcome. CPCORE_EXPLORE=1 looks further: random
seeds, twenty times the examples.

Coverage is measured here and nowhere else: the core must be covered by its own tests, and
measuring makes the pictures' tests twice as slow.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import coverage
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support.cases import EXPLORING

slow_data = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=slow_data
)
settings.register_profile("explore", database=None, deadline=None, suppress_health_check=slow_data)
settings.load_profile("explore" if EXPLORING else "fixed")


@pytest.fixture(autouse=True)
def no_warning_no_invalid_flag() -> Iterator[None]:
    with np.errstate(divide="raise", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    measuring = coverage.Coverage.current()
    if measuring and (nextitem is None or Path(__file__).parent not in nextitem.path.parents):
        measuring.stop()
