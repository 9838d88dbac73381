"""Argument checks that the core modules share.

Owns: dtype, shape and finiteness checks, each raising one `ValueError` that names the argument,
what was expected and what was received. Leaves out: anything that knows about masks or ranks.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]
LARGEST = int(np.iinfo(np.int64).max)


def expected(argument: str, wanted: object, received: object) -> ValueError:
    """The one form of every error message in the package."""
    return ValueError(f"{argument}: expected {wanted}, received {received}")


def any_array(argument: str, value: ArrayLike) -> Array:
    """`value` as an array of any kind; nested lists of unequal lengths are refused."""
    try:
        return np.asarray(value)
    except (ValueError, OverflowError):
        raise expected(argument, "an array", "lists of unequal lengths") from None


def float_array(argument: str, value: ArrayLike) -> Array:
    """`value` as an array; integers and complex numbers are refused, never converted."""
    array = any_array(argument, value)
    if not np.issubdtype(array.dtype, np.floating):
        raise expected(argument, "float16, float32 or float64", array.dtype)
    return array


def accumulate_dtype(*dtypes: DTypeLike) -> np.dtype[Any]:
    """The dtype in which running state is kept: the widest given, at least float32."""
    return np.result_type(np.float32, *dtypes)


def truth(argument: str, value: object) -> bool:
    """`value` as a bool; anything else is refused, however true it looks."""
    if not isinstance(value, bool | np.bool_):
        raise expected(argument, "True or False", repr(value))
    return bool(value)


def whole_number(argument: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`; bool and float are refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise expected(argument, f"an integer of at least {least}", repr(value))
    if value > LARGEST:
        raise expected(argument, f"an integer of at most {LARGEST}", "a larger one")
    return int(value)


def index_array(argument: str, value: ArrayLike, *, length: int | None = None) -> Array:
    """`value` as a 1-D int64 array of non-negative positions, of `length` when given."""
    array = integers(argument, value)
    if length is not None and len(array) != length:
        raise expected(argument, f"{length} positions", len(array))
    if len(array) and array.min() < 0:
        raise expected(argument, "positions of at least 0", array.min())
    return array


def integers(argument: str, value: ArrayLike) -> Array:
    """`value` as a 1-D int64 array; what int64 cannot hold is refused, never wrapped around."""
    array = any_array(argument, value)
    if array.shape == (0,) and array.dtype == np.float64:
        array = array.astype(np.int64)  # an empty list arrives as float64
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise expected(argument, "a 1-D integer array", f"{array.dtype} of shape {array.shape}")
    if len(array) and int(array.max()) > LARGEST:
        raise expected(argument, f"integers of at most {LARGEST}", array.max())
    return array.astype(np.int64)


def floating_dtype(argument: str, dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype`, refused unless it is a floating dtype."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or not np.issubdtype(found, np.floating):
        raise expected(argument, "a floating dtype", repr(dtype) if found is None else found)
    return found


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


def score_scale(scale: float | None, width: int) -> float:
    """`scale`, or the default D**-0.5."""
    if scale is None:
        return float(width**-0.5)
    real = isinstance(scale, int | float | np.integer | np.floating)
    if not real or isinstance(scale, bool) or not np.isfinite(scale):
        raise expected("scale", "a finite number", repr(scale))
    return float(scale)


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

    A sum is a number of at least 0, and a row that saw a key has a finite maximum. Rows that saw
    none (sum 0) may hold anything else. A narrower maximum or sum would shift every weight.
    """
    parts = {"output": output, "sum": total, "max": top}
    for name, part in parts.items():
        float_array(f"{argument}.{name}", part)
    shapes = (output.shape, total.shape, top.shape)
    if output.ndim < 1 or shapes[1:] != (output.shape[:-1],) * 2:
        raise expected(argument, "shapes (…, Q, Dv), (…, Q), (…, Q)", shapes)
    for name, part in parts.items():
        if part.dtype != accumulate_dtype(output.dtype):
            raise expected(f"{argument}.{name}", accumulate_dtype(output.dtype), part.dtype)
    if not (total >= 0).all() or np.isposinf(total).any():
        raise expected(f"{argument}.sum", "finite numbers of at least 0", "others")
    if not np.isfinite(top[total > 0]).all():
        raise expected(f"{argument}.max", "finite numbers where the sum is above 0", "others")


def narrow(argument: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """`array` cast to a result's dtype; a finite number that does not fit is an error."""
    with np.errstate(under="ignore", over="ignore"):
        cast = array.astype(dtype, copy=False)
    if np.isinf(cast).any() and not np.isinf(array).any():
        raise expected(argument, f"results that fit {dtype}", "an overflow")
    return cast
