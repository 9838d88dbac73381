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
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

Job = tuple[Callable[[], Any], "Future[Any]"]
LAST_S = 2.0  # what the end of the process waits for all jobs, and then for the one under way


class Courier:
    """A thread that starts with its first job.

    An executor of the standard library would refuse jobs after the main thread has ended, though
    others still train, and would keep a process alive whose job is stuck.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._closed = False

    def submit(self, job: Callable[[], Any]) -> "Future[Any]":
        """Have a job done after those that were submitted before."""
        with self._lock:
            if self._thread is None:
                thread = Thread(target=self._work, name="courier", daemon=True)
                thread.start()
                self._thread = thread
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        return done

    def drain(self) -> None:
        """At the end of the process: do the jobs that there are, if they do not take too long.

        Python ends a thread that comes back from C++ later, which ends the process by an abort. So
        no job begins after that time. A job that is stuck even then is the risk that is left.
        """
        if self._thread is not None:
            try:
                self.submit(lambda: None).result(LAST_S)
            except TimeoutError:
                self._closed = True
                self._thread.join(LAST_S)

    def _work(self) -> None:
        while not self._closed:
            job, done = self._jobs.get()
            if not done.set_running_or_notify_cancel():
                continue
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
