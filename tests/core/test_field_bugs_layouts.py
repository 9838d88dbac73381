"""Faults of real systems in the order of shards, of heads and of memory."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Visibility,
    attention_chunk_stats,
    contiguous,
    dense_attention,
    dense_attention_backward,
    finalize,
    ring_attention,
    zigzag,
)
from tests.support.ranks import attention_by_ranks
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, assert_within, reference, tolerance

Array = NDArray[Any]


def test_c14_contiguous_shards_come_back_in_contiguous_order() -> None:
    shards = [np.arange(4), np.arange(4, 8)]
    assert contiguous(8, 2).unshard(shards, axis=0).tolist() == list(range(8))
    zigzag_restore = zigzag(8, 2).unshard(shards, axis=0)
    assert zigzag_restore.tolist() == [0, 1, 4, 5, 6, 7, 2, 3]


def test_c15_index_and_inverse_are_two_things() -> None:
    layout = zigzag(6, 3)
    assert layout.permutation.tolist() == [0, 5, 1, 4, 2, 3]
    assert layout.inverse.tolist() == [0, 2, 4, 5, 3, 1]
    x = np.arange(6)
    assert x[layout.permutation][layout.inverse].tolist() == list(range(6))
    assert x[layout.permutation][layout.permutation].tolist() != list(range(6))
    alone = zigzag(6, 1)  # R = 1 hides the mistake
    assert x[alone.permutation][alone.permutation].tolist() == list(range(6))


@pytest.mark.parametrize(("seq_len", "cp_size"), [(7, 2), (3, 4), (1, 5), (5, 4)])
def test_c17_lengths_that_no_rank_count_divides_are_exact(seq_len: int, cp_size: int) -> None:
    rng = np.random.default_rng(17)
    q, k, v = (rng.standard_normal((seq_len, 2)) for _ in range(3))
    every = list(range(seq_len))
    problem = Problem(q, k, v, visible=double_loop(every, every, {}))
    for layout in (zigzag(seq_len, cp_size), contiguous(seq_len, cp_size)):
        out = attention_by_ranks(layout, q, k, v, Visibility())
        assert_within("out", out, reference(problem).out, tolerance(problem, cp_size).out)
    assert zigzag(3, 4).lengths.count(0) == 2


def test_c20_query_head_h_reads_key_head_h_over_group() -> None:
    """Each key head holds one constant value, so the output shows which head was read."""
    q = np.random.default_rng(20).standard_normal((4, 3, 2))
    k, v = np.ones((2, 5, 2)), np.ones((2, 5, 1)) * np.array([10.0, 20.0])[:, None, None]
    read = [10, 10, 20, 20]
    assert dense_attention(q, k, v)[0][:, 0, 0] == pytest.approx(read)
    assert finalize(attention_chunk_stats(q, k, v))[0][:, 0, 0] == pytest.approx(read)
    assert ring_attention(q, [k[:, :2], k[:, 2:]], [v[:, :2], v[:, 2:]])[:, 0, 0] == (
        pytest.approx(read)
    )
    tiled = np.tile(v, (2, 1, 1))[:, 0, 0]
    assert tiled.tolist() == [10, 20, 10, 20]


def test_c20_gradients_of_a_key_head_are_summed_over_its_group() -> None:
    rng = np.random.default_rng(21)
    q, dout = rng.standard_normal((4, 3, 2)), rng.standard_normal((4, 3, 2))
    k, v = rng.standard_normal((2, 5, 2)), rng.standard_normal((2, 5, 2))
    _, dk, dv = dense_attention_backward(q, k, v, dout)
    owner = [0, 0, 1, 1]
    alone = [dense_attention_backward(q[h], k[owner[h]], v[owner[h]], dout[h]) for h in range(4)]
    for name, got, part in (("dk", dk, 1), ("dv", dv, 2)):
        summed = np.stack([alone[0][part] + alone[1][part], alone[2][part] + alone[3][part]])
        assert_within(name, got, summed, 1e-14)
        assert np.abs(summed).max() > 0.1


def test_c36_transposed_reversed_and_strided_views_give_the_same_bits() -> None:
    rng = np.random.default_rng(36)
    q, k, v = (rng.standard_normal((2, 6, 3)) for _ in range(3))
    roomy = np.full((2, 12, 6), np.nan)
    roomy[:, ::2, ::2] = k
    views = {
        "q": q.swapaxes(-1, -2).copy().swapaxes(-1, -2),
        "k": roomy[:, ::2, ::2],
        "v": v[:, ::-1].copy()[:, ::-1],
    }
    assert not any(x.flags.c_contiguous for x in views.values())
    plain = ring_attention(q, [k[:, :2], k[:, 2:]], [v[:, :2], v[:, 2:]], visibility=Visibility())
    key, value = views["k"], views["v"]
    viewed = ring_attention(
        views["q"], [key[:, :2], key[:, 2:]], [value[:, :2], value[:, 2:]], visibility=Visibility()
    )
    # 1e-15: numpy may sum a strided product in another order, nothing else may differ
    assert_within("out", viewed, plain, 1e-15)
    assert np.abs(plain).max() > 0.5
