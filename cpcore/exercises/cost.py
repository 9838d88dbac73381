"""What an accepted answer costs: lines, temporary memory, and how often it reads its inputs.

Measured beside the model's solution, on the same arguments. A cost never fails an answer, except
where the exercise itself names a budget.
"""

from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from cpcore.exercises.calls import guarded, space_of
from cpcore.exercises.deadline import Space
from cpcore.exercises.exercise import Answer, Exercise
from cpcore.exercises.sources import given_functions, solution


class Cost(NamedTuple):
    """lines: of code that ran and was not given. temporary_bytes: the most held at once, with the
    result.

    reads: elements of the inputs that numpy read, over their number; None if it cannot be counted.
    What an answer copies with np.asarray or reads by plain indexing of single numbers escapes it.
    package: names of this package that the code uses.
    """

    lines: int
    temporary_bytes: int
    reads: float | None
    package: tuple[str, ...] = ()


class Counted(np.ndarray[Any, Any]):
    """An input that counts its elements each time a numpy function reads it; views count too."""

    count: list[int]

    def __array_finalize__(self, source: Any) -> None:
        """A view keeps counting on the same counter."""
        self.count = getattr(source, "count", [0])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Count, then compute with plain arrays."""
        plain = [self._read(x) for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(x) for x in kwargs["out"])
        if isinstance(kwargs.get("where"), Counted):
            kwargs["where"] = _plain(kwargs["where"])
        return getattr(ufunc, method)(*plain, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """As for a ufunc."""
        return func(*(self._read(x) for x in args), **{k: self._read(v) for k, v in kwargs.items()})

    def _read(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(self._read, value)) if _simple(value) else value
        if isinstance(value, Counted):
            value.count[0] += value.size
        return _plain(value)


def _simple(value: Any) -> bool:
    return type(value) in (tuple, list)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value


def _counted(value: Any, count: list[int]) -> Any:
    """The same arguments with every float array counted."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        made = value.view(Counted)
        made.count = count
        return made
    if isinstance(value, tuple | list):
        parts = [_counted(item, count) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _elements(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size if value.dtype.kind == "f" else 0
    return sum(map(_elements, value)) if isinstance(value, tuple | list) else 0


def line_count(codes: Iterable[CodeType]) -> int:
    """Lines of these functions that hold code: no docstring, comment or blank line."""
    lines = set()
    for code in codes:
        own = {line for _, _, line in code.co_lines() if line is not None}
        lines |= {(code.co_filename, line) for line in own - {code.co_firstlineno}}
    return len(lines)


def package_names(codes: Iterable[CodeType], space: Space | None) -> tuple[str, ...]:
    """Names in these functions that are modules, functions or classes of this package."""
    names = {name for code in codes for name in (*code.co_names, *code.co_freevars)}
    return tuple(sorted(name for name in names if _of_package(name, (space or {}).get(name))))


def _of_package(name: str, value: Any) -> bool:
    home = value.__name__ if isinstance(value, type(np)) else getattr(value, "__module__", None)
    return any(str(each).split(".")[0] == "cpcore" for each in (name, home))


def measured(exercise: Exercise, answer: Answer) -> Cost:
    """The cost of one answer on the exercise's large arguments, or on its first example."""
    make = exercise.large or exercise.examples[0].args
    space: Space | None = space_of(answer)
    args = make()
    outcome = guarded(lambda: exercise.play(answer, *args), space=space, measure=True)
    count = [0]
    counted = tuple(_counted(x, count) for x in make())
    again = guarded(lambda: exercise.play(answer, *counted), space=space)
    size = _elements(list(args))
    reads = None if again.error or not count[0] or not size else count[0] / size
    used = package_names(outcome.codes, space)
    given = given_functions(exercise.name)
    lines = line_count(code for code in outcome.codes if code.co_name not in given)
    return Cost(lines, outcome.peak_bytes, reads, used)


def of_model(exercise: Exercise) -> Cost:
    """The cost of the reference solution."""
    return measured(exercise, solution(exercise.name))
