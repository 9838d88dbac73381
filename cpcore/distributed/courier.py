"""The thread of a rank that begins its messages, one after the other, in the order given.

Owns the reason why a rank does not begin them itself. Beginning a message locks the connection and,
on one machine, wakes the receiver's Gloo thread. A thread that has computed for a while loses its
core to the thread it wakes, lock in hand. If the same happens on the other side, both Gloo threads
spin for a lock until the scheduler steps in, milliseconds later. A thread that was asleep a moment
before keeps its core for long enough.
"""

import atexit
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

Job = tuple[Callable[[], Any], "Future[Any]"]
LAST_S = 1.0  # what the end of the process waits for jobs that were given before


class Courier:
    """A thread that starts with its first job.

    An executor of the standard library would refuse jobs after the main thread has ended, though
    others still train, and would keep a process alive whose job is stuck.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    def submit(self, job: Callable[[], Any]) -> "Future[Any]":
        """Have a job done after those that were submitted before."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._work, name="courier", daemon=True)
                self._thread.start()
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        return done

    def drain(self) -> None:
        """Let the thread end what it has begun: Python cannot stop it in the middle."""
        if self._thread is not None:
            with suppress(TimeoutError):
                self.submit(lambda: None).result(LAST_S)

    def _work(self) -> None:
        while True:
            job, done = self._jobs.get()
            try:
                done.set_result(job())
            except BaseException as error:
                done.set_exception(error)
            del job, done  # and the buffers they hold


_courier = Courier()


def submit(job: Callable[[], Any]) -> "Future[Any]":
    """Have a job done by the courier of this process."""
    return _courier.submit(job)


def _renew() -> None:
    """A forked process has none of its parent's threads."""
    global _courier
    _courier = Courier()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: _courier.drain())
