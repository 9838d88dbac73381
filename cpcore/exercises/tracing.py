"""What a reader's code did, line by line: which line ran and what it changed.

Owns the printed trace of one call. It shows variables of the answer itself and of the functions
defined beside it, not of the libraries that they call.
"""

import dis
import linecache
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from cpcore.exercises.calls import guarded, space_of
from cpcore.exercises.deadline import Space
from cpcore.exercises.values import kind, same, short

MOST_STEPS = 40
NARROW = 60  # characters of a value
QUICK_S = 1.0  # the first steps of a call
SMALL = 1000  # elements of what is compared with its own past
YIELD = dis.opmap["YIELD_VALUE"]
EMPTY = re.compile(r"\bempty(_like)?\(")  # whose numbers are left over from others
UNSHOWN = (type(guarded), type(sys))  # functions and modules


class Step(NamedTuple):
    """One line of code that ran, and the variables that it set."""

    line: int
    code: str
    changes: str


def steps(play: Callable[[], Any], answer: Any) -> list[Step]:
    """The first steps of a call; it stops where the code stops, by an error too."""
    recorder = _Recorder(space_of(answer))

    def watched() -> Any:
        guard = sys.gettrace()
        recorder.below = guard
        sys.settrace(recorder.enter)
        try:
            return play()
        finally:
            sys.settrace(guard)

    guarded(watched, limit_s=QUICK_S)
    return recorder.found[:MOST_STEPS]


class _Recorder:
    """A trace function that notes lines and changed variables, under the guard's time limit."""

    def __init__(self, space: Space | None) -> None:
        self.space = space
        self.found: list[Step] = []
        self.waiting: dict[FrameType, tuple[int, dict[str, Any]]] = {}
        self.yielded: set[FrameType] = set()
        self.below: Any = None

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Follow frames of the reader; leave all others to the guard."""
        if frame.f_globals is not self.space or frame.f_code.co_name.startswith("<"):
            return self.below(frame, event, arg) if self.below else None
        self.below(frame, event, arg)
        if frame in self.yielded:  # what has arrived is noted in a line of its own
            self.yielded.remove(frame)
            self._wait(frame)
        return self.line

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Note what the line before this event has changed."""
        self.below(frame, event, arg)
        if event == "opcode" or len(self.found) >= MOST_STEPS:
            return self.line
        if frame in self.waiting:
            self._note(frame, *self.waiting.pop(frame))
        if event == "line":
            self._wait(frame)
        elif event == "return" and arg is not None:
            last = self.found[-1] if self.found else None
            if last is not None:
                told = f"{self._verb(frame)} {_clipped(arg)}"
                changes = f"{last.changes}; {told}" if last.changes else told
                self.found[-1] = last._replace(changes=changes)
        return self.line

    def _wait(self, frame: FrameType) -> None:
        before = {name: _kept(value) for name, value in frame.f_locals.items()}
        self.waiting[frame] = frame.f_lineno, before

    def _verb(self, frame: FrameType) -> str:
        if frame.f_code.co_code[frame.f_lasti] != YIELD:
            return "returns"
        self.yielded.add(frame)
        return "yields"

    def _note(self, frame: FrameType, number: int, before: dict[str, Any]) -> None:
        code = linecache.getline(frame.f_code.co_filename, number).strip()
        changes = []
        for name, value in frame.f_locals.items():
            if isinstance(value, UNSHOWN):
                continue
            if name not in before or not _unchanged(before[name], value):
                left_over = EMPTY.search(code) and isinstance(value, np.ndarray)
                told = kind(value) if left_over else _clipped(value)
                changes.append(f"{name} = {told}")
        if not changes and "yield" in code and self.found and self.found[-1].line == number:
            return  # nothing else has arrived
        self.found.append(Step(number, code, ", ".join(changes)))


def _kept(value: Any) -> Any:
    """What a later line may change in place, as it is now."""
    if isinstance(value, np.ndarray) and value.size <= SMALL:
        return value.copy()
    return list(value) if type(value) is list and len(value) <= SMALL else value


def _unchanged(before: Any, now: Any) -> bool:
    try:
        return before is now or same(before, now)
    except Exception:  # a reader's object may compare as it likes
        return False


def _clipped(value: Any) -> str:
    return _cut(short(value), NARROW)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def as_text(found: list[Step]) -> str:
    """The steps as lines of text: number, code, what changed."""
    width = min(50, max((len(step.code) for step in found), default=0))
    lines = [f"{s.line:4}  {_cut(s.code, width):{width}}  {s.changes}".rstrip() for s in found]
    return "\n".join([*lines, f"      (the first {MOST_STEPS} steps)"][: len(lines) + 1]
                     if len(lines) == MOST_STEPS else lines)  # fmt: skip
