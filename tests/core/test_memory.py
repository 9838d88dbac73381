"""Temporary memory, counted allocation by allocation: it follows the chunk, not the sequence."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from cpcore import Visibility, dense_attention, ring_attention

WIDTH = 8


def peak_bytes(rows: int, keys: int, chunk: int, *, causal: bool, dtype: Any = np.float32) -> int:
    """Most bytes held at one time during the call, the result itself not counted."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((rows, WIDTH)).astype(dtype)
    k, v = (rng.standard_normal((keys, WIDTH)).astype(dtype) for _ in range(2))
    cuts = range(chunk, keys, chunk)
    key_chunks, value_chunks = np.split(k, cuts), np.split(v, cuts)
    positions = np.arange(keys - rows, keys)
    tracemalloc.start()
    out = ring_attention(
        q,
        key_chunks,
        value_chunks,
        visibility=Visibility() if causal else None,
        query_positions=positions,
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - out.nbytes


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("causal", [False, True])
def test_four_times_the_keys_need_no_more_temporary_memory(causal: bool, dtype: Any) -> None:
    """A key's global position takes 8 bytes; a column of scores for these rows would take 2048."""
    short = peak_bytes(512, 4096, 256, causal=causal, dtype=dtype)
    long = peak_bytes(512, 16384, 256, causal=causal, dtype=dtype)
    positions = 8 * (16384 - 4096)
    assert long - positions < 1.02 * short


@pytest.mark.parametrize("causal", [False, True])
def test_four_times_the_queries_need_no_more_temporary_memory(causal: bool) -> None:
    short = peak_bytes(1024, 4096, 256, causal=causal)
    long = peak_bytes(4096, 4096, 256, causal=causal)
    assert long < 1.1 * short


@pytest.mark.parametrize("causal", [False, True])
def test_twice_the_chunk_needs_more_temporary_memory(causal: bool) -> None:
    """The counter works: most of the peak is a tile of scores, which doubles."""
    small = peak_bytes(512, 4096, 256, causal=causal)
    large = peak_bytes(512, 4096, 512, causal=causal)
    assert 1.5 * small < large < 2.5 * small


def test_scores_become_weights_in_place() -> None:
    """One tile of scores, its finiteness check of a byte each, and little more: not two tiles."""
    tile = 512 * 1024 * np.dtype(np.float32).itemsize
    assert tile < peak_bytes(512, 4096, 1024, causal=False) < 1.6 * tile


def test_the_full_score_matrix_is_never_allocated() -> None:
    rows = keys = 4096
    matrix = rows * keys * np.dtype(np.float32).itemsize
    assert peak_bytes(rows, keys, 256, causal=True) < matrix / 20
    x = np.zeros((1024, WIDTH), np.float32)
    tracemalloc.start()
    dense_attention(x, x, x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak > 1024 * 1024 * 4  # dense does allocate it, and the counter sees that
