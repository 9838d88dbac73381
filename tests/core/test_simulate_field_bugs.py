"""Faults of real systems, one per test: what a whole run, forward and backward, answers instead."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Dropout,
    Layout,
    Run,
    Visibility,
    contiguous,
    dense_attention_backward,
    from_lengths,
    schedule,
    simulate,
    striped,
    zigzag,
)
from cpcore.packing import pad_packed
from cpcore.schedule import PROTOCOLS
from tests.support.relation import double_loop
from tests.support.tolerance import Problem, assert_within, reference, tolerance

Array = NDArray[Any]
FIELDS = ("output", "lse", "dq", "dk", "dv")


def arrays(seq_len: int, seed: int, dtype: Any = np.float64) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((2, seq_len, 3)).astype(dtype) for _ in range(4))


def assert_dense(done: Run, problem: Problem, pieces: int = 5) -> None:
    wanted, allowed = reference(problem), tolerance(problem, pieces)
    for name, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
        assert np.abs(ref[np.isfinite(ref)]).max() > 0.1
        assert_within(name, getattr(done, name), ref, bound)


def causal(seq_len: int) -> Array:
    every = range(seq_len)
    return double_loop(every, every, {})


@pytest.mark.parametrize("fill", [0.0, 200.0, np.nan])
def test_c16_seven_tokens_padded_to_eight_keep_all_seven(fill: float) -> None:
    packed, layout = pad_packed([0, 7], 4), zigzag(8, 2)
    real = packed.documents != -1
    halves = [np.split(real[pos], 2) for pos in layout.owned]
    assert [[int(half.sum()) for half in pair] for pair in halves] == [[2, 1], [2, 2]]
    inputs = arrays(7, 16)
    q, k, v, dout = (packed.pad(x, fill=fill) for x in inputs)
    rule = Visibility(documents=packed.documents)
    done = simulate(q, k, v, layout, rule, dout=dout)
    results = {name: getattr(done, name) for name in FIELDS if name != "lse"}
    real_rows = Run(
        **{name: packed.unpad(x) for name, x in results.items()},
        lse=packed.unpad(done.lse, axis=-1), events=[], per_rank=[],
    )  # fmt: skip
    assert_dense(real_rows, Problem(*inputs[:3], visible=causal(7), dout=inputs[3]))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("seq_len", "cp_size"), [(7, 2), (3, 4), (1, 5), (5, 4)])
def test_c17_lengths_that_no_rank_count_divides_are_exact(
    seq_len: int, cp_size: int, protocol: str
) -> None:
    q, k, v, dout = arrays(seq_len, 17)
    problem = Problem(q, k, v, visible=causal(seq_len), dout=dout)
    for layout in (zigzag(seq_len, cp_size), contiguous(seq_len, cp_size)):
        done = simulate(q, k, v, layout, Visibility(), dout=dout, protocol=protocol)
        wanted, allowed = reference(problem), tolerance(problem, cp_size)
        for name, ref, bound in zip(FIELDS, wanted, allowed, strict=True):
            assert_within(name, getattr(done, name), ref, bound)


@pytest.mark.parametrize("max_block", [None, 2])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_c18_ranks_of_3_1_0_and_2_tokens_equal_dense(protocol: str, max_block: int | None) -> None:
    q, k, v, dout = arrays(6, 18)
    layout = from_lengths([3, 1, 0, 2])
    options: dict[str, Any] = {"protocol": protocol, "max_block": max_block}
    done = simulate(q, k, v, layout, Visibility(), dout=dout, **options)
    assert_dense(done, Problem(q, k, v, visible=causal(6), dout=dout))


def test_c23_each_backward_step_uses_the_keys_and_values_that_arrive() -> None:
    """Full attention, two ranks of different K and V; with those of step 0, dq and dk are wrong."""
    q, k, v, dout = arrays(6, 23)
    done = simulate(q, k, v, contiguous(6, 2), None, dout=dout)
    assert_dense(done, Problem(q, k, v, dout=dout))
    stale = simulate(q, k, v, contiguous(6, 2), None, dout=dout, fault="stale_kv")
    assert np.array_equal(stale.output, done.output)
    assert min(np.abs(stale.dq - done.dq).max(), np.abs(stale.dk - done.dk).max()) > 0.1


def test_c24_the_gradient_of_one_row_lands_on_the_keys_that_it_saw() -> None:
    """dout is one row of rank 0: keys of every owner have a gradient, all in their own places."""
    q, k, v, _ = arrays(8, 24)
    dout = np.zeros_like(q)
    dout[:, 0] = 1
    layout, rule = zigzag(8, 4), Visibility(causal=False)
    _, dk, dv = dense_attention_backward(q, k, v, dout)
    for protocol in PROTOCOLS:
        done = simulate(q, k, v, layout, rule, dout=dout, protocol=protocol)
        for rank, owned in enumerate(layout.owned):
            assert_within("dk", done.per_rank[rank].dk, dk[:, owned], 1e-14)
            assert_within("dv", done.per_rank[rank].dv, dv[:, owned], 1e-14)
        assert np.abs(dv).min() > 1e-3


def layouts_of(seq_len: int) -> list[Layout]:
    makers = (contiguous, striped, zigzag)
    return [make(seq_len, ranks) for make in makers for ranks in (1, 2, 3, 5)]


def test_c28_dropout_is_equal_for_every_layout_rank_count_and_block_size() -> None:
    """Values that are unit vectors turn the output into the dropped probabilities themselves."""
    dropout, (q, k, _, _) = Dropout(0.4, seed=28), arrays(9, 28)
    value = np.broadcast_to(np.eye(9), (2, 9, 9))
    dropped = None
    for layout in layouts_of(9):
        for max_block in (None, 2):
            options: dict[str, Any] = {"dropout": dropout, "max_block": max_block}
            out = simulate(q, k, value, layout, Visibility(), **options).output
            pattern = (out == 0) & causal(9)
            assert dropped is None or np.array_equal(pattern, dropped)
            dropped = pattern
    assert 0.2 < dropped[:, np.tri(9, dtype=bool)].mean() < 0.6


def test_c28_forward_and_replay_drop_the_same_probabilities() -> None:
    """The gradients are those of the forward function, by central differences."""
    dropout, (q, k, v, dout) = Dropout(0.4, seed=29), arrays(5, 29)

    def loss(*inputs: Array) -> float:
        run = simulate(*inputs, zigzag(5, 2), Visibility(), dropout=dropout)  # type: ignore[misc]
        return float((dout * run.output).sum())

    done = simulate(q, k, v, zigzag(5, 2), Visibility(), dout=dout, dropout=dropout)
    for name, at in (("dq", 0), ("dk", 1), ("dv", 2)):
        step = np.zeros_like(q)
        step[1, 2, 0] = 1e-5
        up, down = ([x + sign * step if i == at else x for i, x in enumerate((q, k, v))]
                    for sign in (1, -1))  # fmt: skip
        slope = (loss(*up) - loss(*down)) / 2e-5
        assert getattr(done, name)[1, 2, 0] == pytest.approx(slope, abs=1e-8)  # 1e-5 squared, × 100
        assert abs(slope) > 1e-3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_c33_one_rank_returns_what_two_ranks_return(protocol: str) -> None:
    """Same types, dtypes, shapes and field names; its events are those of step 0."""
    q, k, v, dout = arrays(6, 33, np.float16)
    one, two = (
        simulate(q, k, v, contiguous(6, ranks), Visibility(), dout=dout, protocol=protocol)
        for ranks in (1, 2)
    )
    for name in FIELDS:
        a, b = getattr(one, name), getattr(two, name)
        assert (type(a), a.dtype, a.shape) == (type(b), b.dtype, b.shape)
        assert np.array_equal(getattr(one.per_rank[0], name), a)
    assert type(one.per_rank[0]) is type(two.per_rank[0])
    assert [type(event) for event in one.events] == [type(two.events[0])] * 2


def test_c34_a_rank_that_computes_nothing_after_step_0_forwards_every_block() -> None:
    events = list(schedule(contiguous(12, 4), Visibility(), backward=False))
    work, sent = Counter[int](), Counter[int]()
    for event in events:
        work[event.rank] += event.verdict != "empty"
        sent[event.rank] += event.send_to is not None
    assert [work[rank] for rank in range(4)] == [1, 2, 3, 4]
    assert [sent[rank] for rank in range(4)] == [3, 3, 3, 3]
