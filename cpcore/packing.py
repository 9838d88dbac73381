"""Documents padded so that each can be cut evenly, without losing a real token.

Owns where the padding goes and how arrays get there and back. Padding has document id -1: it sees
nothing, is seen by none and has no label.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import (
    MOST_POSITIONS,
    Array,
    any_array,
    check_axis,
    document_bounds,
    expected,
    is_whole,
    shown,
    whole_number,
)


@dataclass(frozen=True, eq=False)
class Packed:
    """A padded pack: cu_seqlens of the padded documents, ids per slot, and the real slots.

    Shapes: cu_seqlens (documents + 1,), documents (S_padded,), real (S,).
    """

    cu_seqlens: Array
    documents: Array
    real: Array

    def pad(self, x: ArrayLike, axis: int = -2, fill: float = 0) -> Array:
        """`x` of S positions spread over the padded slots, `fill` between.

        Raises: ValueError unless x holds numbers or bools, one entry per real token along `axis`,
            or for a fill that is no number or that the array's dtype cannot hold: integers hold
            no fraction, and a finite number must not become infinite.
        """
        array = any_array("x", x)
        if array.dtype.kind not in "biuf":
            raise expected("x", "bools, integers or floating numbers", array.dtype)
        if not is_whole(fill) and not isinstance(fill, bool | float | np.bool_ | np.floating):
            raise expected("fill", "a number", shown(fill))
        check_axis("x", array, axis, len(self.real))
        if not _holds(array.dtype, fill):
            raise expected("fill", f"a value that {array.dtype} can hold", shown(fill))
        moved = np.moveaxis(array, axis, 0)
        padded = np.full((len(self.documents), *moved.shape[1:]), fill, array.dtype)
        padded[self.real] = moved
        return np.moveaxis(padded, 0, axis)

    def unpad(self, x: ArrayLike, axis: int = -2) -> Array:
        """The real positions of a padded array: undoes `pad`.

        Raises: ValueError unless x has one entry per padded slot along `axis`.
        """
        array = any_array("x", x)
        check_axis("x", array, axis, len(self.documents))
        return np.take(array, self.real.astype(np.intp), axis=axis)


def pad_packed(cu_seqlens: ArrayLike, multiple: int) -> Packed:
    """Every document padded at its end to a multiple of `multiple`.

    2R is the multiple for a zigzag over R ranks with chunks of one size. Lengths are rounded up:
    rounding down would drop real tokens, as in TransformerEngine#1930.

    Raises: ValueError unless cu_seqlens starts at 0 and never falls, and multiple is at least 1, or
        for more slots than a memory holds.

    >>> pad_packed([0, 3, 5], multiple=4).documents
    array([ 0,  0,  0, -1,  1,  1, -1, -1])
    """
    bounds = document_bounds("cu_seqlens", cu_seqlens)
    multiple = whole_number("multiple", multiple, 1, MOST_POSITIONS)
    lengths = np.diff(bounds)
    padded = -(-lengths // multiple) * multiple
    if padded.sum() > MOST_POSITIONS:
        raise expected("multiple", f"at most {MOST_POSITIONS} padded slots", padded.sum())
    stops = np.cumsum(padded)
    documents = np.full(int(padded.sum()), -1, np.int64)
    for number, (stop, size, length) in enumerate(zip(stops, padded, lengths, strict=True)):
        documents[stop - size : stop - size + length] = number
    return Packed(np.append(0, stops), documents, np.flatnonzero(documents != -1))


def _holds(dtype: np.dtype[Any], fill: float) -> bool:
    """Whether the dtype has this number: exactly if it is one of integers, else up to rounding."""
    with np.errstate(invalid="ignore", over="ignore"):  # NaN has no integer: that is what is asked
        try:
            held = np.asarray(fill).astype(dtype)
        except OverflowError:  # an integer beyond every dtype
            return False
    if dtype.kind == "f":
        infinite = isinstance(fill, float | np.floating) and bool(np.isinf(fill))
        return bool(np.isinf(held)) == infinite
    return bool(held == fill)
