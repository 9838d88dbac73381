"""Start one process per rank, wait for them within a time limit, and leave nothing behind.

Owns starting, watching and ending. What a rank does is `child`; what it computes is the caller's.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from cpcore.checks import expected, whole_number
from cpcore.distributed import child, torchrun, where
from cpcore.distributed.child import Failure
from cpcore.distributed.transport import seconds

GRACE_S = 1.0  # after the first failure: time for the others to notice and say where they were
STARTS = ("fork", "spawn")


class RankError(RuntimeError):
    """A rank failed: which one, where, and what the others were doing.

    rank: the first that failed; of a run that took too long, one that had not ended. place: such
    as "forward step 2". others: what each other rank said or was doing, by rank.
    """

    def __init__(self, rank: int, place: str, told: str, others: dict[int, str]) -> None:
        self.rank, self.place, self.others = rank, place, others
        lines = [f"rank {rank}, {place}: {told}"]
        lines += [f"  rank {r}: {text}" for r, text in sorted(others.items())]
        super().__init__("\n".join(lines))


def launch(
    worker: Callable[..., Any],
    cp_size: int,
    *args: Any,
    time_limit_s: float = 60.0,
    start: str | None = None,
    backend: str = "gloo",
) -> list[Any]:
    """`worker(rank, *args)` of every rank, in `cp_size` processes that form one group.

    Processes are forked: 0.1 s instead of some seconds to import torch again, and `worker` may be
    defined anywhere. A fork loses the threads of OpenMP, so a rank's first act is to use one
    thread only. `start="spawn"` needs a worker that can be imported; it is the default where
    forking is unsafe: outside Linux, and once this process has used CUDA.

    Under torchrun its processes are the ranks: each calls `launch`, runs the worker itself and
    gets the results of all.

    Units: time_limit_s is for the whole run; one operation of the group may take half of it.
    Raises: ValueError for wrong arguments. RankError, with the traceback of the first rank that
        failed, if one raises, dies, or does not end in time; by then all processes have ended.
    """
    size, limit_s = whole_number("cp_size", cp_size, 1), seconds("time_limit_s", time_limit_s)
    if not callable(worker):
        raise expected("worker", "a function of (rank, *args)", repr(worker))
    if torchrun.present():
        return torchrun.run(worker, size, args, limit_s, backend)
    method = _start_method() if start is None else start
    if method not in STARTS:
        raise expected("start", f"one of {', '.join(STARTS)} or None", repr(start))
    if method == "fork":
        # Every first backward pass imports it, for seconds: once here, not once in each rank.
        importlib.import_module("torch.fx.experimental.symbolic_shapes")
    deadline = time.monotonic() + limit_s
    with _Team(size, worker, args, limit_s / 2, method, backend) as team:
        team.start()
        in_time = team.watch(deadline)
        return team.results(in_time, limit_s)


def _start_method() -> str:
    used_cuda = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return "fork" if sys.platform == "linux" and not used_cuda else "spawn"


class _Team:
    """The processes of one run, their folder, and the pipe whose end tells them of ours."""

    def __init__(
        self,
        size: int,
        worker: Callable[..., Any],
        args: tuple[Any, ...],
        wait_s: float,
        method: str,
        backend: str,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cpcore-"))
        self.places = [where.shared() for _ in range(size)]
        self.job = child.Job(worker, args, size, backend, self.folder, wait_s, self.places)
        self.context = multiprocessing.get_context(method)
        self.processes: list[BaseProcess] = []
        self.alive, self.parent_end = self.context.Pipe(duplex=False)
        self.fork = method == "fork"

    def __enter__(self) -> _Team:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End every process, then remove every file, whatever happened."""
        for process in self.processes:
            with contextlib.suppress(ValueError, OSError, AttributeError):
                process.kill()  # also ends a process that is stopped
        for process in self.processes:
            with contextlib.suppress(AssertionError):  # interrupted before it was started
                process.join()
                process.close()
        self.alive.close()
        self.parent_end.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start one process per rank."""
        ours = self.parent_end if self.fork else None
        for rank in range(self.job.cp_size):
            process = self.context.Process(  # type: ignore[attr-defined]
                target=child.run, args=(self.job, rank, self.alive, ours), name=f"cpcore-{rank}"
            )
            self.processes.append(process)
            try:
                process.start()
            except (AttributeError, TypeError, pickle.PicklingError) as error:
                wanted = "a worker and arguments that another process can import"
                raise expected("worker", wanted, error) from None

    def watch(self, deadline: float) -> bool:
        """Wait until all have ended, or one has failed and the others had time to notice."""
        running = {process.sentinel: process for process in self.processes}
        while running:
            ended = wait(list(running), max(0.0, deadline - time.monotonic()))
            if not ended:
                return False
            for sentinel in ended:
                process = running.pop(int(sentinel))  # type: ignore[arg-type]
                process.join()
                if process.exitcode:
                    deadline = min(deadline, time.monotonic() + GRACE_S)
        return True

    def results(self, in_time: bool, limit_s: float) -> list[Any]:
        """Every rank's result. Raises RankError if there is one that has none."""
        ranks = range(self.job.cp_size)
        codes = [process.exitcode for process in self.processes]
        files = [self.folder / f"result-{rank}" for rank in ranks]
        if in_time and not any(codes) and all(file.exists() for file in files):
            return [pickle.loads(file.read_bytes()) for file in files]
        places = [where.read(memory) for memory in self.places]
        failures = [self._failure(rank, code) for rank, code in enumerate(codes)]
        said = {f.rank: f"{f.place}: {f.message}" for f in failures if f is not None}
        said |= {r: f"{places[r]}: still running" for r in ranks if codes[r] is None}
        known = [failure for failure in failures if failure is not None]
        if not known:
            rank = codes.index(None)
            told = f"not done within time_limit_s = {limit_s:g}"
            known = [Failure(rank, places[rank], "TimeoutError", told, "", 0.0)]
        first = min(known, key=lambda failure: failure.time_s)
        told = f"{first.kind}: {first.message}\n{first.traceback}".rstrip()
        others = {rank: text for rank, text in said.items() if rank != first.rank}
        raise RankError(first.rank, first.place, told, others) from first.error

    def _failure(self, rank: int, code: int | None) -> Failure | None:
        """What the rank said before it failed, or what its end says."""
        if code is None or (code == 0 and (self.folder / f"result-{rank}").exists()):
            return None
        path = self.folder / f"error-{rank}"
        if path.exists():
            return Failure(*pickle.loads(path.read_bytes()))
        end = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit {code}, no result"
        return Failure(rank, where.read(self.places[rank]), "ended", end, "", -math.inf)
