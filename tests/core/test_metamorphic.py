"""What must not change, and what must change by a known amount."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    Visibility,
    attention_chunk_stats,
    contiguous,
    dense_attention,
    dense_attention_backward,
    finalize,
    from_lengths,
    from_owned,
    per_document,
    ring_attention,
    striped,
    zigzag,
)
from tests.support.ranks import attention_by_ranks
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, assert_within, reference, tolerance

Array = NDArray[Any]
S = 13
PACKED = np.array([0] * 5 + [1] * 1 + [2] * 7)
RULES: dict[str, dict[str, Any] | None] = {
    "full": None,
    "causal": {},
    "window": {"window": 4},
    "two-sided window": {"causal": False, "window": 3},
    "documents": {"documents": PACKED},
    "documents in a window": {"documents": PACKED, "window": 3},
    "padding": {"documents": np.where(PACKED == 1, -1, PACKED)},
    "relation": {"causal": False, "relation": np.random.default_rng(5).random((S, S)) < 0.4},
}
ORDER = np.random.default_rng(4).permutation(S)
LAYOUTS: dict[str, Callable[[int], Layout]] = {
    "contiguous": lambda r: contiguous(S, r),
    "striped": lambda r: striped(S, r),
    "stripes of two": lambda r: striped(S, r, stripe=2),
    "zigzag": lambda r: zigzag(S, r),
    "per document": lambda r: per_document([0, 5, 6, 13], r),
    "uneven": lambda r: from_lengths([*[0, 7, 1, 5, 0][:r], S - sum([0, 7, 1, 5, 0][:r])]),
    "shuffled": lambda r: from_owned(np.array_split(ORDER, r)),
}


def arrays(seed: int, q_heads: int = 4, kv_heads: int = 2) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    shapes = (q_heads, S, 3), (kv_heads, S, 3), (kv_heads, S, 2)
    q, k, v = (rng.standard_normal(shape) for shape in shapes)
    return q, k, v


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", LAYOUTS, ids=str)
def test_no_layout_and_no_rank_count_changes_the_result(name: str, rule: str) -> None:
    settings = RULES[rule]
    q, k, v = arrays(1)
    every = list(range(S))
    visible = None if settings is None else double_loop(every, every, settings)
    problem = Problem(q, k, v, visible=visible)
    wanted = reference(problem).out
    assert np.abs(wanted).max() > 0.5
    visibility = None if settings is None else Visibility(**settings)
    for cp_size in range(1, 6):
        out = attention_by_ranks(LAYOUTS[name](cp_size), q, k, v, visibility)
        assert_within(f"R = {cp_size}", out, wanted, tolerance(problem, cp_size + 1).out)


def test_every_way_to_cut_six_keys_gives_the_same_result() -> None:
    q, k, v = (x[:, :6] for x in arrays(2))
    problem = Problem(q, k, v)
    wanted, allowed = reference(problem).out, tolerance(problem, 6).out
    for cuts in itertools.chain.from_iterable(
        itertools.combinations(range(1, 6), n) for n in range(6)
    ):
        out = ring_attention(q, np.split(k, cuts, axis=-2), np.split(v, cuts, axis=-2))
        assert_within(str(cuts), out, wanted, allowed)


def test_every_order_of_five_chunks_gives_the_same_result() -> None:
    q, k, v = arrays(3)
    parts = np.array_split(np.arange(S), 5)
    every = list(range(S))
    problem = Problem(q, k, v, visible=double_loop(every, every, {}))
    wanted, allowed = reference(problem).out, tolerance(problem, 5).out
    for order in itertools.permutations(parts):
        keys, values = [k[:, pos] for pos in order], [v[:, pos] for pos in order]
        out = ring_attention(q, keys, values, visibility=Visibility(), key_positions=list(order))
        assert_within("out", out, wanted, allowed)


def test_more_query_rows_than_one_tile_are_exact_and_causal() -> None:
    """1100 rows are three tiles of at most 512: a tile that loses its offset shows."""
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((1100, 2)) for _ in range(3))
    visible = np.tri(1100, dtype=bool)
    problem = Problem(q, k, v, visible=visible)
    out = ring_attention(q, np.split(k, 4), np.split(v, 4), visibility=Visibility())
    assert_within("out", out, dense_attention(q, k, v, visible=visible)[0],
                  2 * tolerance(problem, 4).out)  # fmt: skip


@pytest.mark.parametrize("wide", range(5))
def test_one_float64_array_among_float16_ones_widens_the_whole_sum(wide: int) -> None:
    """Whichever it is: the error stays that of float64 arithmetic."""
    q, k, v = (x.astype(np.float16) for x in arrays(13))
    parts = [q, k[:, :6], k[:, 6:], v[:, :6], v[:, 6:]]
    parts[wide] = parts[wide].astype(np.float64)
    query, keys, values = parts[0], parts[1:3], parts[3:]
    out = ring_attention(query, keys, values)
    wanted = dense_attention(*(x.astype(np.float64) for x in (q, k, v)))[0]
    allowed = 1e-14 if wide == 0 else np.abs(wanted) * 2**-11 * (1 + 1e-9) + 2**-25
    assert_within("out", out, wanted, allowed)  # 2**-11: half a unit of float16, one rounding


@pytest.mark.parametrize("shift", [-512.0, 64.0, 1024.0])
def test_a_constant_added_to_all_logits_moves_only_the_lse(shift: float) -> None:
    """Scores are integers, and so is the shift: every sum is exact, and so is the comparison."""
    rng = np.random.default_rng(7)
    q = np.concatenate([rng.integers(-3, 4, (5, 2)), np.ones((5, 1))], axis=1).astype(float)
    k = np.concatenate([rng.integers(-3, 4, (9, 2)), np.zeros((9, 1))], axis=1).astype(float)
    v, moved = rng.standard_normal((9, 2)), k.copy()
    moved[:, 2] = shift
    before, after = (attention_chunk_stats(q, keys, v, scale=1.0) for keys in (k, moved))
    assert (finalize(before)[0] == finalize(after)[0]).all()
    assert (before.sum == after.sum).all()
    assert (before.max + shift == after.max).all()
    out = [ring_attention(q, np.split(x, 3), np.split(v, 3), scale=1.0) for x in (k, moved)]
    assert (out[0] == out[1]).all()
    assert np.abs(out[0]).max() > 0.5


def test_every_key_given_twice_leaves_the_output_and_adds_ln_2_to_the_lse() -> None:
    q, k, v = arrays(8)
    twice_k, twice_v = np.concatenate([k, k], axis=-2), np.concatenate([v, v], axis=-2)
    out, lse = finalize(attention_chunk_stats(q, k, v))
    out_twice, lse_twice = finalize(attention_chunk_stats(q, twice_k, twice_v))
    problem = Problem(q, twice_k, twice_v)
    allowed = tolerance(problem, 2)
    assert_within("out", out_twice, out, allowed.out)
    assert_within("lse", lse_twice, lse + np.log(2), allowed.lse)
    assert_within("ring", ring_attention(q, [k, k], [v, v]), out, allowed.out)


def test_every_key_given_twice_splits_the_gradient_between_its_copies() -> None:
    q, k, v = arrays(9)
    dout = np.random.default_rng(9).standard_normal((4, S, 2))
    twice = dense_attention_backward(q, np.tile(k, (1, 2, 1)), np.tile(v, (1, 2, 1)), dout)
    once = dense_attention_backward(q, k, v, dout)
    assert_within("dq", twice[0], once[0], 1e-13)
    for got, whole in zip(twice[1:], once[1:], strict=True):
        assert_within("first copy", got[:, :S], whole / 2, 1e-13)
        assert_within("second copy", got[:, S:], whole / 2, 1e-13)
        assert np.abs(whole).max() > 0.1


@pytest.mark.parametrize("layout", [zigzag(S, 3), striped(S, 4)])
def test_changing_one_document_changes_no_bit_of_another(layout: Layout) -> None:
    rule = Visibility(documents=PACKED)
    q, k, v = arrays(10)
    before = attention_by_ranks(layout, q, k, v, rule)
    other = PACKED == 2
    k[:, other] += 3
    v[:, other] *= -7
    after = attention_by_ranks(layout, q, k, v, rule)
    assert (before[:, ~other] == after[:, ~other]).all()
    assert np.abs(before[:, other] - after[:, other]).max() > 1


@pytest.mark.parametrize("pad", [200.0, np.nan, np.inf])
@pytest.mark.parametrize("cp_size", [1, 2, 3])
def test_whatever_padding_slots_hold_reaches_no_real_row(pad: float, cp_size: int) -> None:
    documents = np.where(PACKED == 1, -1, PACKED)
    rule, padded = Visibility(documents=documents), documents == -1
    q, k, v = arrays(11)
    clean = attention_by_ranks(zigzag(S, cp_size), q, k, v, rule)
    for x in (q, k, v):
        x[:, padded] = pad
    out = attention_by_ranks(zigzag(S, cp_size), q, k, v, rule)
    assert (out == clean).all()
    assert not out[:, padded].any()
    assert np.abs(out[:, ~padded]).max() > 0.5


def test_a_future_token_changes_no_bit_of_an_earlier_row() -> None:
    q, k, v = arrays(12)
    before = attention_by_ranks(zigzag(S, 3), q, k, v, Visibility())
    k[:, 9:], v[:, 9:] = 5, -5
    after = attention_by_ranks(zigzag(S, 3), q, k, v, Visibility())
    assert (before[:, :9] == after[:, :9]).all()
    assert (before[:, 9:] != after[:, 9:]).any(axis=-1).all()
