"""The conditions that every core test claims to run under."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import EXPLORING


def test_an_invalid_operation_raises() -> None:
    with pytest.raises(FloatingPointError, match="invalid"):
        np.subtract(np.array([np.inf]), np.inf)
    with pytest.raises(FloatingPointError, match="divide"):
        np.divide(np.ones(1), 0)


@settings(max_examples=2)
@given(st.integers())
def test_an_invalid_operation_raises_inside_a_property_too(number: int) -> None:
    with pytest.raises(FloatingPointError, match="invalid"):
        np.subtract(np.array([np.inf]), np.inf)


def test_a_warning_is_an_error() -> None:
    with pytest.raises(UserWarning, match="seen"):
        warnings.warn("seen", UserWarning, stacklevel=1)


def test_properties_have_one_outcome_unless_exploring() -> None:
    assert settings.default is not None
    assert settings.default.derandomize is not EXPLORING
