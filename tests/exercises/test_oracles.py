"""The package's own functions are accepted, so oracles, solutions and core agree."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cpcore
from cpcore import Dropout, Visibility, contiguous, dense_attention, dense_attention_backward
from cpcore.chunks import ChunkStats, finalize
from cpcore.exercises import catalogue, judge
from cpcore.exercises.sources import solution
from cpcore.loss import next_token_labels
from cpcore.planner.overlap import smallest_hidden_chunk
from cpcore.replay import block_gradients
from cpcore.schedule import schedule

Array = np.ndarray[Any, Any]


def capped_in_core(q: Array, k: Array, v: Array, visible: Array, cap: float) -> Any:
    """Capped scores become the keys of a product that gives just them."""
    scores = cap * np.tanh(q @ k.T * q.shape[1] ** -0.5 / cap)
    stats = [
        cpcore.attention_chunk_stats(
            np.ones((1, 1)), row[:, None], v, visible=seen[None, :], scale=1.0
        )
        for row, seen in zip(scores, visible, strict=True)
    ]
    return tuple(np.concatenate(parts) for parts in zip(*stats, strict=True))


def sink_in_dense(parts: list[ChunkStats], sink: float, dout: Array) -> Any:
    """Every summary is one key whose score is its lse and whose value is its answer."""
    finished = [finalize(part) for part in parts]
    out, slope = np.zeros_like(dout), 0.0
    for row in range(len(dout)):
        scores = np.array([sink, *(lse[row] for _, lse in finished)])[:, None]
        values = np.array([np.zeros_like(dout[row]), *(o[row] for o, _ in finished)])
        one = np.ones((1, 1))
        out[row] = dense_attention(one, scores, values, scale=1.0)[0][0]
        gradients = dense_attention_backward(one, scores, values, dout[row : row + 1], scale=1.0)
        slope += float(gradients[1][0, 0])
    return out, slope


def block_in_core(
    q: Array, k: Array, v: Array, dout: Array, lse: Array, delta: Array, visible: Array
) -> Any:
    return block_gradients(q, k, v, dout, lse, delta, visible, q.shape[1] ** -0.5)


def step_in_core(rank: int, step: int, cp_size: int) -> Any:
    for event in schedule(contiguous(7 * cp_size, cp_size), Visibility(), backward=False):
        if (event.rank, event.step) == (rank, step):
            return event.owner, event.send_to, event.recv_from
    raise AssertionError("no such event")


def dropout_in_core(
    q: Array, k: Array, v: Array, q_pos: Array, k_pos: Array, rate: float, seed: int
) -> Any:
    """The package hashes batch and head as well; here its two last rounds are taken alone."""
    from cpcore.dropout import _mix

    state = _mix(np.asarray(seed, np.uint32))
    for word in (q_pos[:, None], k_pos[None, :]):
        state = _mix(state ^ word.astype(np.uint32))
    keep = (state >= np.uint32(round(rate * 2**32))) / (1 - rate)
    return cpcore.attention_chunk_stats(q, k, v, keep=keep)


def labels_in_core(tokens: Array, documents: Array, owned: list[Array]) -> Any:
    labels = next_token_labels(tokens, documents)
    return [labels[positions] for positions in owned]


def zigzag_in_core(seq_len: int, cp_size: int) -> Any:
    layout = cpcore.zigzag(seq_len, cp_size)
    return layout.permutation, layout.inverse


CORE: dict[str, Callable[..., Any]] = {
    "attention_chunk_stats": cpcore.attention_chunk_stats,
    "merge_chunk_stats": cpcore.merge_chunk_stats,
    "merge_neutral": cpcore.merge_chunk_stats,
    "ring_attention": cpcore.ring_attention,
    "capped_chunk_stats": capped_in_core,
    "sink_attention": sink_in_dense,
    "block_verdict": lambda q_pos, k_pos: Visibility().verdict(q_pos, k_pos),
    "window_verdict": lambda q_pos, k_pos, n: Visibility(window=n).verdict(q_pos, k_pos),
    "document_mask": lambda documents, q, k: Visibility(documents=documents).block(q, k),
    "ring_step": step_in_core,
    "block_backward": block_in_core,
    "dropout_chunk_stats": dropout_in_core,
    "rank_labels": labels_in_core,
    "zigzag": zigzag_in_core,
    "hidden_chunk": lambda flops, link, group, size, share: smallest_hidden_chunk(
        flops, link, group=group, element_bytes=size, visible_share=share
    ),
    "striped": lambda *args: list(cpcore.striped(*args).owned),
}


@pytest.mark.parametrize("name", CORE)
def test_the_core_is_accepted(name: str) -> None:
    verdict = judge(CORE[name], name)
    assert verdict, verdict


def test_blocks_of_a_row_add_up_to_the_dense_gradients() -> None:
    rng = np.random.default_rng(3)
    q, k, v, dout = rng.standard_normal((4, 6, 3))
    visible = np.tri(6, dtype=bool)
    out, lse = dense_attention(q, k, v, visible=visible)
    delta = (dout * out).sum(axis=1)
    back = solution("block_backward")
    cuts = [slice(0, 2), slice(2, 6)]
    parts = [back(q, k[c], v[c], dout, lse, delta, visible[:, c]) for c in cuts]
    dq, dk, dv = dense_attention_backward(q, k, v, dout, visible=visible)
    assert np.allclose(parts[0][0] + parts[1][0], dq, rtol=0, atol=1e-12)
    assert np.allclose(np.concatenate([p[1] for p in parts]), dk, rtol=0, atol=1e-12)
    assert np.allclose(np.concatenate([p[2] for p in parts]), dv, rtol=0, atol=1e-12)


def layouts() -> Iterator[Any]:
    for size in range(1, 6):
        yield from (make(12, size) for make in (contiguous, cpcore.zigzag, cpcore.striped))
    yield cpcore.from_lengths([3, 0, 5])


@pytest.mark.parametrize("layout", layouts(), ids=lambda layout: str(layout.lengths))
def test_the_capstone_equals_simulate_for_any_layout(layout: Any) -> None:
    rng = np.random.default_rng(layout.cp_size)
    q, k, v, dout = rng.standard_normal((4, layout.seq_len, 3))
    exercise = catalogue["causal_ring"]
    mine = exercise.play(solution("causal_ring"), q, k, v, dout, list(layout.owned))
    run = cpcore.simulate(q, k, v, layout, Visibility(), dout=dout)
    assert np.abs(run.dk).max() > 0.01
    for got, want in zip(mine, (run.output, run.dq, run.dk, run.dv), strict=True):
        assert np.allclose(got, want, rtol=0, atol=1e-12)


def test_dropout_of_the_exercise_starts_like_the_hash_of_the_package() -> None:
    """Same mixing function: with it, the package's own test vectors hold."""
    space: dict[str, Any] = {}
    from cpcore.exercises.sources import model_source

    exec(model_source("dropout_chunk_stats"), space)
    mix = space["mix"]
    state = mix(7)
    for word in (0, 2, 5, 11):  # batch, head, i, j
        state = mix(state ^ np.uint32(word))
    assert bool(state >= 0.3 * 2**32) == bool(Dropout(0.3, 7).keep(0, 2, 5, 11))
