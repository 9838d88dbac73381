"""The thread of a rank that begins its messages, one after the other, in the order given.

Owns the reason why a rank does not begin them itself. To begin a message locks the connection and,
on one machine, wakes the receiver's Gloo thread. A thread that has computed for a while loses its
core to the thread it wakes, lock in hand. If the same happens on the other side, both Gloo threads
spin for a lock until the scheduler steps in, milliseconds later. A thread that was asleep a moment
before keeps its core for long enough.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

# By process: a forked one has none of its parent's threads.
_couriers: dict[int, ThreadPoolExecutor] = {}


def submit(job: Callable[[], Result]) -> "Future[Result]":
    """Have a job done after those that were submitted before."""
    process = os.getpid()
    # Of two threads that come first at once, both get the one that is kept.
    courier = _couriers.get(process) or _couriers.setdefault(
        process, ThreadPoolExecutor(1, "courier")
    )
    return courier.submit(job)
