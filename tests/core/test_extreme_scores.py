"""Logits at the edge of a dtype, chosen exactly representable so that answers have closed forms."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import attention_chunk_stats, dense_attention, finalize, merge_chunk_stats
from tests.support.errors import refused

Array = NDArray[Any]
NEAR_LIMIT = float(2**127)  # half of float32's largest power range; the sum of two overflows


def by_chunks(scores: list[float], values: list[float], dtype: Any, cuts: list[int]) -> Any:
    """(output, lse) of one row with the given scores, split at `cuts`."""
    q, k = np.ones((1, 1), dtype), np.array(scores, dtype)[:, None]
    v = np.array(values, dtype)[:, None]
    parts = [
        attention_chunk_stats(q, a, b, scale=1.0)
        for a, b in zip(np.split(k, cuts), np.split(v, cuts), strict=True)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = merge_chunk_stats(merged, part)
    out, lse = finalize(merged)
    return float(out[0, 0]), float(lse[0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2], [0, 1, 3]])
def test_a_score_ten_thousand_above_the_others_takes_all(dtype: Any, cuts: list[int]) -> None:
    assert by_chunks([-1e4, 1e4, 0.0], [5.0, 7.0, 9.0], dtype, cuts) == (7.0, 1e4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("level", [-1e4, 1e4])
@pytest.mark.parametrize("cuts", [[], [1], [3], [1, 2, 3]])
def test_equal_extreme_scores_share_equally(dtype: Any, level: float, cuts: list[int]) -> None:
    out, lse = by_chunks([level] * 4, [1.0, 3.0, 5.0, 7.0], dtype, cuts)
    state = np.float64 if dtype == np.float64 else np.float32
    assert out == 4.0
    assert lse == state(level) + state(np.log(state(4)))


@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2]])
def test_float32_scores_near_the_limit_are_exact(cuts: list[int]) -> None:
    scores = [-NEAR_LIMIT, NEAR_LIMIT, NEAR_LIMIT]
    assert by_chunks(scores, [9.0, 2.0, 4.0], np.float32, cuts) == (3.0, NEAR_LIMIT)


@pytest.mark.parametrize("cuts", [[], [1]])
def test_two_scores_further_apart_than_float32_reaches_give_the_larger(cuts: list[int]) -> None:
    scores = [-1.5 * NEAR_LIMIT, 1.5 * NEAR_LIMIT]  # their difference is inf in float32
    assert by_chunks(scores, [9.0, 2.0], np.float32, cuts) == (2.0, 1.5 * NEAR_LIMIT)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_visible_score_that_overflows_is_refused_in_chunks_and_in_dense(sign: float) -> None:
    q, k = np.full((1, 1), 2.0**100, np.float32), np.full((1, 1), sign * 2.0**100, np.float32)
    v = np.ones((1, 1), np.float32)
    with refused("query and key_chunk", "finite scores in float32", "an overflow"):
        attention_chunk_stats(q, k, v)
    with refused("query, key", "finite scores", "overflow in float32"):
        dense_attention(q, k, v)


def test_an_overflow_in_a_hidden_score_does_no_harm() -> None:
    """Hidden scores of inf, -inf, and inf - inf, which is invalid."""
    q = np.full((1, 2), 2.0**100, np.float32)
    k = 2.0**100 * np.array([[1, 1], [-1, -1], [1, -1], [0, 0]], np.float32)
    v, visible = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32), np.array([[0, 0, 0, 1]], bool)
    stats = attention_chunk_stats(q, k, v, visible=visible)
    assert [float(x.item()) for x in stats] == [4.0, 1.0, 0.0]
    assert float(dense_attention(q, k, v, visible=visible)[0].item()) == 4.0


def test_float16_inputs_whose_product_exceeds_float16_are_fine() -> None:
    q, k = np.full((1, 1), 6e4, np.float16), np.array([[6e4], [5e4]], np.float16)
    v = np.array([[1.0], [2.0]], np.float16)
    out, lse = finalize(attention_chunk_stats(q, k, v), np.float16)
    assert out.item() == 1.0
    assert out.dtype == np.float16
    assert lse.item() == np.float32(q.item()) * np.float32(k[0].item())


def test_an_all_negative_row_keeps_its_own_maximum() -> None:
    """A maximum that starts at 0 instead of -inf would underflow every weight to 0."""
    assert by_chunks([-1e4, -1e4], [1.0, 3.0], np.float32, [1])[0] == 2.0
