"""Checks of the arguments that `ring_attention` and the wrong variants in `pitfalls` share.

Owns: chunk lists, their global positions, and padding. Leaves out: the attention itself.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cpcore.attention_checks import attention_arrays, zero_unused
from cpcore.checks import Array, expected, float_array, index_array
from cpcore.layouts import Layout
from cpcore.masks import Visibility, padding_slots


def chunked_inputs(
    query: ArrayLike,
    key_chunks: Sequence[ArrayLike],
    value_chunks: Sequence[ArrayLike],
    visibility: Visibility | None = None,
    query_positions: ArrayLike | None = None,
    key_positions: Sequence[ArrayLike] | None = None,
) -> tuple[Array, list[tuple[Array, Array]], Array, list[Array]]:
    """query, (key, value) chunks, query positions and key positions, checked before any work.

    Padding slots come back as zeros; NaN or infinity in any other slot is an error.
    """
    if visibility is not None and not isinstance(visibility, Visibility):
        raise expected("visibility", "a Visibility or None", type(visibility).__name__)
    q, chunks = _chunk_arrays(query, key_chunks, value_chunks)
    lengths = [k.shape[-2] for k, _ in chunks]
    q_pos, k_pos = _positions(q.shape[-2], lengths, visibility, query_positions, key_positions)
    q = _without_padding("query", q, q_pos, visibility, "query_positions")
    clean = [
        (
            _without_padding(f"key_chunks[{i}]", k, pos, visibility, f"key_positions[{i}]"),
            _without_padding(f"value_chunks[{i}]", v, pos, visibility, f"key_positions[{i}]"),
        )
        for i, ((k, v), pos) in enumerate(zip(chunks, k_pos, strict=True))
    ]
    return q, clean, q_pos, k_pos


def _chunk_arrays(
    query: ArrayLike, key_chunks: Sequence[ArrayLike], value_chunks: Sequence[ArrayLike]
) -> tuple[Array, list[tuple[Array, Array]]]:
    """The query and its (key, value) chunks, checked against each other before any work."""
    for name, chunk_list in (("key_chunks", key_chunks), ("value_chunks", value_chunks)):
        _listed(name, chunk_list)
    if len(key_chunks) == 0:
        raise expected("key_chunks", "at least one chunk", "none")
    if len(value_chunks) != len(key_chunks):
        raise expected("value_chunks", f"{len(key_chunks)} chunks", len(value_chunks))
    q, chunks = float_array("query", query), []
    for i, (key, value) in enumerate(zip(key_chunks, value_chunks, strict=True)):
        names = ("query", f"key_chunks[{i}]", f"value_chunks[{i}]")
        q, k, v = attention_arrays(names, q, key, value)
        chunks.append((k, v))
        for name, x, first in zip(names[1:], (k, v), chunks[0], strict=True):
            if x.shape[:-2] + x.shape[-1:] != first.shape[:-2] + first.shape[-1:]:
                raise expected(name, f"heads and width of chunk 0, {first.shape}", x.shape)
    return q, chunks


def _positions(
    q_length: int,
    k_lengths: list[int],
    visibility: Visibility | None,
    query_positions: ArrayLike | None,
    key_positions: Sequence[ArrayLike] | None,
) -> tuple[Array, list[Array]]:
    """Global positions of the queries and of each chunk's keys."""
    total = sum(k_lengths)
    if key_positions is None:
        k_pos = np.split(np.arange(total), np.cumsum(k_lengths)[:-1])
    elif len(_listed("key_positions", key_positions)) != len(k_lengths):
        raise expected("key_positions", f"{len(k_lengths)} arrays", len(key_positions))
    else:
        k_pos = [
            index_array(f"key_positions[{i}]", pos, length=length)
            for i, (pos, length) in enumerate(zip(key_positions, k_lengths, strict=True))
        ]
    if query_positions is not None:
        return index_array("query_positions", query_positions, length=q_length), k_pos
    if visibility is not None and q_length != total:
        wanted = f"given when {q_length} queries meet {total} keys under a visibility"
        raise expected("query_positions", wanted, None)
    return np.arange(q_length), k_pos


def _listed(argument: str, value: Any) -> list[ArrayLike]:
    """`value`, refused unless it is a list, a tuple or an array of chunks."""
    if not isinstance(value, list | tuple) and not (isinstance(value, np.ndarray) and value.ndim):
        raise expected(argument, "a list with one array per chunk", type(value).__name__)
    return list(value)


def _without_padding(
    argument: str,
    array: Array,
    positions: Array,
    visibility: Visibility | None,
    positions_argument: str = "positions",
) -> Array:
    """`array` with padding slots zeroed; NaN or infinity in any other slot is an error."""
    real = None if visibility is None else ~padding_slots(visibility, positions_argument, positions)
    return zero_unused(argument, array, real)


def simulation_inputs(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    dout: ArrayLike | None,
    layout: Layout,
    visibility: Visibility | None,
) -> tuple[Array, Array, Array, Array | None]:
    """query, key, value and dout in logical order, checked, with padding slots as zeros."""
    q, k, v = attention_arrays(("query", "key", "value"), query, key, value)
    for name, x in (("query", q), ("key", k)):
        if x.shape[-2] != layout.seq_len:
            raise expected(name, f"{layout.seq_len} positions like the layout", x.shape)
    rows = None if dout is None else float_array("dout", dout)
    if rows is not None and rows.shape != (*q.shape[:-1], v.shape[-1]):
        raise expected("dout", f"shape {(*q.shape[:-1], v.shape[-1])}", rows.shape)
    pos = np.arange(layout.seq_len)
    q, k, v = (
        _without_padding(name, x, pos, visibility)
        for name, x in (("query", q), ("key", k), ("value", v))
    )
    return q, k, v, None if rows is None else _without_padding("dout", rows, pos, visibility)
