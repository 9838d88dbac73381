"""The running state: any order of maxima, rows that see nothing, how little rounding adds up."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from cpcore import Visibility, contiguous, zigzag
from cpcore.distributed import (
    FLASH_CPU,
    MATH,
    BlockOp,
    Transport,
    context_parallel_attention,
    run_threads,
)
from cpcore.distributed.block_ops import Rule
from cpcore.distributed.bounds import Problem, allowed, solve, worst
from cpcore.distributed.state import Stats, empty_state, finish, merge_

WIDTH = 8


def one_key(score: float, value: float) -> Stats:
    """The chunk of two rows that see one key each, the second with a score of 0."""
    output = torch.full((1, 1, 2, WIDTH), value)
    return Stats(output, torch.ones(1, 1, 2), torch.tensor([[[score, 0.0]]]))


@pytest.mark.parametrize(
    "scores",
    [
        (0.0, 5.0, 10.0),
        (0.0, 12.0, 3.0),
        (0.0, 200.0, 400.0),  # exp of either is beyond float32
        (400.0, 200.0, 0.0),
        (0.0, -200.0, 200.0),
        (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0),
    ],
)
@pytest.mark.parametrize("size", [1.0, 1e36])
def test_maxima_may_come_in_any_order(scores: tuple[float, ...], size: float) -> None:
    state = one_key(scores[0], size)
    for number, score in enumerate(scores[1:], 2):
        merge_(state, one_key(score, size * number))
    output, lse = finish(state)
    exact = torch.tensor(scores, dtype=torch.float64)
    values = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    for row, logits in enumerate((exact, torch.zeros_like(exact))):
        wanted = float(logits.softmax(0) @ values)
        # exp of a number near 400 that is rounded to 24 bits is off by about 400 · 6e-8.
        assert torch.allclose(output[0, 0, row] / size, torch.tensor(wanted), rtol=1e-4)
        assert float(lse[0, 0, row]) == pytest.approx(float(logits.logsumexp(0)), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_heads_and_batches_rise_and_fall_each_by_itself(dtype: torch.dtype) -> None:
    """Maxima of 2 batch entries, 2 heads and 3 rows; exp(100) is beyond float32."""
    rises = [
        torch.zeros(2, 2, 3, dtype=torch.float64),
        torch.tensor([[[-5.2, 0, 1], [1, -40, 0]], [[0, 2, 2], [9, -3, 100]]]).double(),  # the last
        torch.linspace(-3.1, 10.7, 12, dtype=torch.float64).reshape(2, 2, 3),
        torch.tensor([[[0.3, 50, -2], [1, 45, 5]], [[-1, 10, -40], [-9, 90, 2]]]).double(),
    ]
    numbers = np.random.default_rng(0)
    chunks = []
    for rise in rises:
        output, total = numbers.standard_normal((2, 2, 3, WIDTH)), numbers.uniform(1, 99, (2, 2, 3))
        arrays = torch.from_numpy(output), torch.from_numpy(total), rise
        chunks.append(Stats(*(x.to(dtype) for x in arrays)))
    state = Stats(*(x.clone() for x in chunks[0]))
    for chunk in chunks[1:]:
        merge_(state, chunk)
    output, lse = finish(state)

    tops = torch.stack([chunk.max.double() for chunk in chunks])
    weights = torch.exp(tops - tops.amax(0))
    mass = (weights * torch.stack([chunk.sum.double() for chunk in chunks])).sum(0)
    outputs = torch.stack([chunk.output.double() for chunk in chunks])
    wanted = (weights[..., None] * outputs).sum(0) / mass[..., None]
    # exp of a number of up to 140 is off by about 140 eps.
    error = 200 * torch.finfo(dtype).eps
    assert (output - wanted).abs().max() < error
    assert torch.allclose(lse.double(), tops.amax(0) + mass.log(), rtol=error, atol=error)


def test_what_other_rows_hold_changes_no_bit() -> None:
    found = []
    for rise in (1.0, 20.0):
        state = Stats(
            torch.full((1, 1, 2, 1), 1.1), torch.full((1, 1, 2), 1.3), torch.zeros(1, 1, 2)
        )
        top = torch.tensor([[[1.23, rise]]])
        merge_(state, Stats(torch.full((1, 1, 2, 1), 3.3), torch.full((1, 1, 2), 1.7), top))
        found.append([part[:, :, 0] for part in finish(state)])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_heavy_value_of_little_weight_is_kept() -> None:
    """1 minus the share of the other side would have no digits left for it."""
    state = one_key(0.0, 1e12)
    merge_(state, one_key(20.0, 1.0))
    assert float(finish(state)[0][0, 0, 0, 0]) == pytest.approx(1 + 1e12 * math.exp(-20), rel=1e-5)


@pytest.mark.parametrize("op", [FLASH_CPU, MATH])
@pytest.mark.parametrize("causal", [False, True])
def test_the_future_and_other_batch_entries_change_no_bit(op: BlockOp, causal: bool) -> None:
    layout, rule = (zigzag if causal else contiguous)(64, 4), Visibility(causal=causal)

    def worker(transport: Transport, changed: bool) -> list[Tensor]:
        positions = torch.from_numpy(layout.owned[transport.rank].copy())
        later = positions >= 32 if causal else torch.ones_like(positions, dtype=torch.bool)
        leaves = []
        for n in range(3):
            whole = np.random.default_rng(n).standard_normal((2, 2, 64, WIDTH), np.float32)
            x = torch.from_numpy(whole)[:, :, positions]
            if changed:
                x[0 if causal else 1 :, :, later] *= 6
            leaves.append(x.requires_grad_())
        out = context_parallel_attention(
            *leaves, layout=layout, visibility=rule, group=transport, block_op=op
        )
        results = [out.detach(), torch.autograd.grad(out, leaves[0], torch.ones_like(out))[0]]
        same = (slice(None), slice(None), ~later) if causal else (slice(1), slice(None))
        return [x[same] for x in results]

    before, after = (run_threads(worker, 4, changed) for changed in (False, True))
    for one, other in zip(before, after, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert sum(x.numel() for x in before[0]) > 0


def test_a_side_that_saw_nothing_changes_no_bit() -> None:
    rows = torch.zeros(1, 1, 2, WIDTH)
    nothing, chunk = empty_state(rows, WIDTH), one_key(3.0, 7.0)
    for first, second in ((nothing, chunk), (chunk, nothing), (nothing, nothing)):
        state = Stats(*(part.clone() for part in first))
        merge_(state, second)
        wanted = nothing if first is second else chunk
        for got, part in zip(finish(state), finish(Stats(*map(torch.clone, wanted))), strict=True):
            assert torch.equal(got, part)


@pytest.mark.parametrize("op", [FLASH_CPU, MATH])
@pytest.mark.parametrize("shift", [0.0, 1e3, 1e5])
def test_rounding_does_not_grow_with_the_number_of_merges(op: BlockOp, shift: float) -> None:
    """A state of a finished output and its lse would round that lse, of size shift, 512 times."""
    keys, chunk = 4096, 8
    rng = np.random.default_rng(0)
    shapes = (1, 2, 16, WIDTH), *((1, 2, keys, WIDTH) for _ in range(2)), (1, 2, 16, WIDTH)
    q, k, v, dout = (torch.from_numpy(rng.standard_normal(s, np.float32)) for s in shapes)
    q[..., 0] = k[..., 0] = math.sqrt(shift)  # adds about `shift` to every score
    state: Stats | None = None
    for start in range(0, keys, chunk):
        part = slice(start, start + chunk)
        found = op.attend(q, k[:, :, part], v[:, :, part], Rule(1.0))
        if state is None:
            state = found
        else:
            merge_(state, found)
    assert state is not None
    output: Tensor = finish(state)[0]
    problem = Problem(q, k, v, dout, torch.ones(16, keys, dtype=torch.bool), 1.0, None)
    right = solve(problem)
    # The bound grows with √keys and the size of the scores; what really happens is far below.
    assert worst(output, right["output"], allowed(problem, right)["output"]) < 0.25
