"""One rank's process: joins the group, calls the worker, leaves a result or an error in a file.

Owns what happens between the start of the process and its end. Leaves out the other processes:
`launch` watches them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch
import torch.distributed as dist

from cpcore.checks import expected
from cpcore.distributed import where


class Job(NamedTuple):
    """What all ranks are told."""

    worker: Callable[..., Any]
    args: tuple[Any, ...]
    cp_size: int
    backend: str
    folder: Path
    wait_s: float  # the longest that one operation of the group may take
    places: list[Any]


class Failure(NamedTuple):
    """How a rank failed, and when on the clock that all processes share."""

    rank: int
    place: str
    kind: str
    message: str
    traceback: str
    time_s: float
    error: BaseException | None = None


def run(job: Job, rank: int, alive: Connection, parent_end: Connection | None) -> None:
    """The whole life of one rank's process. `alive` ends when the parent does."""
    # First of all: the threads of OpenMP do not survive a fork, and a child that waits for them
    # hangs. It also gives every rank one thread, so that ranks do not fight for cores.
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends us
    if parent_end is not None:
        parent_end.close()  # inherited by fork: while we hold it, no one sees the parent's end
    threading.Thread(target=_end_with_parent, args=(alive, job.folder), daemon=True).start()
    _use_plain_output()
    where.mirror(job.places[rank])
    try:
        join(job, rank)
        result = job.worker(rank, *job.args)
        _write(job.folder / f"result-{rank}", result)
        dist.destroy_process_group()
    except BaseException as error:
        _fail(job.folder, rank, error)


def join(job: Job, rank: int) -> None:
    """Enter the group of all ranks, by a file in the job's own folder: no port to collide on."""
    where.at("joining the group")
    if job.backend == "gloo":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _loopback())
    else:
        if not torch.cuda.device_count():
            raise expected("backend", "gloo where there is no GPU", repr(job.backend))
        torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group(
        job.backend,
        init_method=f"file://{job.folder / 'rendezvous'}",
        rank=rank,
        world_size=job.cp_size,
        timeout=timedelta(seconds=job.wait_s),
    )
    if job.backend == "gloo":
        # A rank is connected before the others are: if it ended now, their connecting would fail.
        dist.barrier()
    where.at(where.START)


def _loopback() -> str:
    """The interface on which ranks of one machine meet; no other machine can reach them there."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), names[0])


def _use_plain_output() -> None:
    """Print to the process's own streams: a notebook's belong to threads the fork left behind."""
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _end_with_parent(alive: Connection, folder: Path) -> None:
    """End this process, and take the folder along, once the parent is gone however it went."""
    with contextlib.suppress(EOFError, OSError):
        alive.recv_bytes()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _fail(folder: Path, rank: int, error: BaseException) -> NoReturn:
    """Leave the error for the parent, and end without waiting for any peer."""
    told = "".join(traceback.format_exception(error))
    place, kind = where.place(), type(error).__name__
    message = getattr(error, "told", str(error)) or "no message"  # the place stands before it
    failure = Failure(rank, place, kind, message, told, time.monotonic())
    with contextlib.suppress(OSError):
        _write(folder / f"error-{rank}", failure._replace(error=_portable(error)))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _portable(error: BaseException) -> BaseException | None:
    """The error if it survives the way to another process, else None."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        return None
    return again if isinstance(again, type(error)) else None


def _write(path: Path, thing: Any) -> None:
    """Whole or not at all: a rank may be killed while it writes."""
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(thing))
    part.replace(path)
