"""The error bound accepts honest rounding and rejects small faults: a bound must do both."""

from typing import Any

import numpy as np
import pytest

from cpcore import dense_attention, dense_attention_backward
from tests.support.tolerance import Problem, assert_within, reference, tolerance


def problem(dtype: Any = np.float64, size: float = 1.0) -> Problem:
    rng = np.random.default_rng(0)
    q, k, v, dout = (rng.standard_normal((2, 6, 4)).astype(dtype) for _ in range(4))
    return Problem(q, (size * k).astype(dtype), v, dout=dout)


def accepts(actual: Any, wanted: Any, allowed: Any) -> bool:
    try:
        assert_within("probe", actual, wanted, allowed)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("size", [1e-6, 1.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_oracle_in_its_own_precision_is_within_the_bound(dtype: Any, size: float) -> None:
    p = problem(dtype, size)
    assert p.dout is not None
    out, lse = dense_attention(p.q, p.k, p.v)
    answers = (out, lse, *dense_attention_backward(p.q, p.k, p.v, p.dout))
    for got, wanted, allowed in zip(answers, reference(p), tolerance(p), strict=True):
        assert accepts(got, wanted, allowed)


@pytest.mark.parametrize(("dtype", "fault"), [(np.float64, 1e-10), (np.float32, 3e-2)])
def test_a_small_relative_fault_is_far_outside_the_bound(dtype: Any, fault: float) -> None:
    p = problem(dtype)
    for wanted, allowed in zip(reference(p), tolerance(p), strict=True):
        assert wanted is not None
        assert allowed is not None
        excess = np.abs(wanted * fault / allowed)
        assert excess.max() > 1000
        assert not accepts(wanted * (1 + fault), wanted, allowed)


def test_a_gradient_whose_true_value_is_zero_keeps_a_bound_of_the_right_size() -> None:
    """All values equal: dq and dk are 0, and rounding still leaves 1e-17. A bound in proportion to
    the reference would reject that.
    """
    p = problem()
    assert p.dout is not None
    p = Problem(p.q, p.k, np.ones_like(p.v), dout=p.dout)
    dq, dk, _ = dense_attention_backward(p.q, p.k, p.v, problem().dout)  # type: ignore[arg-type]
    wanted, allowed = reference(p), tolerance(p)
    assert np.abs(wanted.dq).max() < 1e-17  # type: ignore[arg-type]
    assert accepts(dq, wanted.dq, allowed.dq)
    assert accepts(dk, wanted.dk, allowed.dk)
    assert not accepts(dq + 1e-12, wanted.dq, allowed.dq)


def test_shapes_and_infinities_must_agree() -> None:
    assert not accepts(np.zeros((2, 1)), np.zeros(2), 1.0)
    assert accepts([-np.inf, 1.0], [-np.inf, 1.0], 0.0)
    assert not accepts([0.0], [-np.inf], np.inf)
    assert not accepts([np.nan], [0.0], np.inf)
    assert not accepts([-np.inf], [0.0], 1.0)
