"""One guarded call of a reader's code: nothing that it does may break the judge.

Owns what is printed, errors in words, changed flags and memory. Leaves out the time limit
(`deadline`).
"""

import contextlib
import functools
import inspect
import io
import linecache
import math
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from cpcore.exercises.deadline import Alarm, OutOfTimeError, Space, apart, watcher

LIMIT_S = 5.0
PRINTED = 2000  # characters of a reader's prints that are kept
SAID = 160  # characters of an error's own text

SHARED = (np, math)


class ComplaintError(Exception):
    """What an exercise's own player says of an answer, in words that stand for themselves."""


@dataclass
class Outcome:
    """What a call did. error: in words, "" if it returned. flags: floating-point errors met."""

    value: Any = None
    error: str = ""
    printed: str = ""
    flags: set[str] = field(default_factory=set)
    codes: set[CodeType] = field(default_factory=set)
    peak_bytes: int = 0


class Printed(io.TextIOBase):
    """Keeps the start of what is printed; an endless loop must not fill the memory."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        """True, as for every stream that takes text."""
        return True

    def write(self, text: str) -> int:
        """Keep the text while there is room."""
        self.text += text[: PRINTED - len(self.text)]
        return len(text)


def guarded(
    play: Callable[[], Any],
    *,
    limit_s: float | None = None,
    space: Space | None = None,
    measure: bool = False,
) -> Outcome:
    """What `play` returns, prints and breaks.

    space: the globals of the reader's code; its functions that run are collected in `codes`, and
    error messages point into them. measure: also find the most memory held at once.
    """
    out, printed, old = Outcome(), Printed(), sys.gettrace()
    limit_s = LIMIT_S if limit_s is None else limit_s
    deadline = time.monotonic() + limit_s
    watch = watcher(deadline, space, out.codes)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_unchanged())
        stack.enter_context(contextlib.redirect_stdout(printed))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        note: Any = lambda error, _: out.flags.add(error + _place(sys._getframe(1), space))  # noqa: E731
        flags: dict[str, Any] = dict.fromkeys(("divide", "invalid"), "call")
        stack.enter_context(np.errstate(call=note, over="ignore", under="ignore", **flags))
        try:
            with _peak(out, measure), Alarm(1.5 * limit_s):
                sys.settrace(watch)
                try:
                    out.value, error = next(apart(play))
                finally:
                    sys.settrace(old)
                if error is not None:
                    raise error
                if time.monotonic() > deadline:  # inside one call of a library, or untraced
                    raise OutOfTimeError
        except OutOfTimeError:
            out.error = f"it ran longer than {limit_s:g} seconds and was stopped: an endless loop?"
        except KeyboardInterrupt:  # the reader's own way to stop everything
            raise
        except BaseException as error:
            out.error = explain(error, space)
    out.printed = printed.text
    return out


@contextlib.contextmanager
def _unchanged() -> Any:
    """Put back what an answer assigned in numpy or math, and the depth of recursion."""
    deep, kept = sys.getrecursionlimit(), [(vars(module), dict(vars(module))) for module in SHARED]
    try:
        yield
    finally:
        sys.setrecursionlimit(deep)
        for now, before in kept:
            now.update(before)


@contextlib.contextmanager
def _peak(out: Outcome, measure: bool) -> Any:
    """Fill `peak_bytes`: what was allocated at most, beyond what was there before."""
    if not measure:
        yield
        return
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        yield
        out.peak_bytes = max(0, tracemalloc.get_traced_memory()[1] - before)
    finally:
        if started:
            tracemalloc.stop()


def space_of(answer: Any) -> Space | None:
    """The globals in which an answer was defined, None if it is not written in Python."""
    while isinstance(answer, functools.partial):
        answer = answer.func
    inner = inspect.unwrap(answer)
    for each in (inner, getattr(inner, "__func__", None), vars(type(inner)).get("__call__")):
        space: Space | None = getattr(each, "__globals__", None)
        if space is not None:
            return space
    return None


def explain(error: BaseException, space: Space | None) -> str:
    """An error in one line, with the last line of the reader's code that it passed."""
    if isinstance(error, NotImplementedError):
        return "it is not written yet (NotImplementedError)"
    if isinstance(error, SystemExit):
        return "it called exit"
    if isinstance(error, ComplaintError):
        return str(error)
    try:
        text = str(error).strip().split("\n")[0][:SAID]
    except Exception:  # a reader's own error may fail to print
        text = ""
    said = f"it raised {type(error).__name__}" + (f": {text}" if text else "")
    place = _last_line(error.__traceback__, space)
    return f"{said} (line {place[0]}: {place[1]})" if place else said


def _place(frame: Any, space: Space | None) -> str:
    """The line of the reader's code that has called, "" if there is none."""
    while frame is not None and frame.f_globals is not space:
        frame = frame.f_back
    if frame is None or space is None:
        return ""
    code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return f" in line {frame.f_lineno}: {code}"


def _last_line(trace: TracebackType | None, space: Space | None) -> tuple[int, str] | None:
    found = None
    while trace is not None:
        if trace.tb_frame.f_globals is space:
            name = trace.tb_frame.f_code.co_filename
            found = trace.tb_lineno, linecache.getline(name, trace.tb_lineno).strip()
        trace = trace.tb_next
    return found
