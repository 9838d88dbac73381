"""Time and temporary memory of `simulate`, as ratios to a tuned full-matrix attention.

Run: OPENBLAS_NUM_THREADS=1 python -m benchmarks.simulate [--length 8192] [--ranks 8] [--repeats 5]
Zigzag, causal, float32, forward only: all ranks in turn on one machine, so this says what the
events cost, not how fast a cluster is. The two are run in turn, so that a slow moment of the
machine hits both; each ratio is the median over the pairs. Results are compared before anything is
timed. Memory is the peak of traced allocations, without the arrays that are returned.
`ring_attention` with chunks of 512 keys is measured beside them, and the planning of a million
tokens on 256 ranks.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tuned_dense import tuned_dense
from cpcore import Run, Visibility, ring_attention, schedule, simulate, zigzag

Array = NDArray[Any]
HEADS, WIDTH, CHUNK = 8, 64, 512
TARGETS = {"simulate": (0.7, 1 / 4), "ring_attention": (None, 1 / 12)}  # (time, memory) to dense


def returned(result: Run | Array) -> list[Array]:
    """The arrays that a call hands to its caller, which are not temporary."""
    if isinstance(result, np.ndarray):
        return [result]
    ranks = [array for rank in result.per_rank for array in (rank.output, rank.lse)]
    return [result.output, result.lse, *ranks]


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def temporary_bytes(work: Callable[[], Run | Array]) -> int:
    """Most bytes held at one time during the call, its result not counted."""
    tracemalloc.start()
    result = work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - sum(array.nbytes for array in returned(result))


def contenders(seq_len: int, cp_size: int) -> dict[str, Callable[[], Run | Array]]:
    """The three on the same inputs, checked to agree."""
    rng = np.random.default_rng(seq_len)
    q, k, v = (rng.standard_normal((HEADS, seq_len, WIDTH)).astype("f4") for _ in range(3))
    keys, values = (np.split(x, range(CHUNK, seq_len, CHUNK), axis=-2) for x in (k, v))
    calls: dict[str, Callable[[], Run | Array]] = {
        "dense": partial(tuned_dense, q, k, v, causal=True),
        "simulate": partial(simulate, q, k, v, zigzag(seq_len, cp_size), Visibility()),
        "ring_attention": partial(ring_attention, q, keys, values, visibility=Visibility()),
    }
    wanted, *others = (returned(call())[0] for call in calls.values())
    gap = max(float(np.abs(wanted - other).max()) for other in others)
    if gap > 1e-5:
        raise AssertionError(f"the results differ by {gap}")
    return calls


def compare(seq_len: int, cp_size: int, repeats: int) -> None:
    """Print one row per contender, with its ratios to dense."""
    calls = contenders(seq_len, cp_size)
    times = {name: np.empty(repeats) for name in calls}
    for i in range(repeats):
        for name, call in calls.items():
            times[name][i] = seconds(call)
    held = {name: temporary_bytes(call) for name, call in calls.items()}
    print(
        f"{'':>14} {'seconds':>8} {'ratio':>6} {'wanted':>7} {'MiB':>7} {'ratio':>6} {'wanted':>7}"
    )
    for name in calls:
        fast, small = TARGETS.get(name, (None, None))
        ratio = np.median(times[name] / times["dense"])
        print(
            f"{name:>14} {np.median(times[name]):>8.3f} {ratio:>6.3f} {fast or '':>7}"
            f" {held[name] / 2**20:>7.1f} {held[name] / held['dense']:>6.3f}"
            f" {'' if small is None else f'{small:.3f}':>7}"
        )


def plan(seq_len: int, cp_size: int, repeats: int) -> None:
    """Print how long it takes to plan a forward and a backward pass."""
    layout = zigzag(seq_len, cp_size)
    taken = [seconds(lambda: list(schedule(layout, Visibility()))) for _ in range(repeats)]
    print(f"schedule of {seq_len} tokens on {cp_size} ranks: {np.median(taken):.2f} s, wanted 2.00")


def main() -> None:
    """Print the comparison, then the time of a large plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"S {options.length}, R {options.ranks}, {HEADS} heads, width {WIDTH}, zigzag causal")
    compare(options.length, options.ranks, options.repeats)
    plan(2**20, 256, options.repeats)


if __name__ == "__main__":
    main()
