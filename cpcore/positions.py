"""Rotary position embedding, by global position.

Owns the rotation and positions that restart with each document. Leaves out who may see whom: a
rank that counts from its own first token rotates by the wrong angle, whatever its mask says.
"""

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    Array,
    any_array,
    expected,
    float_array,
    index_array,
    real_number,
    shown,
)


def rotary(x: ArrayLike, positions: ArrayLike, *, base: float = 10000.0) -> Array:
    """`x` with the pair (i, i + D/2) of each row turned by position · base**(-2i/D).

    The product of two rotated rows depends on the difference of their positions only, so both
    must be counted from the same origin.

    Shapes: x (…, S, D), D even; positions (S,), integers of at least 0; result as x.
    Raises: ValueError for an odd width, positions that do not fit, a base that is not positive or
        too small, or finite numbers that do not fit their dtype when turned.
    Source: Su et al. 2021 (arXiv:2104.09864); the pairing of halves is that of GPT-NeoX.

    >>> rotary([[1.0, 0.0], [1.0, 0.0]], [0, 3]).round(2)
    array([[ 1.  ,  0.  ],
           [-0.99,  0.14]])
    """
    array = float_array("x", x)
    if array.ndim < 2 or array.shape[-1] % 2 or array.shape[-1] == 0:
        raise expected("x", "shape (…, S, D) with an even D", array.shape)
    number = real_number("base", base, "a finite number above 0")
    if number <= 0:
        raise expected("base", "a finite number above 0", shown(base))
    pos = index_array("positions", positions, length=array.shape[-2])
    half = array.shape[-1] // 2
    first, second = array[..., :half], array[..., half:]
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        frequency = number ** (-np.arange(half) / half)
        angle = pos[:, None] * frequency  # (S, D/2), float64: float32 would blur late positions
        if not np.isfinite(angle).all():
            raise expected("base", "a number whose angles are finite", shown(base))
        cos, sin = np.cos(angle), np.sin(angle)
        turned = np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=-1)
        turned = turned.astype(array.dtype)
    # A row that holds NaN or infinity, such as padding, may; a turn alone must not make any.
    if not (np.isfinite(turned) | ~np.isfinite(array).all(axis=-1, keepdims=True)).all():
        raise expected("x", f"numbers that fit {array.dtype} when turned", "an overflow")
    return turned


def document_positions(documents: ArrayLike) -> Array:
    """Each position's place within its run of equal document ids, counted from 0.

    Shapes: documents (S,), result (S,).
    Raises: ValueError unless documents is a 1-D integer array.
    """
    ids = any_array("documents", documents)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise expected("documents", "a 1-D integer array", f"{ids.dtype} of shape {ids.shape}")
    pos = np.arange(len(ids))
    first = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))  # where a run starts
    return pos - np.repeat(first, np.diff(first, append=len(ids)))
