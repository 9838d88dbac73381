"""The argument checks of `dense`, its own: it shares none with the code that it checks."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def prepare(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, visible: ArrayLike | None, scale: Any
) -> tuple[Array, Array, Array, Array, float]:
    """Arrays in the accumulate dtype, key heads repeated, slots that no one sees set to zero."""
    q, k, v = floats("query", query), floats("key", key), floats("value", value)
    shapes = f"{q.shape}, {k.shape}, {v.shape}"
    group = q.shape[-3] // max(1, k.shape[-3]) if min(q.ndim, k.ndim) > 2 else 1
    if group > 1 and v.ndim > 2:
        k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)  # (…, Hq, K, ·)
    fits = q.ndim == k.ndim > 1 and q.shape[:-2] == k.shape[:-2] and q.shape[-1] == k.shape[-1]
    if not fits or q.shape[-1] == 0:
        raise ValueError(f"key: expected (…, K, D) to fit a query (…, Q, D), received {shapes}")
    if k.shape[:-1] != v.shape[:-1]:
        raise ValueError(f"value: expected (…, K, Dv) to fit key, received {shapes}")
    mask = _array("visible", True if visible is None else visible)
    if mask.dtype != np.bool_:
        raise ValueError(f"visible: expected bool, received {mask.dtype}")
    mask = _broadcast("visible", mask, (*q.shape[:-1], k.shape[-2]))
    dtype = np.result_type(np.float32, q, k, v)
    q = zero_unseen("query", q.astype(dtype), mask.any(axis=-1))
    k = zero_unseen("key", k.astype(dtype), mask.any(axis=-2))
    v = zero_unseen("value", v.astype(dtype), mask.any(axis=-2))
    return q, k, v, mask, _finite("scale", q.shape[-1] ** -0.5 if scale is None else scale)


def floats(name: str, value: ArrayLike) -> Array:
    """`value` as an array of floats."""
    array = _array(name, value)
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"{name}: expected float16, float32 or float64, received {array.dtype}")
    return array


def _array(name: str, value: ArrayLike) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name}: expected an array without a mask, received a masked one")
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name}: expected an array, received unequal lengths") from None


def _finite(name: str, number: Any) -> float:
    """`number` as a float, refused unless it is a finite one."""
    real, counts = np.nan, isinstance(number, int | float | np.integer | np.floating)
    if counts and not isinstance(number, bool | np.timedelta64):
        try:
            real = float(number)
        except OverflowError:
            raise ValueError(f"{name}: expected a finite number, received a huge one") from None
    if not np.isfinite(real):
        raise ValueError(f"{name}: expected a finite number, received {number!r:.80}")
    return real


def _broadcast(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        message = f"{name}: expected a shape that broadcasts to {shape}, received {array.shape}"
        raise ValueError(message) from None


def zero_unseen(name: str, array: Array, seen: Any) -> Array:
    """NaN in a slot that no one sees must not meet a 0 in a product: 0 · NaN is NaN."""
    array = np.where(seen[..., None], array, 0)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers in seen slots, received NaN or infinity")
    return array


def keep_factor(keep: ArrayLike | None, probs: Array) -> Array:
    """The dropout factor (…, Q, K), 1 everywhere without dropout."""
    factor: Array = np.asarray(1.0) if keep is None else floats("keep", keep)
    with np.errstate(under="ignore", over="ignore"):
        factor = factor.astype(probs.dtype)
    if not (np.isfinite(factor) & (factor >= 0)).all():
        raise ValueError("keep: expected finite factors of at least 0, received others")
    return _broadcast("keep", factor, probs.shape)
