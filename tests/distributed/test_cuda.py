"""The same code on GPUs: ranks as threads of one GPU, and NCCL where there are two.

Not measured by this project: machines without a GPU skip these tests and say so.
"""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cpcore import Visibility, zigzag
from cpcore.distributed import FLASH_CUDA, MATH, context_parallel_attention, launch, run_threads
from cpcore.distributed.block_ops import choose
from cpcore.distributed.transport import Transport
from tests.support.rank_checks import RESULTS
from tests.support.relation import double_loop
from tests.support.tolerance import Answer, Problem, reference

pytestmark = pytest.mark.cuda
LAYOUT = zigzag(256, 2)


def problem() -> Problem:
    """Numbers that bfloat16 holds exactly, so that only computing rounds."""
    rng = np.random.default_rng(4)

    def numbers(heads: int) -> NDArray[np.float32]:
        return torch.from_numpy(rng.standard_normal((2, heads, 256, 64))).bfloat16().float().numpy()

    visible = double_loop(range(256), range(256), {})
    return Problem(numbers(4), numbers(2), numbers(2), visible, None, None, numbers(4))


def attend(group: Any, rank: int, dtype: torch.dtype) -> list[NDArray[np.float64]]:
    p, device = problem(), torch.device("cuda", torch.cuda.current_device())
    index = torch.from_numpy(LAYOUT.owned[rank].copy())
    shards = [torch.from_numpy(np.asarray(x))[:, :, index] for x in (p.q, p.k, p.v, p.dout)]
    q, k, v, dout = (x.to(device, dtype) for x in shards)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = context_parallel_attention(*leaves, layout=LAYOUT, visibility=Visibility(), group=group)
    out.backward(dout)
    results = [out.detach(), *(x.grad for x in leaves if x.grad is not None)]
    return [x.double().cpu().numpy() for x in results]


def by_thread(transport: Transport, dtype: torch.dtype) -> list[NDArray[np.float64]]:
    return attend(transport, transport.rank, dtype)


def by_process(rank: int, dtype: torch.dtype) -> list[NDArray[np.float64]]:
    return attend(None, rank, dtype)


def worst(ran: list[list[NDArray[np.float64]]]) -> dict[str, float]:
    """The largest error of each result over the size of its largest number."""
    answer: Answer = reference(problem())
    wanted = (answer.out, answer.dq, answer.dk, answer.dv)
    found = {}
    for name, ref, *parts in zip(RESULTS, wanted, *ran, strict=True):
        error = np.abs(LAYOUT.unshard(parts) - np.asarray(ref))
        found[name] = float(error.max() / np.abs(np.asarray(ref)).max())
    return found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_threads_on_one_gpu_agree_with_dense(dtype: torch.dtype) -> None:
    """Kernels round probabilities to 16 bits: a few of their units, against the largest result."""
    unit = torch.finfo(dtype).eps
    assert max(worst(run_threads(by_thread, 2, dtype, poison=True)).values()) < 16 * unit


def test_16_bit_arrays_on_a_gpu_take_the_fused_kernel() -> None:
    q = torch.zeros(1, 1, 4, 64, dtype=torch.bfloat16, device="cuda")
    ops = choose(None, q, q, 1.0, False)
    assert (ops["full"], ops["triangle"], ops["masked"]) == (FLASH_CUDA, FLASH_CUDA, MATH)
    assert choose(None, q.float(), q.float(), 1.0, False)["full"] is MATH


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="NCCL needs a GPU for each rank")
def test_processes_on_two_gpus_agree_with_dense() -> None:
    ran = launch(by_process, 2, torch.bfloat16, backend="nccl", start="spawn", time_limit_s=120)
    assert max(worst(ran).values()) < 16 * torch.finfo(torch.bfloat16).eps
