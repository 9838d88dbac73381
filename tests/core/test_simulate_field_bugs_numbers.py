"""Faults of real systems in what is summed where: buffers, dropout, padding, replicas, dtypes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Dropout, Visibility, contiguous, from_lengths, simulate, zigzag
from cpcore.schedule import PROTOCOLS
from tests.support.errors import refused
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, assert_within, reference, tolerance

Array = NDArray[Any]
FIELDS = ("output", "lse", "dq", "dk", "dv")


def arrays(seq_len: int, seed: int, dtype: Any = np.float64) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((2, seq_len, 3)).astype(dtype) for _ in range(4))


def causal(seq_len: int) -> Array:
    every = range(seq_len)
    return double_loop(every, every, {})


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_c37_an_accumulator_of_the_inputs_dtype_is_not_the_block_buffer(
    dtype: Any, protocol: str
) -> None:
    """No cast separates sum and block here, so an alias would add a block to itself."""
    q, k, v, dout = arrays(9, 37, dtype)
    problem = Problem(q, k, v, visible=causal(9), dout=dout)
    wanted, allowed = reference(problem), tolerance(problem, 4)
    before = [x.copy() for x in (q, k, v, dout)]
    done = simulate(q, k, v, from_lengths([4, 0, 3, 2]), Visibility(), dout=dout, protocol=protocol)
    for name, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
        assert_within(name, getattr(done, name), ref, bound)
    for x, copy in zip((q, k, v, dout), before, strict=True):
        assert np.array_equal(x, copy)


@pytest.mark.parametrize("cp_size", [1, 3])
def test_no_result_shares_memory_with_an_input_or_another_result(cp_size: int) -> None:
    q, k, v, dout = arrays(6, 38)
    done = simulate(q, k, v, contiguous(6, cp_size), Visibility(), dout=dout)
    arrays_out = [getattr(done, name) for name in FIELDS]
    for result in done.per_rank:
        arrays_out += result
    for i, a in enumerate(arrays_out):
        assert a.flags.writeable
        for b in (q, k, v, dout, *arrays_out[:i]):
            assert not np.shares_memory(a, b)


def test_c38_dropout_changes_the_output_and_leaves_sum_and_lse() -> None:
    """delta = rowsum(dout · out) still holds: rows of dS = P ∘ (keep·dP - delta) sum to 0."""
    q, k, v, dout = arrays(8, 40)
    dropout, layout = Dropout(0.5, seed=3), zigzag(8, 3)
    plain = simulate(q, k, v, layout, Visibility(), dout=dout)
    done = simulate(q, k, v, layout, Visibility(), dout=dout, dropout=dropout)
    assert np.array_equal(done.lse, plain.lse)
    assert np.abs(done.output - plain.output).max() > 0.5
    ones = np.concatenate([k, np.ones_like(k[..., :1])], axis=-1)  # dq of that column: rowsum(dS)
    wide = np.concatenate([q, np.zeros_like(q[..., :1])], axis=-1)
    options: dict[str, Any] = {"dout": dout, "dropout": dropout, "scale": 1.0}
    rows = simulate(wide, ones, v, layout, Visibility(), **options).dq[..., 3]
    assert np.abs(rows).max() < 1e-14
    wrong = simulate(q, k, v, layout, Visibility(), dropout=dropout, fault="dropped_denominator")
    assert np.abs(wrong.output - done.output).max() > 0.1


@pytest.mark.parametrize("slot", range(4), ids=["q", "k", "v", "dout"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_c39_nan_in_one_padded_slot_changes_no_bit_of_a_real_gradient(
    protocol: str, slot: int
) -> None:
    documents = np.array([0, 0, 0, -1, 1, 1, 1, 1, -1])
    rule, inputs = Visibility(documents=documents), arrays(9, 39)
    q, k, v, dout = inputs
    clean = simulate(q, k, v, zigzag(9, 3), rule, dout=dout, protocol=protocol)
    inputs[slot][:, documents == -1] = np.nan
    done = simulate(q, k, v, zigzag(9, 3), rule, dout=dout, protocol=protocol)
    for name in FIELDS:
        assert np.array_equal(getattr(done, name), getattr(clean, name))
        assert np.isfinite(getattr(done, name)[:, documents != -1]).all()


@pytest.mark.parametrize("name", ["query", "key", "value", "dout"])
def test_c39_nan_in_a_real_slot_is_an_error_before_any_work(name: str) -> None:
    inputs = dict(zip(("query", "key", "value", "dout"), arrays(4, 41), strict=True))
    inputs[name][0, 2, 1] = np.nan
    wanted = f"{name}: expected finite numbers in every used slot, received NaN or infinity"
    with pytest.raises(ValueError, match=wanted):
        simulate(**inputs, layout=contiguous(4, 2), visibility=Visibility())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_c40_gradients_are_sums_over_ranks_and_do_not_shrink_with_their_number(
    protocol: str,
) -> None:
    q, k, v, dout = arrays(8, 42)
    one = simulate(q, k, v, contiguous(8, 1), Visibility(), dout=dout)
    for ranks in range(2, 6):
        done = simulate(q, k, v, zigzag(8, ranks), Visibility(), dout=dout, protocol=protocol)
        for name in ("dq", "dk", "dv"):
            whole = getattr(one, name)
            assert_within(f"R = {ranks}: {name}", getattr(done, name), whole, 1e-13)
            assert np.abs(whole).max() > 0.5  # a mean over ranks would be half of it or less


def test_one_float64_array_widens_every_sum_and_each_gradient_keeps_its_own_dtype() -> None:
    """float16 sums would be off by 1e-3; only the one cast at the end of each remains."""
    q, k, v, dout = arrays(9, 43, np.float16)
    wide = [x.astype(np.float64) for x in (q, k, v, dout)]
    exact = simulate(*wide[:3], zigzag(9, 3), Visibility(), dout=wide[3])
    mixed = simulate(q, k, wide[2], zigzag(9, 3), Visibility(), dout=dout)
    dtypes = [getattr(mixed, name).dtype for name in FIELDS]
    assert dtypes == [np.float16, np.float64, np.float16, np.float16, np.float64]
    assert_within("lse", mixed.lse, exact.lse, 1e-14)
    assert_within("dv", mixed.dv, exact.dv, 1e-14)
    for name in ("output", "dq", "dk"):
        ref = getattr(exact, name)
        assert_within(name, getattr(mixed, name), ref, np.abs(ref) * 2**-11 * (1 + 1e-9) + 2**-25)


def test_more_rows_and_keys_than_one_tile_are_exact() -> None:
    """Shards of 600 are two tiles of at most 512 each way: a lost offset shows."""
    rng = np.random.default_rng(44)
    q, k, v, dout = (rng.standard_normal((1200, 2)) for _ in range(4))
    problem = Problem(q, k, v, visible=np.tri(1200, dtype=bool), dout=dout)
    wanted, allowed = reference(problem), tolerance(problem, 6)
    done = simulate(q, k, v, zigzag(1200, 2), Visibility(), dout=dout)
    for name, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
        assert_within(name, getattr(done, name), ref, bound)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_underflow_is_no_error_even_where_the_caller_raises_on_it(dtype: Any) -> None:
    """Scores some hundreds apart: most probabilities are 0 or subnormal, forward and replayed."""
    q, k, v, dout = (x.astype(dtype) for x in arrays(24, 45))
    q *= 12
    k *= 12
    with np.errstate(all="raise"):
        done = simulate(q, k, v, zigzag(24, 3), Visibility(), dout=dout, max_block=3)
    for name in FIELDS:
        assert np.isfinite(getattr(done, name)).all()
    assert np.abs(done.dq).max() > 1


def test_a_float16_gradient_beyond_its_range_is_refused_and_one_within_is_exact() -> None:
    """Uniform scores, causal: key 0 has weight 1 in row 0 and 1/2 in row 1, key 1 has 1/2."""
    q = k = np.zeros((2, 1), np.float16)
    v, dout = np.ones((2, 1), np.float16), np.full((2, 1), 4e4, np.float16)
    done = simulate(q, k, v, contiguous(2, 2), Visibility(), dout=dout)
    assert done.dv.tolist() == [[6e4], [2e4]]
    with refused("value", "results that fit float16", "an overflow"):  # 1.5 · 60000
        simulate(q, k, v, contiguous(2, 2), Visibility(), dout=1.5 * dout)
