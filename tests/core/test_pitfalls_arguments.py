"""The wrong ways take the arguments of the right one: what they get wrong is the merging alone."""

from typing import Any

import numpy as np
import pytest

from cpcore import (
    Visibility,
    attention_chunk_stats,
    dense_attention,
    merge_chunk_stats,
    ring_attention,
)
from cpcore.pitfalls import (
    equal_weight_mean,
    key_count_mean,
    mean_over_all_chunks,
    merge_with_flipped_sign,
    merge_without_rescale,
    ring_attention_with,
)
from tests.support.errors import refused
from tests.support.tolerance import assert_within

MEANS = [equal_weight_mean, mean_over_all_chunks, key_count_mean]


@pytest.mark.parametrize("mean", MEANS)
def test_positions_scale_and_padding_reach_every_mean(mean: Any) -> None:
    """With one chunk each mean is right, so it must agree with the right function."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 4, 3)), rng.standard_normal((1, 5, 3))
    v = np.arange(10.0).reshape(1, 5, 2)
    k[:, 2] = np.nan
    documents = np.array([0, 0, 0, -1, 0, 0])
    where = {
        "visibility": Visibility(documents=documents),
        "query_positions": [5, 1, 4, 2],
        "key_positions": [[4, 0, 3, 2, 1]],
        "scale": 0.3,
    }
    right = ring_attention(q, [k], [v], **where)  # type: ignore[arg-type]
    assert_within("mean", mean(q, [k], [v], **where), right, 1e-14)
    assert np.ptp(right) > 1


def test_the_loop_for_wrong_merges_takes_heads_widths_dtypes_and_a_scale() -> None:
    rng = np.random.default_rng(1)
    q = rng.standard_normal((4, 3, 2)).astype(np.float32)
    k, v = (rng.standard_normal((2, 6, n)).astype(np.float32) for n in (2, 5))
    wanted, wanted_lse = dense_attention(q, k, v, scale=1.5)
    for cuts in ([], [4]):
        chunks = np.split(k, cuts, axis=-2), np.split(v, cuts, axis=-2)
        out, lse = ring_attention_with(merge_chunk_stats, q, *chunks, scale=1.5)
        assert {out.dtype.name, lse.dtype.name} == {"float32"}
        assert_within("out", out, wanted, 1e-5)
        assert_within("lse", lse, wanted_lse, 1e-5)


def test_the_flipped_sign_overflows_to_infinity_without_a_warning() -> None:
    """A picture of the fault must not be drowned in warnings."""
    q, v = np.ones((1, 1)), np.ones((1, 1))
    low, high = (attention_chunk_stats(q, np.full((1, 1), s), v) for s in (0.0, 1e4))
    with np.errstate(all="raise"):
        merged = merge_with_flipped_sign(low, high)
        mirrored = merge_with_flipped_sign(high, low)
        empty = attention_chunk_stats(q, v[:0], v[:0])
        merge_with_flipped_sign(empty, empty)
    assert np.isinf(merged.sum).all()
    assert np.isinf(mirrored.output).all()


def test_the_wrong_ways_check_their_arguments_like_the_right_one() -> None:
    one = np.ones((1, 1))
    for mean in MEANS:
        with refused("key_chunks", "at least one chunk", "none"):
            mean(one, [], [])
    with refused("value_chunks", "1 chunks", 0):
        ring_attention_with(merge_without_rescale, one, [one], [])


def test_results_come_in_the_dtype_of_the_query() -> None:
    q, chunks = np.ones((2, 3), np.float16), [np.ones((2, 3))] * 2
    assert {mean(q, chunks, chunks).dtype.name for mean in MEANS} == {"float16"}
