"""Field bugs of the backward pass and of 16-bit sums. C-numbers as in the list."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Visibility, contiguous, dense_attention_backward, from_lengths, simulate
from cpcore.training_pitfalls import lse_in_16_bits, sum_in_16_bits
from tests.support.runs import setting
from tests.support.tolerance import reference

Array = NDArray[Any]
FULL = Visibility(causal=False)


@pytest.mark.parametrize(
    ("fault", "dq", "dk", "dv"),
    [
        (None, 0.19661, [-0.19661, 0.19661], [0.26894, 0.73106]),
        ("own_output", 0, [0, 0], [0.26894, 0.73106]),  # C22a
        ("own_output_and_lse", 0, [0, 0], [1, 1]),  # C22b
        ("weighted_dout", 0, [0, 0], [0.26894, 0.73106]),  # C22c
        ("own_lse", 0.26894, [-0.73106, 0.26894], [1, 1]),  # C22d
    ],
)
def test_C22_a_replay_with_a_blocks_own_statistics_has_these_gradients(
    fault: str | None, dq: float, dk: list[float], dv: list[float]
) -> None:
    """One row counts: the second position's dout is 0. Half a unit of the fifth digit."""
    ones, column = np.ones((2, 1)), np.array([[0.0], [1.0]])
    run = simulate(
        ones, column, column, from_lengths([1, 1]), FULL,
        dout=np.array([[1.0], [0.0]]), scale=1.0, fault=fault,
    )  # fmt: skip
    assert run.dq is not None
    assert run.dk is not None
    assert run.dv is not None
    got = [run.dq[0, 0], *run.dk[:, 0], *run.dv[:, 0]]
    np.testing.assert_allclose(got, [dq, *dk, *dv], rtol=0, atol=0.5e-5)
    assert run.output[0, 0] == pytest.approx(0.73106, abs=0.5e-5)


@pytest.mark.parametrize("rank", range(3))
def test_C24_one_rows_dk_lands_on_the_global_index_of_the_keys_owner(rank: int) -> None:
    """Only row 2·rank has a gradient, and it sees positions 4 and 5 only, both of rank 2."""
    relation = np.zeros((6, 6), bool)
    relation[:, 4:] = True
    rng = np.random.default_rng(rank)
    q, k, v = rng.standard_normal((3, 6, 2))
    dout = np.zeros((6, 2))
    dout[2 * rank, 0] = 1
    rule = Visibility(causal=False, relation=relation)
    for protocol in ("ring", "ring_full_return", "direct", "all_gather"):
        run = simulate(q, k, v, contiguous(6, 3), rule, dout=dout, protocol=protocol)
        assert run.dk is not None
        landed = np.abs(run.dk).max(axis=-1) > 1e-6
        assert landed.tolist() == [False] * 4 + [True] * 2
        short = simulate(
            q, k, v, contiguous(6, 3), rule, dout=dout, protocol=protocol,
            fault="return_one_hop_short",
        )  # fmt: skip
        assert short.dk is not None
        _, wanted, _ = dense_attention_backward(q, k, v, dout, visible=relation)
        stays = {"ring": rank != 2, "ring_full_return": True}.get(protocol, rank == 1)
        assert np.allclose(short.dk, wanted, rtol=0, atol=1e-12) != stays


def test_C25_a_16_bit_running_sum_of_4096_ones_stops_at_2048() -> None:
    ones = np.ones(4096)
    assert sum_in_16_bits(ones) == 2048
    assert sum_in_16_bits(ones[:2048]) == 2048
    assert sum_in_16_bits(np.array([[[2048.0, 1.0]], [[1.0, 1.0]]])).tolist() == [[2048, 2]]
    assert sum_in_16_bits(np.array([1e-8] * 3)).item() == 0, "what is added is rounded too"
    assert sum_in_16_bits(ones).dtype == np.float16
    total = np.float32(0)
    for one in ones.astype(np.float32):
        total += one
    assert total == 4096


def error_of(fault: str | None, cp_size: int) -> float:
    """Root mean square error of the output in float32, S = 128, one merge per rank."""
    case = setting(contiguous(128, cp_size), heads=(2, 1), causal=False)
    p = case.problem
    q, k, v = (x.astype(np.float32) for x in (p.q, p.k, p.v))
    run = simulate(q, k, v, case.layout, None, fault=fault)
    exact = reference(type(p)(q, k, v, p.visible)).out
    return float(np.sqrt(np.mean((run.output - exact) ** 2)))


def test_C25_the_error_on_16_ranks_is_at_most_twice_that_on_2_and_16_bits_drift() -> None:
    few, many = error_of(None, 2), error_of(None, 16)
    assert 0 < few < 1e-6
    assert many <= 2 * few
    few, many = (error_of("sixteen_bit_accumulator", size) for size in (2, 16))
    assert few > 1e-5
    assert many > 2 * few


def test_C26_an_lse_in_16_bits_is_off_by_a_fifth() -> None:
    lse = np.array([1000.3])
    stored = lse_in_16_bits(lse)
    assert stored.item() == 1000.5
    assert np.exp(stored - lse).item() == pytest.approx(1.22, abs=0.005)  # a merge weight
    assert np.exp(lse - stored).item() == pytest.approx(0.82, abs=0.005)  # a probability
    assert lse_in_16_bits(np.array([0.5], np.float32)).item() == 0.5
    assert lse_in_16_bits(np.array([0.5], np.float32)).dtype == np.float32


def test_C26_the_right_lse_is_kept_in_the_accumulate_dtype() -> None:
    q, k = np.full((1, 1), 1000.3, np.float16), np.ones((1, 1), np.float16)
    run = simulate(q, k, k, contiguous(1, 1), None, scale=1.0003)
    assert run.lse.dtype == np.float32
    assert run.lse.item() == pytest.approx(1000.5 * 1.0003, rel=1e-6)
