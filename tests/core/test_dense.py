"""The oracle, checked in the fixed order: closed forms, torch autograd, finite differences."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cpcore import dense_attention, dense_attention_backward
from tests.support.cases import Case, cases, examples
from tests.support.tolerance import Problem, assert_within, reference, tolerance

Array = NDArray[Any]


def column(*numbers: float) -> Array:
    return np.array(numbers, np.float64)[:, None]


def test_scores_zero_and_ln3_weigh_a_quarter_and_three_quarters() -> None:
    out, lse = dense_attention(column(1), column(0, np.log(3)), column(0, 4), scale=1.0)
    assert out.item() == pytest.approx(3.0, rel=1e-15)
    assert lse.item() == pytest.approx(np.log(4), rel=1e-15)


def test_equal_scores_give_the_mean_of_the_visible_values() -> None:
    visible = np.tril(np.ones((4, 4), bool))
    out, lse = dense_attention(
        np.zeros((4, 3)), np.ones((4, 3)), column(1, 2, 4, 8), visible=visible
    )
    assert_within("out", out[:, 0], [1, 1.5, 7 / 3, 3.75], 1e-15)
    assert_within("lse", lse, np.log([1, 2, 3, 4]), 1e-15)


def test_the_default_scale_is_one_over_the_root_of_the_width() -> None:
    """q·k = 4·ln 3 at D = 16: a scale of 1/4 makes the score ln 3."""
    q, k = np.ones((1, 16)), np.zeros((2, 16))
    k[1] = np.log(3) / 4
    out, _ = dense_attention(q, k, column(0, 4))
    assert out.item() == pytest.approx(3.0, rel=1e-14)


def test_gradients_of_two_keys_have_their_closed_form() -> None:
    """p = σ(1): dq = dk₁ = -dk₀ = p(1-p), dv = (1-p, p)."""
    p = 1 / (1 + np.exp(-1.0))
    dq, dk, dv = dense_attention_backward(
        column(1), column(0, 1), column(0, 1), column(1), scale=1.0
    )
    assert_within("dq", dq, [[p * (1 - p)]], 1e-15)
    assert_within("dk", dk[:, 0], [-p * (1 - p), p * (1 - p)], 1e-15)
    assert_within("dv", dv[:, 0], [1 - p, p], 1e-15)


def test_dropout_scales_the_output_but_not_the_normalizer() -> None:
    keep = np.array([[0.0, 2.0]])
    out, lse = dense_attention(column(1), column(0, 0), column(3, 5), keep=keep)
    assert (out.item(), lse.item()) == (5.0, pytest.approx(np.log(2)))
    rows = (column(1), column(0, 0), column(3, 5), column(1))
    _, _, dv = dense_attention_backward(*rows, keep=keep)
    assert dv[:, 0].tolist() == [0.0, 1.0]


def test_a_row_without_keys_gives_zero_minus_infinity_and_no_gradient() -> None:
    visible = np.array([[True, True], [False, False]])
    q, k, v = column(1, 2), column(3, 4), column(5, 6)
    out, lse = dense_attention(q, k, v, visible=visible)
    assert out[1].item() == 0
    assert np.isneginf(lse[1])
    dq, dk, dv = dense_attention_backward(q, k, v, column(0, 7), visible=visible)
    assert not dq.any()
    assert not dk.any()
    assert not dv.any()


def through_torch(p: Problem) -> tuple[Array, ...]:
    """Output and gradients by torch autograd in float64, heads repeated by an explicit index."""
    q, k, v = (torch.tensor(np.array(x, np.float64), requires_grad=True) for x in (p.q, p.k, p.v))
    key, value = k, v
    if p.q.ndim > 2:
        owner = torch.arange(p.q.shape[-3]) // (p.q.shape[-3] // p.k.shape[-3])
        key, value = k.index_select(-3, owner), v.index_select(-3, owner)
    seen = torch.tensor(np.array(p.seen))
    scores = (q @ key.transpose(-1, -2) * p.factor).masked_fill(~seen, -torch.inf)
    blind = ~seen.any(-1, keepdim=True)
    probs = torch.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    if p.keep is not None:
        probs = probs * torch.tensor(p.keep)
    out = probs @ value
    out.backward(torch.tensor(np.array(p.dout, np.float64)))  # type: ignore[no-untyped-call]
    grads = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in (q, k, v)]
    return out.detach().numpy(), *grads


@examples(150)
@given(cases(backward=True), st.integers(0, 2**16), st.booleans())
def test_dense_equals_torch_autograd_forward_and_backward(
    case: Case, seed: int, dropped: bool
) -> None:
    p = case.problem
    wide = {name: getattr(p, name).astype(np.float64) for name in ("q", "k", "v", "dout")}
    keep = np.where(np.random.default_rng(seed).random(p.seen.shape) < 0.5, 0.0, 2.0)
    p = Problem(**wide, visible=p.visible, scale=p.scale, keep=keep if dropped else None)
    masks: dict[str, Any] = {"visible": p.visible, "scale": p.scale, "keep": p.keep}
    out, lse = dense_attention(p.q, p.k, p.v, **masks)
    gradients = dense_attention_backward(p.q, p.k, p.v, wide["dout"], **masks)
    allowed = tolerance(p)
    twice = (allowed.out, allowed.dq, allowed.dk, allowed.dv)  # both sides are float64
    for name, got, ref, bound in zip(
        ("out", "dq", "dk", "dv"), (out, *gradients), through_torch(p), twice, strict=True
    ):
        assert_within(name, got, ref, 2 * np.asarray(bound))
    assert_within("lse", lse, reference(p).lse, allowed.lse)


@pytest.mark.parametrize("heads", [None, (2, 1), (4, 2), (3, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_equal_central_differences(heads: tuple[int, int] | None, seed: int) -> None:
    """Step 1e-6 leaves an error near 1e-10 in float64; a forgotten term is thousands of times
    larger.
    """
    rng = np.random.default_rng(seed)
    q_lead, k_lead = ((), ()) if heads is None else ((heads[0],), (heads[1],))
    arrays = [rng.standard_normal(s) for s in ((*q_lead, 3, 2), (*k_lead, 4, 2), (*k_lead, 4, 3))]
    dout = rng.standard_normal((*q_lead, 3, 3))
    q, k, v = arrays
    visible = rng.random((3, 4)) < 0.7
    visible[0] = False
    keep = np.where(rng.random((*q_lead, 3, 4)) < 0.3, 0.0, 1 / 0.7)

    def loss(*inputs: Array) -> float:
        return float((dense_attention(*inputs, visible=visible, keep=keep)[0] * dout).sum())

    gradients = dense_attention_backward(q, k, v, dout, visible=visible, keep=keep)
    assert all(np.abs(g).max() > 1e-2 for g in gradients)
    for which, gradient in enumerate(gradients):
        for spot in np.ndindex(gradient.shape):
            up, down = [a.copy() for a in arrays], [a.copy() for a in arrays]
            up[which][spot] += 1e-6
            down[which][spot] -= 1e-6
            slope = (loss(*up) - loss(*down)) / 2e-6
            assert gradient[spot] == pytest.approx(slope, abs=1e-8)


def test_delta_is_the_row_sum_of_dout_times_out_even_under_dropout() -> None:
    """Shifting every key by s along q changes no probability, so Σ_j dk_j = 0 needs this delta."""
    rng = np.random.default_rng(0)
    q, k, v, dout = (rng.standard_normal((5, 3)) for _ in range(4))
    keep = np.where(rng.random((5, 5)) < 0.5, 0.0, 2.0)
    out, lse = dense_attention(q, k, v, keep=keep)
    probs = np.exp(q @ k.T * 3**-0.5 - lse[:, None])
    dscores = probs * ((dout @ v.T) * keep - (dout * out).sum(axis=-1, keepdims=True))
    dq, dk, _ = dense_attention_backward(q, k, v, dout, keep=keep)
    assert_within("dq", dq, dscores @ k * 3**-0.5, 1e-14)
    assert_within("dk", dk, dscores.T @ q * 3**-0.5, 1e-14)
    assert np.abs(dq).max() > 0.1


def test_unseen_slots_may_hold_nan_in_dense() -> None:
    v, visible = column(np.nan, 2), np.array([[False, True], [False, False]])
    q, k = column(1, np.nan), column(np.inf, 1)
    out, lse = dense_attention(q, k, v, visible=visible, scale=1.0)
    assert (out[:, 0].tolist(), lse.tolist()) == ([2.0, 0.0], [1.0, -np.inf])
    gradients = dense_attention_backward(q, k, v, column(1, np.nan), visible=visible)
    assert all(np.isfinite(g).all() for g in gradients)


def test_results_keep_the_precision_of_the_inputs_and_at_least_float32() -> None:
    for dtype, kept in ((np.float16, "float32"), (np.float32, "float32"), (np.float64, "float64")):
        x = np.ones((2, 2), dtype)
        out, lse = dense_attention(x, x, x)
        assert (out.dtype.name, lse.dtype.name) == (np.dtype(dtype).name, kept)
        assert {g.dtype.name for g in dense_attention_backward(x, x, x, x)} == {kept}
        wide = np.ones((2, 2))
        assert {g.dtype.name for g in dense_attention_backward(x, x, x, wide)} == {kept}
