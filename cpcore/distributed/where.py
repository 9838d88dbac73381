"""Where a rank is: the phase and step it works on, so that every error can name it.

Owns one sentence per process, since a process is one rank. The launcher reads a copy of it in
shared memory: a rank that was killed, or that hangs, cannot say where it was.
"""

from __future__ import annotations

from multiprocessing import RawArray
from typing import Any

SIZE = 120  # bytes of a place that the launcher can read
START = "before its first step"

_here, _step = START, ""
_copy: Any = None


def shared() -> Any:
    """Memory in which the launcher reads a rank's place; made before the rank is started."""
    memory = RawArray("c", SIZE)
    memory.value = START.encode()
    return memory


def mirror(memory: Any) -> None:
    """From now on `memory`, made by `shared`, follows this rank."""
    global _copy  # one rank, one process, one place
    _copy = memory
    at(START)


def at(place: str) -> None:
    """Say where this rank is, such as "training step 3"."""
    global _here, _step
    _here, _step = place, ""
    _write()


def step(name: str) -> None:
    """Say which step this is of the place given last, such as "forward step 2"."""
    global _step
    _step = name
    _write()


def last_step() -> str:
    """The step given last."""
    return _step


def place() -> str:
    """Where this rank is: "training step 3, forward step 2"."""
    if not _step:
        return _here
    return _step if _here == START else f"{_here}, {_step}"


def _write() -> None:
    if _copy is not None:
        _copy.value = place().encode()[: SIZE - 1]


def read(memory: Any) -> str:
    """The place that a rank, alive or dead, last wrote."""
    return bytes(memory.value).decode(errors="replace")
