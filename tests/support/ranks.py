"""Every rank's call of `ring_attention` in one process."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpcore import Layout, Visibility, ring_attention

Array = NDArray[Any]


def attention_by_ranks(
    layout: Layout, q: Array, k: Array, v: Array, visibility: Visibility | None, **options: Any
) -> Array:
    """Shard, let each rank meet all shards in its own ring order, and restore logical order."""
    queries, keys, values = (layout.shard(x) for x in (q, k, v))
    parts = []
    for rank in range(layout.cp_size):
        order = [(rank - step) % layout.cp_size for step in range(layout.cp_size)]
        parts.append(
            ring_attention(
                queries[rank],
                [keys[owner] for owner in order],
                [values[owner] for owner in order],
                visibility=visibility,
                query_positions=layout.owned[rank],
                key_positions=[layout.owned[owner] for owner in order],
                **options,
            )
        )
    out = layout.unshard(parts)
    assert out.shape == (*q.shape[:-1], v.shape[-1])
    return np.asarray(out)
