"""Argument checks of attention over a chunk, and of the state that it leaves.

Owns what the chunk functions accept: shapes that fit together, finite numbers in every slot that is
seen, factors of dropout, sizes, and parts that can be a running state. Leaves out lists of chunks
and positions (`chunk_inputs`).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    MOST_POSITIONS,
    Array,
    accumulate_dtype,
    any_array,
    expected,
    float_array,
    real_number,
    shown,
    whole_number,
)

MOST_AXES = 32  # numpy allows some more
MOST_NUMBERS = 8 * MOST_POSITIONS  # in one state


def chunk_arguments(
    query: ArrayLike,
    key_chunk: ArrayLike,
    value_chunk: ArrayLike,
    visible: ArrayLike | None,
    scale: float | None,
    keep: ArrayLike | None,
) -> tuple[Array, Array, Array, Array | None, float, Array | None]:
    """The six of `attention_chunk_stats`, checked before any work; unseen slots as zeros."""
    names = ("query", "key_chunk", "value_chunk")
    q, k, v = attention_arrays(names, query, key_chunk, value_chunk)
    shape = (*q.shape[:-1], k.shape[-2])  # (…, Q, K)
    mask = None if visible is None else visible_array(visible, shape)
    factor = (
        None
        if keep is None
        else keep_array(keep, shape, accumulate_dtype(q.dtype, k.dtype, v.dtype))
    )
    real_scale = score_scale(scale, q.shape[-1])
    q, k, v = finite_inputs(q, k, v, mask)
    return q, k, v, mask, real_scale, factor


def attention_arrays(
    names: tuple[str, str, str], query: ArrayLike, key: ArrayLike, value: ArrayLike
) -> tuple[Array, Array, Array]:
    """The three as arrays that describe one attention: (…, Q, D), (…, K, D), (…, K, Dv).

    With three axes or more, axis -3 is heads and may be grouped: Hq a multiple of Hkv.
    """
    q_name, k_name, v_name = names
    query, key = float_array(q_name, query), float_array(k_name, key)
    value = float_array(v_name, value)
    if query.ndim < 2:
        raise expected(q_name, "at least 2 axes (…, Q, D)", f"shape {query.shape}")
    if key.ndim != query.ndim:
        raise expected(k_name, f"{query.ndim} axes like {q_name}", f"shape {key.shape}")
    if query.shape[-1] == 0:
        raise expected(q_name, "a width D of at least 1", f"shape {query.shape}")
    if key.shape[-1] != query.shape[-1]:
        raise expected(k_name, f"width D = {query.shape[-1]} like {q_name}", f"shape {key.shape}")
    if value.ndim != key.ndim or value.shape[:-1] != key.shape[:-1]:
        raise expected(v_name, f"shape {(*key.shape[:-1], 'Dv')}", f"shape {value.shape}")
    if key.shape[:-3] != query.shape[:-3]:
        raise expected(k_name, f"leading axes {query.shape[:-3]}", f"shape {key.shape}")
    if query.ndim > 2 and (key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]):
        wanted = f"a head count (axis -3) that divides {query.shape[-3]}"
        raise expected(k_name, wanted, f"shape {key.shape}")
    return query, key, value


def visible_array(visible: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`visible` as a boolean view of `shape` (…, Q, K)."""
    array = any_array("visible", visible)
    if array.dtype != np.bool_:
        raise expected("visible", "bool (True = may attend)", array.dtype)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise expected("visible", f"a shape that broadcasts to {shape}", array.shape) from None


