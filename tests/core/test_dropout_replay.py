"""Dropout that replays: the same probabilities drop in dense, forward, replay and every layout."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Dropout, Layout, contiguous, dense_attention, from_lengths, striped, zigzag
from cpcore.schedule import PROTOCOLS
from tests.support.runs import RESULTS, setting

Array = NDArray[Any]
EVERYTHING = {*RESULTS, "loss"}
LAYOUTS = [
    contiguous(10, 1),
    contiguous(10, 2),
    zigzag(10, 3),
    striped(10, 4),
    from_lengths([0, 7, 1, 2, 0]),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"R={layout.cp_size}")
def test_C28_forward_and_gradients_equal_dense_for_every_layout_and_rank_count(
    layout: Layout, protocol: str
) -> None:
    case = setting(layout, dropout=Dropout(0.4, 11), causal=False)
    assert 0.2 < np.mean(case.problem.keep == 0) < 0.6
    for max_block in (None, 2):
        run = case.run(protocol=protocol, max_block=max_block)
        assert case.agreeing(run) == EVERYTHING


def test_another_seed_is_another_result_and_the_same_seed_the_same() -> None:
    runs = [setting(zigzag(10, 3), dropout=Dropout(0.4, s)).run() for s in (11, 11, 12)]
    assert np.array_equal(runs[0].output, runs[1].output)
    assert np.abs(runs[0].output - runs[2].output).max() > 0.1


def test_C38_the_denominator_is_not_dropped() -> None:
    """lse is that without dropout, and delta = rowsum(dout · out) still closes the softmax."""
    with_dropout = setting(zigzag(10, 3), dropout=Dropout(0.4, 11))
    plain = setting(zigzag(10, 3))
    assert np.array_equal(with_dropout.run().lse, plain.run().lse)
    p, run = with_dropout.problem, with_dropout.run()
    group = np.arange(4) // 2
    scores = p.q @ p.k[group].swapaxes(-1, -2) * p.factor
    probs = np.where(p.seen, np.exp(scores - run.lse[..., None]), 0)
    dprobs = (p.dout @ p.v[group].swapaxes(-1, -2)) * p.keep
    delta = (p.dout * run.output).sum(axis=-1)
    np.testing.assert_allclose((probs * dprobs).sum(axis=-1), delta, rtol=0, atol=1e-12)
    assert np.abs(delta).max() > 0.1


def test_the_mean_over_many_seeds_is_the_output_without_dropout() -> None:
    """Dividing by 1 - rate keeps the expectation; 5 standard errors over 400 seeds."""
    q, k, v = np.random.default_rng(3).standard_normal((3, 6, 2))
    pos = np.arange(6)
    outputs = []
    for seed in range(400):
        keep = Dropout(0.3, seed).factor(q.shape, pos, pos)
        outputs.append(dense_attention(q, k, v, keep=keep)[0])
    error = np.mean(outputs, axis=0) - dense_attention(q, k, v)[0]
    assert (np.abs(error) <= 5 * np.std(outputs, axis=0) / np.sqrt(400)).all()


def test_heads_and_batch_entries_drop_differently_inside_a_run() -> None:
    """Equal inputs in both heads give different outputs only because their masks differ."""
    case = setting(zigzag(10, 2), dropout=Dropout(0.4, 1), heads=(2, 1))
    case.problem.q[1] = case.problem.q[0]
    out = case.run().output
    assert np.abs(out[0] - out[1]).max() > 0.1
