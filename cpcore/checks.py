"""Argument checks that the core modules share.

Owns: dtype, shape and finiteness checks, each raising one `ValueError` that names the argument,
what was expected and what was received. Leaves out: anything that knows about masks or ranks.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]
LARGEST = int(np.iinfo(np.int64).max)
# A layout holds every position of every rank, 8 bytes each, and a schedule visits every pair of
# ranks. Numbers beyond these can only be a mistake, and would fill the memory instead of an error.
MOST_POSITIONS, MOST_RANKS = 2**28, 2**16
MOST_CHARACTERS = 500  # of what was received, in an error


def expected(argument: str, wanted: object, received: object) -> ValueError:
    """The one form of every error message in the package."""
    return ValueError(f"{argument}: expected {wanted}, received {_written(str, received)}")


def shown(value: object) -> str:
    """`repr(value)`, short, for an error: it never fails and never fills the screen."""
    return _written(repr, value)


def any_array(argument: str, value: ArrayLike) -> Array:
    """`value` as an array of any kind; lists of unequal lengths and masked arrays are refused."""
    if isinstance(value, np.ma.MaskedArray):  # whose hidden entries would count as numbers
        raise expected(argument, "an array without a mask", "a masked one")
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
        raise expected(argument, "True or False", shown(value))
    return bool(value)


def is_whole(value: object) -> bool:
    """Whether `value` is an integer of Python or numpy; a bool or a duration is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def whole_number(argument: str, value: Any, least: int, most: int = LARGEST) -> int:
    """`value` as an int from `least` to `most`; bool and float are refused."""
    if not is_whole(value) or value < least:
        raise expected(argument, f"an integer of at least {least}", shown(value))
    if value > most:
        raise expected(argument, f"an integer of at most {most}", "a larger one")
    return int(value)


def real_number(argument: str, value: Any, wanted: str = "a finite number") -> float:
    """`value` as a float; bool, NaN, infinity and what no float can hold are refused."""
    number = math.nan
    if is_whole(value) or isinstance(value, float | np.floating):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise expected(argument, wanted, shown(value))
    return number


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


def document_bounds(argument: str, value: ArrayLike) -> Array:
    """`value` as int64 ends of packed documents: 0 first, and never falling."""
    bounds = index_array(argument, value)
    if len(bounds) == 0 or bounds[0] != 0 or (np.diff(bounds) < 0).any():
        raise expected(argument, "0 followed by rising ends", bounds.tolist())
    whole_number(f"{argument}[-1]", bounds[-1], 0, MOST_POSITIONS)
    return bounds


def check_axis(argument: str, array: Array, axis: int, length: int) -> None:
    """Raise unless the array has `length` positions along `axis`."""
    if not is_whole(axis):
        raise expected("axis", "an integer", shown(axis))
    if not -array.ndim <= axis < array.ndim or array.shape[axis] != length:
        wanted = f"{length} positions along axis {shown(int(axis))}"
        raise expected(argument, wanted, f"shape {array.shape}")


def floating_dtype(argument: str, dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype`, refused unless it is a floating dtype."""
    try:  # a number has a dtype, and is none
        found = None if dtype is None or isinstance(dtype, np.generic) else np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found is None or not np.issubdtype(found, np.floating):
        raise expected(argument, "a floating dtype", shown(dtype) if found is None else found)
    return found


def narrow(argument: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """`array` cast to a result's dtype; what is not finite there is an overflow."""
    with np.errstate(under="ignore", over="ignore"):
        cast = array.astype(dtype, copy=False)
    if not np.isfinite(cast).all():
        raise expected(argument, f"results that fit {dtype}", "an overflow")
    return cast


def _written(text_of: Callable[[object], str], value: object) -> str:
    try:
        text = text_of(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return f"{type(value).__name__} too long to write"
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"