def keep_array(keep: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """`keep` in `dtype`: it broadcasts to `shape` (…, Q, K), and is finite and at least 0."""
    array = float_array("keep", keep)
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise expected("keep", f"a shape that broadcasts to {shape}", array.shape) from None
    with np.errstate(under="ignore", over="ignore"):
        factor = array.astype(dtype, copy=False)
    if not (np.isfinite(factor) & (factor >= 0)).all():
        raise expected("keep", f"finite factors of at least 0 in {dtype}", "others")
    return factor


def score_scale(scale: float | None, width: int) -> float:
    """`scale`, or the default D**-0.5."""
    return float(width**-0.5) if scale is None else real_number("scale", scale)


def state_sizes(rows_shape: Sequence[int], value_dim: int) -> tuple[tuple[int, ...], int]:
    """Sizes of a running state: (…, Q), and the width of its values."""
    if not isinstance(rows_shape, tuple | list) or len(rows_shape) >= MOST_AXES:
        raise expected("rows_shape", "a tuple (…, Q)", shown(rows_shape))
    rows = tuple(whole_number("rows_shape", size, 0) for size in rows_shape)
    width = whole_number("value_dim", value_dim, 0)
    numbers = math.prod(rows) * (width + 2)
    if numbers > MOST_NUMBERS:
        raise expected("rows_shape and value_dim", f"at most {MOST_NUMBERS} numbers", numbers)
    return rows, width


def zero_unused(argument: str, array: Array, used: ArrayLike | None) -> Array:
    """`array` with its unused slots set to zero; a used slot that is not finite is an error.

    A slot that no one sees may hold anything, but 0 · NaN is NaN: it must not enter a product.

    Shapes: array (…, S, D), used bool, broadcast to (…, S); None = every slot is used.
    """
    if np.isfinite(array).all():
        return array
    if used is not None:
        array = np.where(np.asarray(used)[..., None], array, np.zeros((), array.dtype))
    if not np.isfinite(array).all():
        raise expected(argument, "finite numbers in every used slot", "NaN or infinity")
    return array


def finite_inputs(q: Array, k: Array, v: Array, visible: Array | None) -> tuple[Array, ...]:
    """The three, zeroed where `visible` (…, Hq, Q, K) leaves a slot unseen; see `zero_unused`."""
    if all(np.isfinite(array).all() for array in (q, k, v)):
        return q, k, v
    rows = keys = None
    if visible is not None:
        rows, keys = visible.any(axis=-1), visible.any(axis=-2)  # (…, Hq, Q), (…, Hq, K)
        if k.ndim > 2:  # a key is used if any head of its group sees it
            group = q.shape[-3] // k.shape[-3]
            keys = keys.reshape(*k.shape[:-2], group, k.shape[-2]).any(axis=-2)  # (…, Hkv, K)
    return (
        zero_unused("query", q, rows),
        zero_unused("key_chunk", k, keys),
        zero_unused("value_chunk", v, keys),
    )


def stats_parts(argument: str, output: Array, total: Array, top: Array) -> None:
    """Raise unless the three parts can be a running state.

    A sum is a number of at least 0; a row that saw a key has a finite maximum and output. Rows that
    saw none (sum 0) may hold anything else. A narrower maximum or sum would shift every weight.
    """
    parts = {"output": output, "sum": total, "max": top}
    for name, part in parts.items():
        if not isinstance(part, np.ndarray):
            raise expected(f"{argument}.{name}", "an array", type(part).__name__)
        float_array(f"{argument}.{name}", part)
    shapes = (output.shape, total.shape, top.shape)
    if output.ndim < 1 or shapes[1:] != (output.shape[:-1],) * 2:
        raise expected(argument, "shapes (…, Q, Dv), (…, Q), (…, Q)", shapes)
    for name, part in parts.items():
        if part.dtype != accumulate_dtype(output.dtype):
            raise expected(f"{argument}.{name}", accumulate_dtype(output.dtype), part.dtype)
    if not (total >= 0).all() or np.isposinf(total).any():
        raise expected(f"{argument}.sum", "finite numbers of at least 0", "others")
    seen = total > 0
    for name, part in (("max", top[..., None]), ("output", output)):
        if not (np.isfinite(part).all() or np.isfinite(part[seen]).all()):  # the first is cheaper
            raise expected(
                f"{argument}.{name}", "finite numbers where the sum is above 0", "others"
            )
