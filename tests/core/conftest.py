"""Every core test runs with numpy's division and invalid flags raised and warnings as errors.

Hypothesis is derandomized, so that a test has one outcome. CPCORE_EXPLORE=1 looks further: random
seeds, twenty times the examples.
"""

import warnings
from collections.abc import Iterator

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
