"""The thread that begins messages: its order, its errors, and how it ends."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import Any
from unittest.mock import patch

import pytest

from cpcore.distributed import courier
from tests.distributed.test_lab import ENVIRONMENT, ROOT

LIMIT_S = 20


def run(script: str) -> tuple[list[str], float]:
    """The lines that a process prints, and how long it lives after its main thread has ended."""
    head = "import threading, time\nfrom cpcore.distributed import courier\n"
    tail = "\nprint('main', time.time(), flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", head + script + tail],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    end = time.time()
    assert done.stderr == ""
    (ended,) = (line for line in done.stdout.splitlines() if line.startswith("main"))
    others = [line for line in done.stdout.splitlines() if line != ended]
    return others, end - float(ended.split()[1])


def test_jobs_are_done_in_the_order_in_which_they_were_given() -> None:
    done: list[int] = []
    jobs = [courier.submit(lambda i=i: done.append(i) or i * i) for i in range(100)]
    assert [job.result(LIMIT_S) for job in jobs] == [i * i for i in range(100)]
    assert done == list(range(100))


def test_threads_that_come_first_at_once_share_one_thread() -> None:
    fresh, start, found = courier.Courier(), threading.Barrier(8), []

    def come() -> None:
        start.wait(LIMIT_S)
        found.append(fresh.submit(threading.get_ident).result(LIMIT_S))

    def slowly(**settings: Any) -> threading.Thread:
        time.sleep(0.2)  # all eight would see that there is none yet
        return threading.Thread(**settings)

    threads = [threading.Thread(target=come) for _ in range(8)]
    with patch.object(courier, "Thread", slowly):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_an_error_belongs_to_its_job_and_the_next_one_is_done() -> None:
    def fail() -> None:
        raise SystemExit("not the end")

    failed, after = courier.submit(fail), courier.submit(lambda: 3)
    with pytest.raises(SystemExit, match="not the end"):
        failed.result(LIMIT_S)
    assert after.result(LIMIT_S) == 3


def test_what_a_job_held_is_free_when_it_is_done() -> None:
    class Room:
        gone = threading.Event()

        def __del__(self) -> None:
            self.gone.set()

    room = Room()
    job = courier.submit(lambda room=room: None)
    del room
    job.result(LIMIT_S)
    assert Room.gone.wait(LIMIT_S), "kept until another job comes"


def test_a_forked_process_has_a_courier_of_its_own() -> None:
    here = courier.submit(threading.get_ident).result(20)
    assert here != threading.get_ident()
    context = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)
    child = context.Process(target=lambda: writing.send(courier.submit(os.getpid).result(20)))
    child.start()
    try:
        assert reading.poll(30), "the child's courier does nothing"
        assert reading.recv() == child.pid
    finally:
        child.kill()
        child.join(20)


def test_jobs_are_done_after_the_main_thread_has_ended() -> None:
    told, _ = run(
        """
def train():
    threading.main_thread().join()
    print(courier.submit(lambda: "done").result(20), flush=True)
courier.submit(lambda: None).result(20)
threading.Thread(target=train).start()"""
    )
    assert told == ["done"]


def test_a_process_ends_what_it_has_begun() -> None:
    told, _ = run('courier.submit(lambda: (time.sleep(0.3), print("done", flush=True)))')
    assert told == ["done"]


def test_a_stuck_job_does_not_keep_a_process_alive() -> None:
    _, took = run("courier.submit(lambda: time.sleep(60))")
    assert took < 30


def test_jobs_that_are_too_many_for_the_end_do_not_abort_it() -> None:
    """Each is in C++ when the interpreter ends, if jobs go on."""
    told, _ = run(
        """
from datetime import timedelta
import torch.distributed as dist
store = dist.HashStore()
def job():
    try:
        store.wait(["nothing"], timedelta(milliseconds=10))
    except dist.DistError:
        pass
for _ in range(1500):
    courier.submit(job)"""
    )
    assert told == []


def test_a_thread_that_cannot_start_is_tried_again() -> None:
    fresh = courier.Courier()
    failing = patch.object(courier.Thread, "start", side_effect=RuntimeError("no more threads"))
    with failing, pytest.raises(RuntimeError, match="no more threads"):
        fresh.submit(lambda: 1)
    assert fresh.submit(lambda: 2).result(LIMIT_S) == 2


def test_a_job_that_is_given_up_is_not_done_and_the_next_one_is() -> None:
    fresh, hold, done = courier.Courier(), threading.Event(), []
    first = fresh.submit(lambda: hold.wait(LIMIT_S))
    second, third = (fresh.submit(lambda i=i: done.append(i)) for i in (2, 3))
    assert second.cancel()
    hold.set()
    assert first.result(LIMIT_S)
    third.result(LIMIT_S)
    assert done == [3]
