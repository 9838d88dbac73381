"""Faults seen in real systems, each as its smallest probe: the right value and a wrong one."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    ChunkStats,
    Visibility,
    attention_chunk_stats,
    dense_attention,
    dense_attention_backward,
    empty_stats,
    finalize,
    merge_chunk_stats,
    ring_attention,
)
from cpcore.pitfalls import add_lse, equal_weight_mean, key_count_mean, mean_over_all_chunks
from tests.support.tolerance import assert_within

Array = NDArray[Any]
LN2, LN3 = float(np.log(2)), float(np.log(3))


def column(*numbers: float, dtype: Any = np.float64) -> Array:
    return np.array(numbers, dtype)[:, None]


def uniform(rows: int) -> Array:
    """Queries of 0, so that every visible score is 0."""
    return np.zeros((rows, 1))


def summary(lse: float, output: float, dtype: Any = np.float64) -> ChunkStats:
    """The state of a set of keys with this lse and this attention output."""
    return ChunkStats(np.array([[output]], dtype), np.ones(1, dtype), np.array([lse], dtype))


def values(x: Array) -> list[float]:
    flat: list[float] = np.asarray(x).ravel().tolist()
    return flat


def test_c1_merging_two_empty_summaries_is_empty_without_nan_or_warning() -> None:
    empty = empty_stats((3,), 2, np.float32)
    with np.errstate(all="raise"):
        merged = merge_chunk_stats(empty, empty)
        out, lse = finalize(merged)
    for got, wanted in zip(merged, empty, strict=True):
        assert got.tobytes() == wanted.tobytes()
    assert not out.any()
    assert np.isneginf(lse).all()
    with np.errstate(invalid="ignore"):
        assert np.isnan(empty.max - empty.max).all()  # what the naive rescale factor computes


@pytest.mark.parametrize("place", [0, 1, 2])
def test_c2_a_row_that_sees_nothing_in_one_chunk_is_not_poisoned(place: int) -> None:
    """Scores [-inf, -inf | 0, 0], v = [9, 9 | 2, 4] give 3 and ln 2, the blind chunk anywhere."""
    hidden, seen = np.zeros((1, 2), bool), np.ones((1, 1), bool)
    chunks = [(column(2), seen), (column(4), seen)]
    chunks.insert(place, (column(9, 9), hidden))
    acc = empty_stats((1,), 1, np.float64)
    for v, visible in chunks:
        part = attention_chunk_stats(uniform(1), np.ones_like(v), v, visible=visible)
        acc = merge_chunk_stats(acc, part)
    out, lse = finalize(acc)
    assert (values(out), values(lse)) == ([3.0], [LN2])
    documents, shown = [0, 0], [2.0, 4.0]
    documents.insert(place, 1)
    shown.insert(place, 9.0)
    rule = Visibility(causal=False, documents=np.array(documents))
    got = ring_attention(
        uniform(3), [np.ones((1, 1))] * 3, [column(x) for x in shown], visibility=rule
    )
    assert [row for row, doc in zip(values(got), documents, strict=True) if doc == 0] == [3, 3]


@pytest.mark.parametrize("garbage", [99.0, np.nan])
def test_c3_a_chunk_of_no_keys_adds_nothing_whatever_its_buffer_holds(garbage: float) -> None:
    buffer, three = np.full((4, 1), garbage), summary(LN2, 3.0)
    empty = attention_chunk_stats(uniform(1), buffer[:0], buffer[:0])
    for merged in (merge_chunk_stats(three, empty), merge_chunk_stats(empty, three)):
        out, lse = finalize(merged)
        assert (values(out), values(lse)) == ([3.0], [LN2])
    got = ring_attention(uniform(1), [np.ones((2, 1)), buffer[:0]], [column(2, 4), buffer[:0]])
    assert values(got) == [3.0]
    counted_as_a_key = merge_chunk_stats(three, summary(0.0, 99.0))
    assert finalize(counted_as_a_key)[0].item() == pytest.approx(35.0)


@pytest.mark.parametrize("gap", [100.0, 1000.0, -1000.0])
def test_c4_lse_values_far_apart_merge_without_overflow_in_float32(gap: float) -> None:
    near, far = summary(0.0, 1.0, np.float32), summary(gap, 2.0, np.float32)
    for merged in (merge_chunk_stats(near, far), merge_chunk_stats(far, near)):
        out, lse = finalize(merged)
        assert (values(out), values(lse)) == ([2.0 if gap > 0 else 1.0], [max(gap, 0.0)])
    with np.errstate(over="ignore"):
        naive = np.log(1 + np.exp(np.float32(abs(gap))))
    assert np.isinf(naive)


def test_c5_masses_add_and_lse_values_do_not() -> None:
    _, lse = finalize(merge_chunk_stats(summary(LN3, 0.0), summary(0.0, 0.0)))
    assert lse.item() == pytest.approx(np.log(4), rel=1e-15)
    assert add_lse([LN3], [0.0]).item() == pytest.approx(LN3)  # ln 3: the mass of ln 1 is lost


def test_c6_a_chunk_weighs_what_its_softmax_mass_is() -> None:
    chunks = [column(0), column(LN3)], [column(0), column(4)]
    assert ring_attention(column(1), *chunks, scale=1.0).item() == pytest.approx(3.0)
    assert equal_weight_mean(column(1), *chunks, scale=1.0).item() == pytest.approx(2.0)
    uneven = [np.ones((3, 1)), np.ones((1, 1))], [column(0, 0, 0), column(4)]
    assert ring_attention(uniform(1), *uneven).item() == 1.0
    assert equal_weight_mean(uniform(1), *uneven).item() == 2.0
    assert key_count_mean(uniform(1), *uneven).item() == 1.0  # right here, and only by accident
    assert key_count_mean(column(1), *chunks, scale=1.0).item() == pytest.approx(2.0)


def test_c7_a_hidden_key_never_beats_a_visible_one_however_low_its_score() -> None:
    q, k, v = column(1), column(-20000, 5), column(1, 100)
    visible = np.array([[True, False]])
    assert finalize(attention_chunk_stats(q, k, v, visible=visible, scale=1.0))[0].item() == 1.0
    assert dense_attention(q, k, v, visible=visible, scale=1.0)[0].item() == 1.0
    finite_mask = column(-20000, -10000)  # the hidden score replaced by a large negative number
    assert finalize(attention_chunk_stats(q, finite_mask, v, scale=1.0))[0].item() == 100.0


def test_c8_padding_and_causal_may_hide_the_same_pair() -> None:
    rule = Visibility(documents=np.array([-1, 0]))
    arrays = np.ones((2, 1), np.float32), np.ones((2, 1), np.float32), column(7, 5, dtype="f4")
    visible = rule.block([0, 1], [0, 1])
    for out, lse in (
        finalize(attention_chunk_stats(*arrays, visible=visible)),
        dense_attention(*arrays, visible=visible),
    ):
        assert values(out) == [0.0, 5.0]
        assert lse[0] == -np.inf
        assert np.isfinite(lse[1])
    assert values(ring_attention(arrays[0], [arrays[1]], [arrays[2]], visibility=rule)) == [0, 5]
    with np.errstate(over="ignore", invalid="ignore"):
        twice = np.float32(np.finfo(np.float32).min) * 2  # two "very negative" masks added
        assert np.isnan(np.exp(twice - twice))


def test_c9_a_blind_row_without_loss_leaves_all_gradients_finite() -> None:
    rng = np.random.default_rng(9)
    q, k, v, dout = (rng.standard_normal((3, 2)) for _ in range(4))
    visible, dout[1] = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]], bool), 0
    dq, dk, dv = dense_attention_backward(q, k, v, dout, visible=visible)
    assert all(np.isfinite(g).all() and np.abs(g).max() > 0.1 for g in (dq, dk, dv))
    assert not dq[1].any()
    kept = [0, 2]
    alone = dense_attention_backward(q[kept], k, v, dout[kept], visible=visible[kept])
    for name, got, wanted in zip(("dq", "dk", "dv"), (dq[kept], dk, dv), alone, strict=True):
        assert_within(name, got, wanted, 1e-15)


def test_c10_a_blind_row_reports_output_0_and_lse_minus_infinity() -> None:
    hidden = np.zeros((1, 2), bool)
    arrays = column(1), column(1, 2), column(3, 4)
    for out, lse in (
        finalize(attention_chunk_stats(*arrays, visible=hidden)),
        finalize(empty_stats((1,), 1, np.float64)),
        dense_attention(*arrays, visible=hidden),
    ):
        assert (values(out), values(lse)) == ([0.0], [-np.inf])


def test_c35_a_comparison_of_zeros_would_accept_a_wrong_mean() -> None:
    """With v = 0 both sides are 0; the probes of this file therefore have references far from 0."""
    keys = [column(0), column(LN3)]
    zeros, real = [column(0), column(0)], [column(1), column(5)]
    for wrong in (equal_weight_mean, mean_over_all_chunks):
        right = ring_attention(column(1), keys, zeros, scale=1.0)
        assert (wrong(column(1), keys, zeros, scale=1.0) == right).all()
        reference, _ = dense_attention(column(1), column(0, LN3), column(1, 5), scale=1.0)
        assert abs(reference.item()) > 1
        assert abs(wrong(column(1), keys, real, scale=1.0) - reference).item() > 0.5
