"""Ranks that torchrun has already started: this process is one of them.

Owns joining that group and bringing the results together. torchrun ends the processes.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from cpcore.checks import expected
from cpcore.distributed import where

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def present() -> bool:
    """Is this process one rank of a group that someone else started?"""
    return dist.is_initialized() or all(name in os.environ for name in VARIABLES)


def world_size() -> int:
    """How many ranks there are."""
    return dist.get_world_size() if dist.is_initialized() else int(os.environ["WORLD_SIZE"])


def rank() -> int:
    """Which of them this process is."""
    return dist.get_rank() if dist.is_initialized() else int(os.environ["RANK"])


def run(
    worker: Callable[..., Any], cp_size: int, args: tuple[Any, ...], limit_s: float, backend: str
) -> list[Any]:
    """The results of all ranks, on every rank.

    The group stays for the next call and is left when the process ends. An error is raised as it
    is, after its rank and step were noted on it: torchrun prints it and ends the others.
    """
    if cp_size != world_size():
        raise expected("cp_size", f"{world_size()}, the processes that were started", cp_size)
    if not dist.is_initialized():
        _join(limit_s, backend)
    try:
        mine = worker(rank(), *args)
        results: list[Any] = [None] * cp_size
        dist.all_gather_object(results, mine)
    except Exception as error:
        error.add_note(f"rank {rank()}, {where.place()}")
        raise
    return results


def _join(limit_s: float, backend: str) -> None:
    torch.set_num_threads(1)
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(backend, timeout=timedelta(seconds=limit_s / 2))
    atexit.register(_leave)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
