"""Attention over blocks of keys that arrive one at a time, as around a ring.

Owns `ring_attention`, the loop over chunks in one process, and `simulate`, which plays a schedule
of events for every rank in turn. Masks and layouts meet here.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cpcore.attention_checks import score_scale
from cpcore.checks import Array, accumulate_dtype, expected, narrow
from cpcore.chunk_inputs import chunked_inputs, simulation_inputs
from cpcore.chunks import attention_chunk_stats, empty_stats, finalize, merge_chunk_stats
from cpcore.dropout import Dropout
from cpcore.event_checks import check_events, check_lost_return
from cpcore.exchange import pass_blocks
from cpcore.layouts import Layout
from cpcore.masks import Visibility
from cpcore.replay import return_gradients
from cpcore.results import Run, collect
from cpcore.schedule import Event, schedule
from cpcore.simulation import simulation_with

# Rows are independent of each other, so they are processed in tiles of this many. The largest
# temporary is one tile of scores, QUERY_TILE × (keys of a chunk) per head, however long S is.
QUERY_TILE = 512


def ring_attention(
    query: ArrayLike,
    key_chunks: Sequence[ArrayLike],
    value_chunks: Sequence[ArrayLike],
    *,
    visibility: Visibility | None = None,
    query_positions: ArrayLike | None = None,
    key_positions: Sequence[ArrayLike] | None = None,
    scale: float | None = None,
) -> Array:
    """Exact attention over all chunks, without ever holding the full score matrix.

    The summary of every chunk is merged into a running state, which is divided once at the end.
    The result is that of one softmax over the concatenated keys, for any split and any order.

    Shapes: query (…, Q, D); key_chunks a list of (…, c, D), value_chunks of (…, c, Dv), c may
        differ and be 0. query_positions (Q,), key_positions one array (c,) per chunk: global
        positions. Default: keys count on from 0, and queries do too if Q is the number of keys.
        visibility None = full. Result (…, Q, Dv) in query's dtype.
    Raises: ValueError for wrong shapes, dtypes or positions, and for NaN or infinity in any slot
        that is not padding, before any work is done.
    Source: Liu et al. 2023, Ring Attention (arXiv:2310.01889); the state is that of `chunks`.

    >>> key_chunks, value_chunks = [[[0.0]], [[np.log(3)]]], [[[0.0]], [[4.0]]]
    >>> ring_attention([[1.0]], key_chunks, value_chunks).round(6)
    array([[3.]])
    """
    q, chunks, q_pos, k_pos = chunked_inputs(
        query, key_chunks, value_chunks, visibility, query_positions, key_positions
    )
    scale, value_dim = score_scale(scale, q.shape[-1]), chunks[0][1].shape[-1]
    state_dtype = accumulate_dtype(q.dtype, *(x.dtype for chunk in chunks for x in chunk))
    output = np.empty((*q.shape[:-1], value_dim), q.dtype)
    for start in range(0, q.shape[-2], QUERY_TILE):
        tile = slice(start, start + QUERY_TILE)
        rows = q[..., tile, :].astype(state_dtype)
        acc = empty_stats(rows.shape[:-1], value_dim, state_dtype)
        for (k, v), pos in zip(chunks, k_pos, strict=True):
            visible = None if visibility is None else visibility.block(q_pos[tile], pos)
            if visible is not None and not visible.any():
                continue  # nothing here for these rows: the merge would change no bit
            mask = None if visible is None or visible.all() else visible
            stats = attention_chunk_stats(rows, k, v, visible=mask, scale=scale)
            acc = merge_chunk_stats(acc, stats)
        output[..., tile, :] = narrow("query", finalize(acc)[0], q.dtype)
    return output


def simulate(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    layout: Layout,
    visibility: Visibility | None,
    *,
    dout: ArrayLike | None = None,
    protocol: str = "ring",
    max_block: int | None = None,
    scale: float | None = None,
    dropout: Dropout | None = None,
    fault: str | tuple[str, int, int] | None = None,
    events: Iterable[Event] | None = None,
) -> Run:
    """Attention by all ranks of `layout`, and its gradients if `dout` is given.

    Every rank keeps its queries. Keys and values reach it by the events and only by them: a foreign
    block that no event delivered is NaN, and NaN in a block that is used is an error.

    Shapes: query (…, S, D), key (…, S, D), value and dout (…, S, Dv) in logical order; axis -3 is
        heads when present. Results have the dtype of the array they belong to; lse (…, S) is kept
        in the accumulate dtype.
    Raises: ValueError for wrong arguments before any work, for events whose messages do not fit
        together, and for results that overflow their dtype.
    """
    rule = Visibility(causal=False) if visibility is None else visibility
    # The schedule checks its arguments even where another stream takes its place.
    backward = dout is not None
    planned = schedule(layout, rule, protocol=protocol, max_block=max_block, backward=backward)
    arrays = simulation_inputs(query, key, value, dout, layout, visibility)
    if dropout is not None and not isinstance(dropout, Dropout):
        raise expected("dropout", "a Dropout or None", type(dropout).__name__)
    ring = protocol.startswith("ring")
    phases = ("forward", "replay") if backward else ("forward",)
    events = check_events(planned if events is None else events, layout, phases)
    simulation = simulation_with(fault, layout)
    if backward:
        check_lost_return(fault, events)
    sim = simulation(arrays, layout, rule, score_scale(scale, arrays[0].shape[-1]), dropout)
    shards = list(zip(sim.k, sim.v, strict=True))

    pass_blocks((e for e in events if e.phase == "forward"), shards, ring, sim.attend)
    results = sim.finish()
    gradients: list[tuple[Array, ...]] = [()] * layout.cp_size
    if dout is not None:
        sim.start_replay(results)
        pass_blocks((e for e in events if e.phase == "replay"), shards, ring, sim.replay)
        returns = sim.returning([e for e in events if e.phase == "return"])
        return_gradients(returns, sim.owed, sim.lost)
        gradients = [(dq, *sim.home(rank)) for rank, dq in enumerate(sim.dq)]
    return collect(results, gradients, arrays, layout, events)
