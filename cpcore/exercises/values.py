"""Values as short text, their size, and whether two are the same.

Owns what an argument or a result looks like in a message. Leaves out tolerance (`compare`).
"""

from typing import Any

import numpy as np

LONGEST = 24  # elements of an array that are written out
WIDEST = 160  # characters of anything else


def number(value: float) -> str:
    """A number as messages show it: four significant digits."""
    return np.format_float_positional(value, 4, unique=True, fractional=False, trim="-") if (
        np.isfinite(value) and (value == 0 or 1e-4 <= abs(value) < 1e6)
    ) else f"{value:.4g}"  # fmt: skip


def short(value: Any, parts: tuple[str, ...] = ()) -> str:
    """A value in one line; `parts` names the elements of a tuple."""
    names = parts or getattr(value, "_fields", ())
    if isinstance(value, tuple) and names and len(names) == len(value):
        return ", ".join(f"{n} {short(v)}" for n, v in zip(names, value, strict=True))
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, tuple | list) and len(value) <= LONGEST:
        inner = ", ".join(_inner(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, float | np.floating) and not isinstance(value, bool):
        return number(float(value))
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)  # its repr would hold an address
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _inner(item: Any) -> str:
    """An element of a list; one with named parts stands in brackets."""
    return f"({short(item)})" if hasattr(item, "_fields") else short(item)


def _array(array: np.ndarray[Any, Any]) -> str:
    if array.size > LONGEST or array.dtype.kind not in "biuf":
        return f"an array of shape {array.shape}, {array.dtype}"
    if array.ndim == 0:
        return short(array.item())
    text = _rows(array)
    return text if array.size else f"{text} of shape {array.shape}"


def _rows(array: np.ndarray[Any, Any]) -> str:
    if array.ndim > 1:
        return "[" + ", ".join(_rows(row) for row in array) + "]"
    if array.dtype.kind == "f":
        return "[" + ", ".join(number(float(x)) for x in array) + "]"
    return "[" + ", ".join(str(x) for x in array.tolist()) + "]"


def kind(value: Any) -> str:
    """The type of a value in words, with the shape of an array."""
    if isinstance(value, np.ndarray):
        name = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
        return f"{name} of shape {value.shape}, {value.dtype}"
    if value is None:
        return "None"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def size(value: Any) -> int:
    """How much there is to read: elements of arrays, and numbers by their magnitude."""
    if isinstance(value, np.ndarray):
        return int(value.size) + value.ndim
    if isinstance(value, tuple | list):
        return 1 + sum(size(item) for item in value)
    if isinstance(value, int | float) and np.isfinite(value):
        return 1 + min(50, int(abs(value)))
    return 1


def same(one: Any, other: Any) -> bool:
    """Equal in type, shape, dtype and every bit that counts; NaN equals NaN."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        alike = type(one) is type(other) and len(one) == len(other)
        return alike and all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)
