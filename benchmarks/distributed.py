"""Time of the torch layer: against torch's own ring, and against one full call of the same kernel.

Run: python -m benchmarks.distributed [--pairs 61] [--length 1024 2048] [--ranks 2 4] [--steady]
Zigzag, causal, float32, forward and backward through autograd, one thread a rank, both with the
fused CPU kernel. Two contenders are measured in turn, each pair in the other order than the last,
so that a slow moment of the machine hits both; each ratio is the median over the pairs, with the
smallest and the largest. A ratio of processor time beside it stays readable on a busy machine,
where waiting costs wall time. A contender finds caches and pages as the other has left them; with
--steady, as an untimed call of its own has. Results are compared before anything is timed.

The second table needs no processes: the blocks of all ranks, computed one after the other, against
one call over the whole sequence. Each share of dk and dv is written or added as on the ring, where
the first that leaves a rank opens a message. Total is what the cut costs; the critical path is the
slowest rank, 1 / R at best.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor.experimental._context_parallel import _attention as peer

from cpcore import Visibility, zigzag
from cpcore.distributed import FLASH_CPU, GroupTransport, context_parallel_attention, launch
from cpcore.distributed.block_ops import choose
from cpcore.distributed.plan import plan
from cpcore.distributed.rank import Block, RankAttention, Setting
from cpcore.distributed.state import heads_together

HEADS, WIDTH, SCALE = 4, 64, 0.125
RING_TARGETS = {2: 1.0}
TOTAL_TARGET, CRITICAL_TARGET = 1.08, 0.28
Clocks = tuple[float, float]  # (wall, processor) in seconds
aten = torch.ops.aten


def numbers(seed: int, seq_len: int) -> list[Tensor]:
    """q, k, v and dout of the whole sequence."""
    rng = np.random.default_rng(seed)
    shape = 1, HEADS, seq_len, WIDTH
    return [torch.from_numpy(rng.standard_normal(shape, np.float32)) for _ in range(4)]


class RingOfTorch(torch.autograd.Function):
    """torch's ring with the CPU kernel, as a node of autograd like ours."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """The rank's rows of the output."""
        group: Any = dist.group.WORLD
        kernel = partial(aten._scaled_dot_product_flash_attention_for_cpu, scale=SCALE)
        out, lse, *_ = peer._templated_ring_attention(group, 2, kernel, q, k, v, is_causal=True)
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor, ...]:
        """The rank's dq, dk and dv."""
        group: Any = dist.group.WORLD
        q, k, v, out, lse = ctx.saved_tensors
        kernel = aten._scaled_dot_product_flash_attention_for_cpu_backward
        return peer._templated_ring_attention_backward(
            group, 2, kernel, grad_out=dout, grad_out_name="grad_out", query=q, key=k, value=v,
            out=out, logsumexp=lse, is_causal=True, dropout_p=0.0, scale=SCALE,
        )[:3]  # fmt: skip


def step(attend: Callable[..., Tensor], arrays: list[Tensor]) -> list[Tensor]:
    """(output, dq, dk, dv) of this rank."""
    q, k, v = (x.detach().requires_grad_() for x in arrays[:3])
    out = attend(q, k, v)
    return [out.detach(), *torch.autograd.grad(out, (q, k, v), arrays[3])]


def clocked(work: Callable[[], object], steady: bool) -> Clocks:
    """Wall and processor seconds of one call; all ranks begin together."""
    if steady:
        work()
    if dist.is_initialized():
        dist.barrier()
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def paired(
    one: Callable[[], object], other: Callable[[], object], pairs: int, steady: bool
) -> np.ndarray:
    """(pairs, 2 contenders, 2 clocks), in alternating order."""
    found = np.empty((pairs, 2, 2))
    for i in range(pairs):
        for which in (0, 1) if i % 2 == 0 else (1, 0):
            found[i, which] = clocked((one, other)[which], steady)
    return found


def one_rank(rank: int, cp_size: int, seq_len: int, pairs: int, steady: bool) -> np.ndarray:
    """The worker: both rings on this rank's shard."""
    peer.set_rotate_method("alltoall")
    layout, rule, transport = zigzag(seq_len, cp_size), Visibility(), GroupTransport()
    index = torch.from_numpy(layout.owned[rank].copy())
    arrays = [x[:, :, index].contiguous() for x in numbers(0, seq_len)]
    attend = partial(context_parallel_attention, layout=layout, visibility=rule, group=transport)
    ours, theirs = partial(step, attend, arrays), partial(step, RingOfTorch.apply, arrays)
    for a, b in zip(ours(), theirs(), strict=True):
        if float((a - b).abs().max()) > 1e-4:
            raise AssertionError(f"the results differ by {float((a - b).abs().max())}")
    paired(ours, theirs, 2, steady)  # caches, pages and connections are warm
    return paired(ours, theirs, pairs, steady)


