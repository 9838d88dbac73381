"""How `ring_attention` works on its rows: each once, in tiles, in the accumulate dtype."""

from typing import Any

import numpy as np
import pytest

from cpcore import ChunkStats, attention_chunk_stats, ring_attention

DTYPES = [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)]


@pytest.mark.parametrize(("dtype", "state"), DTYPES)
def test_each_row_meets_each_chunk_once_in_tiles_of_the_state_dtype(
    monkeypatch: pytest.MonkeyPatch, dtype: type, state: type
) -> None:
    tiles: list[tuple[int, Any]] = []

    def spy(query: Any, *arrays: Any, **options: Any) -> ChunkStats:
        tiles.append((query.shape[-2], query.dtype))
        return attention_chunk_stats(query, *arrays, **options)

    monkeypatch.setattr("cpcore.ring.QUERY_TILE", 3)
    monkeypatch.setattr("cpcore.ring.attention_chunk_stats", spy)
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 8, 2)).astype(dtype)
    ring_attention(q, [k[:5], k[5:]], [v[:5], v[5:]])
    assert tiles == [(3, state)] * 4 + [(2, state)] * 2
