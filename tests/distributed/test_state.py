"""The running state: any order of maxima, rows that see nothing, how little rounding adds up."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from cpcore.distributed import FLASH_CPU, MATH, BlockOp
from cpcore.distributed.block_ops import Rule
from cpcore.distributed.bounds import Problem, allowed, solve, worst
from cpcore.distributed.state import HEADROOM, Stats, empty_state, finish, merge_

WIDTH = 8


def one_key(score: float, value: float) -> Stats:
    """The chunk of two rows that see one key each, the second with a score of 0."""
    output = torch.full((1, 1, 2, WIDTH), value)
    return Stats(output, torch.ones(1, 1, 2), torch.tensor([[[score, 0.0]]]))


@pytest.mark.parametrize(
    "scores",
    [
        (0.0, HEADROOM / 2, HEADROOM),  # nothing is scaled again
        (0.0, HEADROOM + 1, 3.0),
        (0.0, 200.0, 400.0),  # exp of either is beyond float32
        (400.0, 200.0, 0.0),
        (0.0, -200.0, 200.0),
        (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0),  # each a little, all too much
    ],
)
@pytest.mark.parametrize("size", [1.0, 1e33])
def test_maxima_may_come_in_any_order(scores: tuple[float, ...], size: float) -> None:
    state = one_key(scores[0], size)
    for number, score in enumerate(scores[1:], 2):
        merge_(state, one_key(score, size * number))
    output, lse = finish(state)
    exact = torch.tensor(scores, dtype=torch.float64)
    values = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    for row, logits in enumerate((exact, torch.zeros_like(exact))):
        wanted = float(logits.softmax(0) @ values)
        # Exponents of up to 400 are rounded to 24 bits, and lead to about 400 roundings.
        assert torch.allclose(output[0, 0, row] / size, torch.tensor(wanted), rtol=1e-4)
        assert float(lse[0, 0, row]) == pytest.approx(float(logits.logsumexp(0)), abs=1e-4)


def test_a_state_is_scaled_again_only_where_a_maximum_rises_far() -> None:
    state, other = one_key(0.0, 1.0), one_key(0.0, 1.0)
    merge_(state, one_key(HEADROOM, 1.0))
    merge_(other, one_key(HEADROOM + 1, 1.0))
    assert state.max.tolist() == [[[0.0, 0.0]]]
    assert other.max.tolist() == [[[HEADROOM + 1, 0.0]]]


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