def all_blocks(
    arrays: list[Tensor],
    cp_size: int,
    results: list[list[Tensor]],
    opened: list[list[Tensor]],
) -> list[Callable[[], None]]:
    """Forward and backward of each rank over blocks that are all there.

    results: output, dq, dk and dv of each rank; dk and dv are added to. opened: the share of each
    rank's dk and dv that begins a message.
    """
    layout, rule = zigzag(arrays[0].shape[2], cp_size), Visibility()
    ops = choose(FLASH_CPU, arrays[0], arrays[2], SCALE, False)
    setting = Setting(rule, SCALE, ops, None, np.arange(HEADS))
    shards = [[torch.from_numpy(x) for x in layout.shard(array.numpy())] for array in arrays]

    def run(rank: int) -> None:
        q, k, v, dout = shards
        turns = plan(layout, rule, "ring", rank).forward
        blocks = [Block(k[e.owner], v[e.owner], pos, pieces) for e, pos, pieces in turns]
        mine = RankAttention(q[rank], layout.owned[rank], WIDTH, setting)
        mine.start()
        for block in blocks:
            mine.attend(block)
        out, lse = mine.finish()
        mine.start_replay(dout[rank], out, lse)
        for (event, *_), block in zip(turns, blocks, strict=True):
            shares = mine.replay(block)
            for share, first, known in zip(shares, opened, results[2:], strict=True):
                if event.step == 1:
                    share.write_to(first[event.owner])
                else:
                    share.add_to(known[event.owner])
        results[0][rank], results[1][rank] = out, mine.dq.of_rows(q[rank])

    return [partial(run, rank) for rank in range(cp_size)]


def full_call(arrays: list[Tensor]) -> list[Tensor]:
    """(output, dq, dk, dv): forward and backward of one call over the whole sequence."""
    q, k, v, dout = arrays
    out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True, scale=SCALE)
    gradients = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        dout, q, k, v, out, lse, 0.0, True, scale=SCALE
    )
    return [out, *gradients]


def in_one_process(seq_len: int, cp_size: int, pairs: int, steady: bool) -> np.ndarray:
    """(pairs, 1 + R, 2 clocks): the full call, then each rank."""
    torch.set_num_threads(1)
    arrays, shard = numbers(1, seq_len), zigzag(seq_len, cp_size).shard
    # Gradients lie in messages as kernels write them.
    results = [
        [heads_together(torch.from_numpy(x)) for x in shard(np.zeros_like(a))] for a in arrays
    ]
    opened = [[torch.zeros_like(room) for room in rooms] for rooms in results[2:]]
    works: list[Callable[[], object]] = [
        partial(full_call, arrays),
        *all_blocks(arrays, cp_size, results, opened),
    ]
    wanted, *_ = [work() for work in works]
    for rooms, firsts in zip(results[2:], opened, strict=True):
        for room, first in zip(rooms, firsts, strict=True):
            room.add_(first)
    for whole, parts in zip(wanted, results, strict=True):
        got = zigzag(seq_len, cp_size).unshard([np.asarray(x) for x in parts])
        if np.abs(got - np.asarray(whole)).max() > 1e-4:
            raise AssertionError("the results differ")
    found = np.empty((pairs, 1 + cp_size, 2))
    for i in range(pairs):
        for which in range(1 + cp_size) if i % 2 == 0 else reversed(range(1 + cp_size)):
            found[i, which] = clocked(works[which], steady)
    return found


def row(name: str, ratios: np.ndarray, target: float | None) -> str:
    """Median, smallest and largest of wall ratios, and the median of processor ratios."""
    wall, processor = ratios[:, 0], ratios[:, 1]
    spread = f"{np.median(wall):>7.3f} {wall.min():>7.3f} {wall.max():>7.3f}"
    wanted = "" if target is None else f"{target:.2f}"
    return f"{name:>34} {spread} {np.median(processor):>10.3f} {wanted:>7}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=61)
    parser.add_argument("--length", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steady", action="store_true", help="each timed call follows its like")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':>34} {'median':>7} {'least':>7} {'most':>7} {'processor':>10} {'wanted':>7}")
    for cp_size in options.ranks:
        for seq_len in options.length:
            settings = cp_size, seq_len, options.pairs, options.steady
            told = launch(one_rank, cp_size, *settings, time_limit_s=600)
            times = np.max(told, axis=0)  # a step is done when its last rank is
            name = f"ours / torch's ring, R {cp_size}, S {seq_len}"
            print(row(name, times[:, 0] / times[:, 1], RING_TARGETS.get(cp_size)), flush=True)
    times = in_one_process(4096, 4, options.pairs, options.steady)
    full = times[:, :1].sum(axis=1)
    ranks = times[:, 1:]
    print(row("total of 4 ranks / one call, S 4096", ranks.sum(axis=1) / full, TOTAL_TARGET))
    print(row("critical path / one call", ranks.max(axis=1) / full, CRITICAL_TARGET))


if __name__ == "__main__":
    main()
