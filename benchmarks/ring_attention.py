"""Time and temporary memory of `ring_attention`, as ratios to a tuned full-matrix attention.

Run: python -m benchmarks.ring_attention [--lengths 2048 8192] [--chunk 512] [--repeats 5]
The two are run in turn, so that a slow moment of the machine hits both; each ratio is the median
over the pairs. Results are compared before anything is timed.
On a machine that does other work too, set OPENBLAS_NUM_THREADS=1: the threads of many small
products wait for each other, which made the ring up to five times slower in a trial.
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
from cpcore import Visibility, ring_attention

Array = NDArray[Any]
HEADS, WIDTH = 8, 64


def seconds(work: Callable[[], Array]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def temporary_bytes(work: Callable[[], Array]) -> int:
    """Most bytes held at one time during the call, its result not counted."""
    tracemalloc.start()
    result = work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - result.nbytes


def pair(seq_len: int, chunk: int, causal: bool) -> tuple[Callable[[], Array], ...]:
    """The ring and the baseline on the same float32 inputs, checked to agree."""
    rng = np.random.default_rng(seq_len)
    q, k, v = (rng.standard_normal((HEADS, seq_len, WIDTH)).astype("f4") for _ in range(3))
    cuts = range(chunk, seq_len, chunk)
    keys, values = np.split(k, cuts, axis=-2), np.split(v, cuts, axis=-2)
    ring = partial(ring_attention, q, keys, values, visibility=Visibility() if causal else None)
    dense = partial(tuned_dense, q, k, v, causal=causal)
    gap = float(np.abs(ring() - dense()).max())
    if gap > 1e-5:
        raise AssertionError(f"the two differ by {gap}")
    return ring, dense


def row(seq_len: int, chunk: int, causal: bool, repeats: int) -> str:
    """One line of the table."""
    ring, dense = pair(seq_len, chunk, causal)
    times = np.array([[seconds(ring), seconds(dense)] for _ in range(repeats)])
    ring_bytes, dense_bytes = temporary_bytes(ring), temporary_bytes(dense)
    relation = "causal" if causal else "full"
    return (
        f"{seq_len:>6} {chunk:>6} {relation:>8}"
        f" {np.median(times[:, 0]):>9.3f} {np.median(times[:, 1]):>9.3f}"
        f" {np.median(times[:, 0] / times[:, 1]):>10.2f}"
        f" {ring_bytes / 2**20:>9.1f} {dense_bytes / 2**20:>9.1f}"
        f" {ring_bytes / dense_bytes:>12.3f}"
    )


def main() -> None:
    """Print one row per length and relation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 8192])
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"float32, {HEADS} heads, width {WIDTH}; times in seconds, temporary memory in MiB")
    print(
        f"{'S':>6} {'chunk':>6} {'relation':>8} {'ring':>9} {'dense':>9} {'time ratio':>10}"
        f" {'ring MiB':>9} {'dense MiB':>9} {'memory ratio':>12}"
    )
    for seq_len in options.lengths:
        for causal in (False, True):
            print(row(seq_len, options.chunk, causal, options.repeats), flush=True)


if __name__ == "__main__":
    main()
