"""Warnings are errors here too; the wrong systems make their NaN without any."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def no_warning_no_invalid_flag() -> Iterator[None]:
    with np.errstate(divide="raise", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
