"""A whole run at its limits: huge windows and ids, tiles, swapped pieces, narrow results."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cpcore.simulation
from cpcore import Dropout, Visibility, contiguous, schedule, simulate, striped, zigzag
from cpcore.loss import loss_sum
from cpcore.work import find_runs, judge
from tests.support.errors import refused

Array = NDArray[Any]
MOST = 2**63 - 1
ONES = np.ones((4, 1))
TWO = zigzag(4, 2)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    "limits",
    [
        {"window": MOST},
        {"documents": np.array([0, 2**61] * 20)},
        {"documents": np.array([MOST // 40] * 40)},
        {"documents": np.array([MOST, 3] * 20), "window": MOST},
    ],
)
def test_the_largest_windows_and_ids_are_counted_as_the_mask_counts_them(
    limits: dict[str, Any], causal: bool
) -> None:
    rule, layout = Visibility(causal=causal, **limits), striped(40, 2)
    for q_pos in layout.owned:
        for k_pos in layout.owned:
            block = rule.block(q_pos, k_pos)
            verdict, pairs = judge(rule, find_runs(rule, q_pos), find_runs(rule, k_pos))
            assert pairs == block.sum()
            assert verdict == ("full" if block.all() else "partial" if block.any() else "empty")


def test_more_than_two_tiles_in_a_run_are_all_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal scores, causal: row i is the mean of 0 … i; dv_j the sum of 1 / (i + 1), i ≥ j."""
    monkeypatch.setattr(cpcore.simulation, "TILE", 3)
    size = 11
    zeros, values = np.zeros((size, 1)), np.arange(size, dtype=float)[:, None]
    ones = np.ones((size, 1))
    run = simulate(zeros, zeros, values, contiguous(size, 1), Visibility(), dout=ones)
    assert np.allclose(run.output[:, 0], np.arange(size) / 2)
    shares = 1 / np.arange(1, size + 1)
    assert run.dv is not None
    assert np.allclose(run.dv[:, 0], np.cumsum(shares[::-1])[::-1])


@pytest.mark.parametrize(
    "change", [{"key_start": 1, "key_stop": 2}, {"key_start": -1}, {"key_stop": 3}]
)
@pytest.mark.parametrize("phase", ["forward", "replay"])
def test_an_event_that_names_another_piece_of_its_owner_is_refused(
    change: dict[str, int], phase: str
) -> None:
    layout = contiguous(6, 3)
    x = np.ones((6, 1))
    events = list(schedule(layout, None, max_block=1))
    at = next(i for i, e in enumerate(events) if e.phase == phase and e.step and e.key_start == 0)
    events[at] = events[at]._replace(**change)
    with pytest.raises(ValueError, match=r"expected .+, received "):
        simulate(x, x, x, layout, None, dout=x, max_block=1, events=events)


def test_results_that_their_dtype_cannot_hold_are_refused() -> None:
    half = np.float16
    q, k = ONES.astype(half), np.array([[0], [1], [0], [1]], half)
    v = np.array([[60000], [-60000]] * 2, half)
    with refused("query", "results that fit float16", "an overflow"):
        simulate(q, k, v, TWO, None, dout=np.full((4, 1), 60000, half))
    with refused("query", "results that fit float16", "an overflow"):
        simulate(q, k, v, TWO, None, dropout=Dropout(0.9, 3))
    narrow = [x.astype(np.float32) for x in (ONES, ONES, ONES)]
    with refused("dout", "results that fit float32", "an overflow"):
        simulate(*narrow, TWO, None, dout=1e300 * ONES)


@pytest.mark.parametrize(
    ("change", "name", "wanted", "received"),
    [
        ({"layout": None}, "layout", "a Layout", "NoneType"),
        ({"visibility": 5}, "visibility", "a Visibility or None", "int"),
        ({"dropout": 0.1}, "dropout", "a Dropout or None", "float"),
        (
            {"protocol": 3},
            "protocol",
            "one of ring, ring_full_return, direct, all_gather",
            "3",
        ),
    ],
)
def test_an_argument_of_another_kind_is_refused_before_any_work(
    change: dict[str, Any], name: str, wanted: str, received: str
) -> None:
    good: dict[str, Any] = {"layout": TWO, "visibility": None}
    with refused(name, wanted, received):
        simulate(ONES, ONES, ONES, **{**good, **change})


def test_a_small_loss_beside_large_logits_keeps_its_digits() -> None:
    """ln(1 + e⁻¹⁰) = 4.54e-5, in float32 beside a logit of 10,000."""
    logits = np.array([[10000, 9990]], np.float32)
    assert loss_sum(logits, [0]).sum == pytest.approx(np.log1p(np.exp(-10.0)), rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("value", "dout"),
    [(0.0, 0.9), (0.9, 0.9)],
    ids=["five upstream gradients near the largest number", "their products with the values"],
)
def test_gradients_that_overflow_are_refused_not_returned_as_infinity_or_nan(
    dtype: Any, value: float, dout: float
) -> None:
    """dv of the first key is dout · (1 + 1/2 + … + 1/5) where all scores are equal."""
    most = np.finfo(dtype).max
    zeros, ones = np.zeros((5, 1), dtype), np.ones((5, 1), dtype)
    values = np.array([[1], [-1], [1], [-1], [1]], dtype) * dtype(value) * most
    with refused("dout", f"gradients that fit {np.dtype(dtype)}", "an overflow"):
        simulate(zeros, zeros, values, zigzag(5, 2), Visibility(), dout=ones * dtype(dout) * most)


@pytest.mark.parametrize("phase", ["forward", "replay"])
@pytest.mark.parametrize("verdict", ["full", "partial", "empty"])
def test_the_rule_masks_a_block_whatever_its_verdict_says_and_only_empty_skips_it(
    phase: str, verdict: Any
) -> None:
    """A verdict saves work. One that says too much must not show a row its future."""
    x, layout = np.arange(4.0)[:, None], contiguous(4, 2)
    events = list(schedule(layout, Visibility()))
    right = simulate(x, x, x, layout, Visibility(), dout=ONES, events=events)
    lies = [e._replace(verdict=verdict) if (e.phase, e.step) == (phase, 0) else e for e in events]
    told = simulate(x, x, x, layout, Visibility(), dout=ONES, events=lies)
    names = ("output", "dq", "dk", "dv") if phase == "forward" else ("dq", "dk", "dv")
    same = [np.array_equal(getattr(told, name), getattr(right, name)) for name in names]
    assert any(same) is all(same) is (verdict != "empty")
