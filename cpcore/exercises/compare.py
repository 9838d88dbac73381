"""The first difference between a result and the expected one, in words.

Owns types, shapes, dtypes and tolerance, and the general meaning of a difference. Leaves out the
known mistakes of an exercise, which `judging` looks up.
"""

from typing import Any, NamedTuple

import numpy as np

from cpcore.exercises.values import kind, number, short

# Exercises hold few and moderate numbers: rounding stays far below these, a mistake far above.
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 2e-2}


class Difference(NamedTuple):
    """Where, the two values there, and what it means if that can be told from the numbers."""

    where: str
    yours: str
    expected: str
    meaning: str = ""

    def __str__(self) -> str:
        return f"{self.where}: yours {self.yours}, expected {self.expected}"


def difference(
    got: Any,
    want: Any,
    tolerance: float | None = None,
    parts: tuple[str, ...] = (),
    where: str = "result",
) -> Difference | None:
    """The first difference, None if there is none."""
    if isinstance(want, tuple | list):
        return _sequences(got, want, tolerance, parts, where)
    if isinstance(want, np.ndarray):
        return _arrays(got, want, tolerance, where)
    if isinstance(want, float | np.floating):
        if not isinstance(got, int | float | np.number) and not _scalar(got):
            return Difference(where, kind(got), "a number")
        return _elements(np.asarray(got), np.asarray(want), tolerance, where)
    types: tuple[type, ...] = {bool: (bool, np.bool_), int: (int, np.integer)}.get(
        type(want), (type(want),)
    )
    wrong_type = not isinstance(got, types) or (isinstance(got, bool) and type(want) is int)
    if wrong_type:
        return Difference(where, _typed(got), kind(want))
    return None if got == want else Difference(where, short(got), short(want))


def _typed(got: Any) -> str:
    """A value beside its type, where it is short."""
    plain = isinstance(got, bool | int | float | str)
    return f"{short(got)}, {kind(got)}" if plain else kind(got)


def _scalar(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf"


def _sequences(
    got: Any, want: Any, tolerance: float | None, parts: tuple[str, ...], where: str
) -> Difference | None:
    names = parts or getattr(want, "_fields", ()) or [f"{where}[{i}]" for i in range(len(want))]
    if not isinstance(got, tuple | list):
        listed = f" ({', '.join(names)})" if parts else ""
        return Difference(where, kind(got), f"a {_plain(want)} of {len(want)}{listed}")
    if len(got) != len(want):
        return Difference(where, f"{len(got)} elements", f"{len(want)}")
    for name, mine, right in zip(names, got, want, strict=True):
        found = difference(mine, right, tolerance, (), name)
        if found is not None:
            return found
    return None


def _plain(want: Any) -> str:
    return "list" if isinstance(want, list) else "tuple"


def _arrays(
    got: Any, want: np.ndarray[Any, Any], tolerance: float | None, where: str
) -> Difference | None:
    if want.ndim == 0 and isinstance(got, int | float | np.number):
        got = np.asarray(got, want.dtype)
    if type(got) is not np.ndarray:  # a masked array would hide its elements from the comparison
        plain = "a plain" if isinstance(got, np.ndarray) else "an"
        return Difference(where, kind(got), f"{plain} array of shape {want.shape}")
    if got.shape != want.shape:
        return Difference(where, f"shape {got.shape}", f"shape {want.shape}")
    same_kind = got.dtype.kind in {"f": "f", "b": "b"}.get(want.dtype.kind, "iu")
    if not same_kind or (want.dtype.kind == "f" and got.dtype != want.dtype):
        wanted = str(want.dtype) if want.dtype.kind in "fb" else "integers"
        return Difference(where, f"dtype {got.dtype}", wanted)
    return _elements(got, want, tolerance, where)


def _elements(
    got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], tolerance: float | None, where: str
) -> Difference | None:
    if tolerance is None:
        tolerance = TOLERANCE.get(want.dtype.name, 0.0)
    mine, right = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(mine) & np.isfinite(right)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(np.where(finite, mine, 0) - np.where(finite, right, 0))
        wrong = np.where(finite, gap > tolerance * (1 + np.abs(right)), mine != right)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"{where}[{', '.join(map(str, at))}]" if at else where
    yours, expected = _one(got[at]), _one(want[at])
    if yours == expected:
        yours, expected = repr(got[at].item()), repr(want[at].item())
    return Difference(place, yours, expected, _meaning(mine, right, wrong))


def _one(value: Any) -> str:
    return number(float(value)) if value.dtype.kind == "f" else str(value.item())


def _meaning(
    got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any]
) -> str:
    """What the numbers alone tell."""
    if np.isnan(got).any():
        return "NaN comes from −inf − (−inf), 0/0 or 0·NaN, and never leaves a state again."
    if np.isinf(got[wrong]).any():
        return "An infinity: an exponential overflowed, or a number was divided by 0."
    mine, right = got[wrong], want[wrong]
    if (mine == 0).all():
        return "Zeros where there should be numbers: a contribution is missing."
    if np.isfinite(right).all() and (right != 0).all():
        ratio = mine / right
        if mine.size > 1 and np.ptp(ratio) < 1e-6 * np.abs(ratio).max():
            return f"Every wrong element is off by one factor, {number(float(ratio[0]))}."
        if np.abs(ratio - 1).max() < 5e-3:
            return "Nearly right: somewhere a number is rounded to fewer bits."
    if not wrong.all():
        return f"{int(wrong.sum())} of {wrong.size} elements differ, the others are right."
    return ""
