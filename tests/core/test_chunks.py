"""One chunk's summary, the neutral state, the merge and the one division, by hand."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import ChunkStats, attention_chunk_stats, empty_stats, finalize, merge_chunk_stats

Array = NDArray[Any]
LN3 = float(np.log(3))


def column(*numbers: float) -> Array:
    return np.array(numbers, np.float64)[:, None]


def state(output: list[list[float]], total: list[float], top: list[float]) -> ChunkStats:
    return ChunkStats(np.array(output), np.array(total), np.array(top))


def numbers(stats: ChunkStats) -> tuple[Any, Any, Any]:
    return stats.output.tolist(), stats.sum.tolist(), stats.max.tolist()


def test_a_summary_is_relative_to_the_rows_own_maximum() -> None:
    """Scores 1 and 3 give max 3, sum 1 + e⁻², and 10 + 4·e⁻² un-normalized."""
    stats = attention_chunk_stats(column(1), column(1, 3), column(4, 10), scale=1.0)
    assert stats.max.tolist() == [3.0]
    assert stats.sum == pytest.approx(1 + np.exp(-2))
    assert stats.output[0] == pytest.approx(10 + 4 * np.exp(-2))


def test_one_visible_key_is_its_own_summary() -> None:
    visible = np.array([[False, True, False]])
    stats = attention_chunk_stats(
        column(2), column(9, 3, 9), column(1, 5, 1), visible=visible, scale=0.5
    )
    assert numbers(stats) == ([[5.0]], [1.0], [3.0])


def test_the_worked_two_chunk_sum() -> None:
    """Scores 0 | ln 3 with values 0 | 4: weights 1/4 and 3/4, so 3 and lse ln 4."""
    left = attention_chunk_stats(column(1), column(0), column(0), scale=1.0)
    right = attention_chunk_stats(column(1), column(LN3), column(4), scale=1.0)
    merged = merge_chunk_stats(left, right)
    assert merged.max.tolist() == [LN3]
    assert merged.sum == pytest.approx(4 / 3)
    assert merged.output[0] == pytest.approx(4.0)
    out, lse = finalize(merged)
    assert out.item() == pytest.approx(3.0)
    assert lse.item() == pytest.approx(np.log(4))


def test_both_sides_are_rescaled_to_the_larger_maximum() -> None:
    small, large = state([[6.0]], [3.0], [0.0]), state([[5.0]], [2.0], [float(np.log(2))])
    for merged in (merge_chunk_stats(small, large), merge_chunk_stats(large, small)):
        assert merged.sum == pytest.approx(3.0 / 2 + 2.0)
        assert merged.output[0] == pytest.approx(6.0 / 2 + 5.0)
        assert merged.max.tolist() == [float(np.log(2))]


def test_the_default_scale_is_one_over_the_root_of_the_width() -> None:
    stats = attention_chunk_stats(np.ones((1, 4)), np.full((1, 4), 3.0), column(1))
    assert stats.max.tolist() == [6.0]


def test_a_scale_multiplies_scores_and_may_be_zero_or_negative() -> None:
    q, k, v = column(1), column(2, 4), column(1, 3)
    assert attention_chunk_stats(q, k, v, scale=-1.0).max.tolist() == [-2.0]
    assert finalize(attention_chunk_stats(q, k, v, scale=0.0))[0].item() == 2.0


def test_a_chunk_without_keys_is_the_neutral_state() -> None:
    q = np.ones((2, 3, 4))
    stats = attention_chunk_stats(q, np.ones((1, 0, 4)), np.ones((1, 0, 5)))
    neutral = empty_stats((2, 3), 5, np.float64)
    assert numbers(stats) == numbers(neutral)
    assert [x.shape for x in neutral] == [(2, 3, 5), (2, 3), (2, 3)]
    assert np.isneginf(neutral.max).all()
    assert not neutral.sum.any()
    assert not neutral.output.any()


def test_no_queries_and_no_value_columns_are_allowed() -> None:
    stats = attention_chunk_stats(np.ones((0, 2)), np.ones((3, 2)), np.ones((3, 0)))
    assert [x.shape for x in stats] == [(0, 0), (0,), (0,)]
    out, lse = finalize(merge_chunk_stats(stats, empty_stats((0,), 0, np.float64)))
    assert (out.shape, lse.shape) == ((0, 0), (0,))
    assert [x.shape for x in finalize(empty_stats((), 3, np.float64))] == [(3,), ()]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_inputs_are_summarized_in_float32(dtype: Any) -> None:
    x = np.ones((2, 2), dtype)
    assert {part.dtype for part in attention_chunk_stats(x, x, x)} == {np.dtype(np.float32)}
    assert {part.dtype for part in empty_stats((2,), 2, dtype)} == {np.dtype(np.float32)}


def test_one_wide_input_widens_the_state() -> None:
    narrow, wide = np.ones((2, 2), np.float16), np.ones((2, 2))
    for arrays in ((wide, narrow, narrow), (narrow, wide, narrow), (narrow, narrow, wide)):
        assert {part.dtype for part in attention_chunk_stats(*arrays)} == {np.dtype(np.float64)}


def test_the_result_dtype_is_chosen_in_finalize_and_the_lse_stays_wide() -> None:
    stats = state([[2.0]], [2.0], [1000.25])
    out, lse = finalize(stats, np.float16)
    assert (out.dtype.name, lse.dtype.name) == ("float16", "float64")
    assert lse.item() == 1000.25 + np.log(2)
    assert finalize(stats)[0].dtype == np.float64
    narrow = ChunkStats(*(part.astype(np.float32) for part in stats))
    assert {part.dtype.name for part in finalize(narrow)} == {"float32"}


def test_the_division_happens_once_at_the_end() -> None:
    """A row summed over 3 keys holds 6, not 2, until it is finalised."""
    stats = attention_chunk_stats(column(0), column(1, 1, 1), column(1, 2, 3))
    assert stats.output.tolist() == [[6.0]]
    assert finalize(stats)[0].tolist() == [[2.0]]


def test_grouped_heads_match_repeated_key_heads_exactly() -> None:
    rng = np.random.default_rng(1)
    q = rng.standard_normal((2, 6, 3, 4))
    k, v = rng.standard_normal((2, 2, 5, 4)), rng.standard_normal((2, 2, 5, 3))
    visible = rng.random((2, 6, 3, 5)) < 0.5
    grouped = attention_chunk_stats(q, k, v, visible=visible)
    for head in range(6):
        alone = attention_chunk_stats(
            q[:, head], k[:, head // 3], v[:, head // 3], visible=visible[:, head]
        )
        for whole, part in zip(grouped, alone, strict=True):
            np.testing.assert_allclose(whole[:, head], part, rtol=1e-13, atol=0)


def test_visible_broadcasts_over_heads_rows_and_keys() -> None:
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((2, 3, 4)) for _ in range(3))
    for visible in (True, np.array([True, False, True]), np.array([[True], [False], [True]])):
        wide = np.broadcast_to(visible, (2, 3, 3))
        got = attention_chunk_stats(q, k, v, visible=visible)
        assert numbers(got) == numbers(attention_chunk_stats(q, k, v, visible=wide))


def test_slots_that_no_row_sees_may_hold_anything() -> None:
    q, v = column(1, np.nan), column(5, np.inf)
    k = column(2, np.nan)
    visible = np.array([[True, False], [False, False]])
    stats = attention_chunk_stats(q, k, v, visible=visible, scale=1.0)
    assert numbers(stats) == ([[5.0], [0.0]], [1.0, 0.0], [2.0, -np.inf])


def test_a_slot_that_one_head_of_a_group_sees_counts_as_used() -> None:
    q, k = np.ones((2, 1, 1)), np.ones((1, 2, 1))
    v = np.array([[[3.0], [np.nan]]])
    hidden = np.array([[[True, False]], [[True, False]]])
    assert attention_chunk_stats(q, k, v, visible=hidden).output.tolist() == [[[3.0]], [[3.0]]]
    hidden[1, 0, 1] = True
    with pytest.raises(ValueError, match="value_chunk: expected finite numbers in every used slot"):
        attention_chunk_stats(q, k, v, visible=hidden)


@pytest.mark.parametrize("garbage", [99.0, np.nan, np.inf])
def test_a_side_whose_sum_is_zero_adds_nothing_whatever_its_output_holds(garbage: float) -> None:
    real, junk = state([[3.0]], [1.0], [0.5]), state([[garbage]], [0.0], [-np.inf])
    for merged in (merge_chunk_stats(real, junk), merge_chunk_stats(junk, real)):
        assert numbers(merged) == ([[3.0]], [1.0], [0.5])
    assert numbers(merge_chunk_stats(junk, junk)) == ([[0.0]], [0.0], [-np.inf])
    out, lse = finalize(junk)
    assert (out.item(), lse.item()) == (0.0, -np.inf)


@pytest.mark.parametrize("top", [1e9, np.nan, np.inf])
def test_a_side_whose_sum_is_zero_does_not_impose_its_maximum(top: float) -> None:
    real, junk = state([[3.0]], [1.0], [0.5]), state([[0.0]], [0.0], [top])
    for merged in (merge_chunk_stats(real, junk), merge_chunk_stats(junk, real)):
        assert numbers(merged) == ([[3.0]], [1.0], [0.5])


def test_a_maximum_of_zero_is_not_mistaken_for_an_empty_row() -> None:
    left, right = state([[1.0]], [1.0], [0.0]), state([[3.0]], [1.0], [0.0])
    assert numbers(merge_chunk_stats(left, right)) == ([[4.0]], [2.0], [0.0])


def test_under_and_overflow_stay_silent_even_when_numpy_would_raise() -> None:
    """Weights and casts may underflow: that is rounding, not a fault."""
    with np.errstate(all="raise"):
        stats = attention_chunk_stats(column(1), column(-800, 0), column(1e-300, 1), scale=1.0)
        tiny = attention_chunk_stats(column(1), column(-900), column(2e-10), scale=1.0)
        out, _ = finalize(merge_chunk_stats(stats, tiny), np.float16)
        large, _ = finalize(state([[1e6]], [1.0], [0.0]), np.float16)
        small, _ = finalize(tiny, np.float16)
        flat = attention_chunk_stats(column(1e-200), column(1e-200), column(1))
    assert (out.item(), small.item(), flat.max.item()) == (1.0, 0.0, 0.0)
    assert large.item() == np.inf  # float16 ends at 65504: only a narrower result dtype can do this
