"""The ledger equals what threads that really pass arrays count, for every protocol.

The double knows no event and no formula; its attention is checked against dense, so what it
counts is the traffic of a computation that is right.
"""

import queue
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    LedgerRow,
    Visibility,
    dense_attention,
    dense_attention_backward,
    from_lengths,
    ledger,
    schedule,
    zigzag,
)
from cpcore.schedule import PROTOCOLS
from tests.support.message_passing import World
from tests.support.rank_threads import RankThread, run_ranks
from tests.support.relation import double_loop
from tests.support.tolerance import assert_within

Array = NDArray[Any]
Q_HEADS, KV_HEADS, WIDTH, VALUE_WIDTH = 4, 2, 2, 3
LAYOUTS = {
    "one rank": from_lengths([4]),
    "laboratory": from_lengths([2, 3]),
    "uneven, one empty": from_lengths([3, 1, 0, 2]),
    "first empty": from_lengths([0, 4, 1]),
    "all empty but one": from_lengths([0, 0, 3]),
    "nothing at all": from_lengths([0, 0]),
    "zigzag": zigzag(7, 3),
    "five": from_lengths([1, 2, 0, 3, 2]),
}
RULES: dict[str, dict[str, Any]] = {
    "full": {"causal": False},
    "causal": {},
    "packed": {"documents": np.array([0, 0, 1, -1, 1, 1, 2, 2]), "window": 2},
}


def inputs(seq_len: int) -> tuple[Array, Array, Array, Array]:
    """Multiples of 1/8: a message in 16 bits loses nothing."""
    rng = np.random.default_rng(seq_len)
    shapes = [
        (Q_HEADS, seq_len, WIDTH),
        (KV_HEADS, seq_len, WIDTH),
        (KV_HEADS, seq_len, VALUE_WIDTH),
        (Q_HEADS, seq_len, VALUE_WIDTH),
    ]
    q, k, v, dout = (rng.integers(-16, 17, shape) / 8.0 for shape in shapes)
    return q, k, v, dout


def by_threads(layout: Layout, rule: dict[str, Any], **world: Any) -> list[RankThread]:
    visible = double_loop(range(layout.seq_len), range(layout.seq_len), rule)
    owned = [pos.tolist() for pos in layout.owned]
    return run_ranks(World(owned=owned, visible=visible, **world), *inputs(layout.seq_len))


def by_ledger(
    layout: Layout, rule: dict[str, Any], protocol: str, max_block: int | None, **sizes: int
) -> list[LedgerRow]:
    cut = {k: x[: layout.seq_len] if k == "documents" else x for k, x in rule.items()}
    events = schedule(layout, Visibility(**cut), protocol=protocol, max_block=max_block)
    widths = {"head_dim": WIDTH, "value_dim": VALUE_WIDTH}
    return ledger(events, layout, q_heads=Q_HEADS, kv_heads=KV_HEADS, **widths, **sizes)


@pytest.mark.parametrize("max_block", [None, 1, 2])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_ledger_equals_what_threads_count(
    protocol: str, name: str, rule: str, max_block: int | None
) -> None:
    layout = LAYOUTS[name]
    ranks = by_threads(layout, RULES[rule], protocol=protocol, max_block=max_block)
    rows = by_ledger(layout, RULES[rule], protocol, max_block)
    traffic = [row for row in rows if row.phase != "resident"]
    phases = ["forward", "replay", "return"][: 2 if layout.cp_size == 1 else 3]
    wanted = [LedgerRow(r.rank, phase, **r.traffic[phase]) for phase in phases for r in ranks]
    assert traffic == wanted
    for row, rank in zip(rows[len(traffic) :], ranks, strict=True):
        assert (row.rank, row.phase) == (rank.rank, "resident")
        assert row._replace(buffers=0, resident_bytes=0)[2:] == (0,) * 8 + (
            *rank.held().values(), 0, 0
        )  # fmt: skip
    assert any(row.elements_sent for row in traffic) == (layout.cp_size > 1 and layout.seq_len > 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_stream_counts_its_own_bytes(protocol: str) -> None:
    """Keys and values in 16 bits, their gradients in 32: what the arrays themselves say."""
    layout = LAYOUTS["uneven, one empty"]
    wire = {"kv_dtype": np.float16, "grad_dtype": np.float32}
    ranks = by_threads(layout, {}, protocol=protocol, **wire)
    rows = by_ledger(layout, {}, protocol, None, element_bytes=2, grad_bytes=4)
    for row in rows[: 3 * layout.cp_size]:
        counted = ranks[row.rank].traffic[row.phase]
        assert (row.bytes_sent, row.bytes_received) == (
            counted["bytes_sent"], counted["bytes_received"]
        )  # fmt: skip
    assert {row.bytes_sent // row.elements_sent for row in rows if row.elements_sent} == {2, 4}


@pytest.mark.parametrize("max_block", [None, 1])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_the_threads_compute_is_right(
    protocol: str, name: str, rule: str, max_block: int | None
) -> None:
    """1e-12: scores stay below 10, sums below 8 terms."""
    layout = LAYOUTS[name]
    ranks = by_threads(layout, RULES[rule], protocol=protocol, max_block=max_block)
    q, k, v, dout = inputs(layout.seq_len)
    visible = double_loop(range(layout.seq_len), range(layout.seq_len), RULES[rule])
    out, lse = dense_attention(q, k, v, visible=visible)
    gradients = dense_attention_backward(q, k, v, dout, visible=visible)
    for rank, pos in zip(ranks, layout.owned, strict=True):
        assert_within("out", rank.output, out[:, pos], 1e-12)
        assert_within("lse", rank.lse, lse[:, pos], 1e-12)
        for got, wanted in zip((rank.dq, rank.dk, rank.dv), gradients, strict=True):
            assert_within("gradient", got, wanted[:, pos], 1e-12)
    assert layout.seq_len == 0 or any(np.abs(x).max() > 0.1 for x in (out, *gradients))


def test_a_rank_that_fails_is_reported_and_no_thread_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = threading.active_count()
    monkeypatch.setattr("tests.support.message_passing.LIMIT_S", 0.1)
    forward = RankThread.forward

    def fails(self: RankThread) -> None:
        if self.rank == 1:
            raise RuntimeError("rank 1 gave up")
        forward(self)

    monkeypatch.setattr(RankThread, "forward", fails)
    with pytest.raises(ExceptionGroup) as caught:
        by_threads(LAYOUTS["laboratory"], {}, protocol="ring")
    assert [type(error) for error in caught.value.exceptions] == [queue.Empty, RuntimeError]
    assert threading.active_count() == before
