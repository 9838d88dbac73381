"""The thread of a rank that begins its messages, one after the other, in the order given.

Owns the reason why a rank does not begin them itself. Whoever begins a message holds the lock of
the connection and, on one machine, wakes the receiver's Gloo thread. A thread that has computed for
a while loses its core to the one it wakes. If that one needs a lock whose holder has lost its core
in the same way, both spin until the system's clock ticks, for milliseconds. A thread that has just
been woken keeps its core for longer than a message takes to begin.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

Result = TypeVar("Result")


def submit(job: Callable[[], Result]) -> "Future[Result]":
    """Have a job done after those that were submitted before."""
    return _courier(os.getpid()).submit(job)


@lru_cache(maxsize=1)
def _courier(process: int) -> ThreadPoolExecutor:
    """One per process: a forked one has none of its parent's threads."""
    return ThreadPoolExecutor(1, f"courier of process {process}")
