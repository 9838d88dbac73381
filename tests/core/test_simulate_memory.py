"""Temporary memory of a whole run, counted allocation by allocation."""

import tracemalloc
from unittest.mock import patch

import numpy as np

from cpcore import Visibility, simulate, simulation, zigzag

WIDTH = 32


def peak_bytes(seq_len: int, cp_size: int) -> int:
    """Most bytes held at one time during a forward run, the arrays it returns not counted.

    Tiles of 128 keep the run short: they are then as small beside these arrays as tiles of 512 are
    beside those of a long sequence.
    """
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((seq_len, WIDTH)).astype(np.float32) for _ in range(3))
    tracemalloc.start()
    with patch.object(simulation, "TILE", 128):
        done = simulate(q, k, v, zigzag(seq_len, cp_size), Visibility())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    owned = [done.output, done.lse]
    for result in done.per_rank:
        owned += [result.output, result.lse]
    return peak - sum(array.nbytes for array in owned)


def test_beside_its_shards_a_run_needs_about_one_more_array_and_no_score_matrix() -> None:
    """Shards of q, k and v, and the ranks' outputs joined before they are put in order.

    Together four arrays of S × D; the running state is gone by then, the tile of scores too.
    """
    seq_len = 2048
    array = seq_len * WIDTH * 4
    assert 3 * array < peak_bytes(seq_len, 4) < 4.6 * array
    assert 4.6 * array < seq_len * seq_len * 4 / 10


def test_four_times_the_tokens_need_four_times_the_memory_not_sixteen() -> None:
    assert peak_bytes(2048, 4) < 4.2 * peak_bytes(512, 4)
