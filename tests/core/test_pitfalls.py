"""Each wrong variant is wrong on a stated probe, and right exactly where it says it hides."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from cpcore import (
    Visibility,
    attention_chunk_stats,
    dense_attention,
    finalize,
    merge_chunk_stats,
    ring_attention,
)
from cpcore.pitfalls import (
    add_lse,
    equal_weight_mean,
    key_count_mean,
    mean_over_all_chunks,
    merge_rescaling_sum_only,
    merge_with_flipped_sign,
    merge_without_rescale,
    ring_attention_with,
)
from tests.support.cases import Case, cases, examples
from tests.support.tolerance import assert_within

Array = NDArray[Any]
MEANS = [equal_weight_mean, mean_over_all_chunks, key_count_mean]
MERGES = [merge_without_rescale, merge_rescaling_sum_only, merge_with_flipped_sign]


def column(*numbers: float) -> Array:
    return np.array(numbers, np.float64)[:, None]


def one_row(scores: list[list[float]], values: list[list[float]]) -> tuple[Any, Any, Any]:
    """One query row whose scores, at scale 1, are these, chunk by chunk."""
    return column(1), [column(*s) for s in scores], [column(*v) for v in values]


def arrays(seed: int, splits: list[int]) -> tuple[Array, list[Array], list[Array]]:
    rng = np.random.default_rng(seed)
    q = 2 * rng.standard_normal((sum(splits), 3))
    k, v = (rng.standard_normal((sum(splits), 3)) for _ in range(2))
    cuts = np.cumsum(splits)[:-1]
    return q, np.split(k, cuts), np.split(v, cuts)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("rule", [None, Visibility()])
def test_every_mean_is_wrong_on_ordinary_inputs(mean: Any, rule: Visibility | None) -> None:
    inputs = arrays(0, [3, 4, 2])
    gap = np.abs(mean(*inputs, visibility=rule) - ring_attention(*inputs, visibility=rule))
    assert gap.max() > 0.1


@pytest.mark.parametrize("mean", MEANS)
def test_every_mean_is_right_for_a_single_chunk_and_for_equal_masses(mean: Any) -> None:
    single = arrays(1, [5])
    assert_within("one", mean(*single), ring_attention(*single), 1e-14)
    equal = one_row([[1, -2], [-2, 1]], [[3, 5], [7, 11]])
    right = ring_attention(*equal, scale=1.0)
    assert_within("equal masses", mean(*equal, scale=1.0), right, 1e-14)


def test_values_that_happen_to_cancel_hide_the_equal_weight_mean() -> None:
    hidden = one_row([[0], [np.log(3)]], [[6], [6]])
    assert equal_weight_mean(*hidden, scale=1.0).item() == pytest.approx(6)
    shown = one_row([[0], [np.log(3)]], [[6], [2]])
    assert equal_weight_mean(*shown, scale=1.0).item() == pytest.approx(4)
    assert ring_attention(*shown, scale=1.0).item() == pytest.approx(3)


@examples(100)
@given(cases())
def test_the_equal_weight_mean_is_off_by_exactly_its_formula(case: Case) -> None:
    """mean - right = Σ_b (1/B - Z_b/Z) · O_b over the B chunks that see something, row by row."""
    p = case.problem
    q, k, v = (x.astype(np.float64) for x in (p.q, p.k, p.v))
    rule = None if case.rule is None else Visibility(**case.rule)
    where: dict[str, Any] = {
        "visibility": rule,
        "query_positions": np.array(case.q_pos, np.int64),
        "key_positions": case.key_positions(),
        "scale": p.scale,
    }
    wrong = equal_weight_mean(q, case.split(k), case.split(v), **where)
    right, lse = dense_attention(q, k, v, visible=p.visible, scale=p.scale)
    parts = [
        dense_attention(q, key, value, visible=seen, scale=p.scale)
        for key, value, seen in zip(
            case.split(k), case.split(v), case.split(p.seen, axis=-1), strict=True
        )
    ]
    blocks = sum(np.isfinite(part_lse).astype(int) for _, part_lse in parts)
    error = np.zeros(right.shape)
    for out, part_lse in parts:
        seen = np.isfinite(part_lse)
        share = np.exp(np.where(seen, part_lse, 0) - np.where(seen, lse, 0))
        weight = np.where(seen, 1 / np.maximum(blocks, 1) - share, 0)
        error += weight[..., None] * out
    # 1e-10: the logits reach some hundreds, and exp turns their rounding into relative error
    assert_within("error", wrong - right, error, 1e-10)


def test_chunks_that_see_nothing_shrink_the_mean_over_all_chunks() -> None:
    """Causal row 0 sees one chunk of two: right 5, the mean over all 2.5."""
    inputs = np.zeros((2, 1)), [np.zeros((1, 1))] * 2, [column(5), column(9)]
    assert mean_over_all_chunks(*inputs, visibility=Visibility())[0].item() == 2.5
    assert equal_weight_mean(*inputs, visibility=Visibility())[0].item() == 5
    assert ring_attention(*inputs, visibility=Visibility())[0].item() == 5


def test_key_counts_are_right_when_every_score_is_equal_and_only_then() -> None:
    uniform = one_row([[2, 2, 2], [2]], [[0, 3, 6], [7]])
    assert key_count_mean(*uniform, scale=1.0).item() == pytest.approx(4)
    assert ring_attention(*uniform, scale=1.0).item() == pytest.approx(4)
    uneven = one_row([[2, 2, 2], [5]], [[0, 3, 6], [7]])
    right = ring_attention(*uneven, scale=1.0).item()
    assert abs(key_count_mean(*uneven, scale=1.0).item() - right) > 1


@pytest.mark.parametrize("mean", MEANS)
def test_a_row_that_sees_nothing_is_zero_in_every_mean(mean: Any) -> None:
    rule = Visibility(documents=np.array([0, -1, 0]))
    inputs = np.ones((3, 1)), [np.ones((2, 1)), np.ones((1, 1))], [column(1, 2), column(3)]
    assert mean(*inputs, visibility=rule)[1].item() == 0


@pytest.mark.parametrize("merge", MERGES)
def test_every_wrong_merge_is_wrong_on_the_worked_sum_and_right_for_equal_maxima(
    merge: Any,
) -> None:
    worked = one_row([[0], [np.log(3)]], [[0], [4]])
    out, lse = ring_attention_with(merge_chunk_stats, *worked, scale=1.0)
    assert out.item() == pytest.approx(3)
    assert lse.item() == pytest.approx(np.log(4))
    shifted = one_row([[0], [np.log(3)]], [[1], [4]])
    right = ring_attention(*shifted, scale=1.0).item()
    assert abs(ring_attention_with(merge, *shifted, scale=1.0)[0].item() - right) > 0.1
    equal = one_row([[1, 0], [1]], [[1, 2], [4]])
    out, _ = ring_attention_with(merge, *equal, scale=1.0)
    assert_within("equal maxima", out, ring_attention(*equal, scale=1.0), 1e-14)


def test_rescaling_only_the_sum_leaves_the_lse_right() -> None:
    """The fault does not show in a test of the lse alone."""
    inputs = arrays(2, [2, 3, 4])
    out, lse = ring_attention_with(merge_rescaling_sum_only, *inputs)
    right, right_lse = ring_attention_with(merge_chunk_stats, *inputs)
    assert_within("lse", lse, right_lse, 1e-14)
    assert np.abs(out - right).max() > 0.1


def test_the_flipped_sign_grows_what_should_shrink() -> None:
    small, large = (attention_chunk_stats(column(1), column(s), column(1)) for s in (0, 3))
    wrong, right = (m(small, large) for m in (merge_with_flipped_sign, merge_chunk_stats))
    assert wrong.sum.item() == pytest.approx(np.exp(3) + 1)
    assert right.sum.item() == pytest.approx(np.exp(-3) + 1)


def test_the_wrong_merges_take_an_empty_side_without_warning() -> None:
    empty = attention_chunk_stats(column(1), np.ones((0, 1)), np.ones((0, 1)))
    part = attention_chunk_stats(column(1), column(2), column(3))
    for merge in MERGES:
        for merged in (merge(part, empty), merge(empty, part)):
            assert finalize(merged)[0].item() == 3


def test_adding_two_lse_values_multiplies_the_masses() -> None:
    assert np.exp(add_lse(np.log([3.0, 2.0]), np.log([4.0, 1.0]))) == pytest.approx([12, 2])


def test_the_right_merge_in_the_loop_for_wrong_ones_is_exact() -> None:
    """So whatever a wrong merge changes is the merge's doing."""
    q, keys, values = arrays(3, [2, 0, 5])
    out, lse = ring_attention_with(merge_chunk_stats, q, keys, values)
    wanted, wanted_lse = dense_attention(q, np.concatenate(keys), np.concatenate(values))
    assert_within("out", out, wanted, 1e-13)
    assert_within("lse", lse, wanted_lse, 1e-13)
