"""Whatever a caller passes, the core answers with a result or with its one form of ValueError.

Every argument of every function is replaced by every kind of value in turn. Floating flags and
warnings are errors, so that nothing passes by a silent overflow or a cast that loses something.
"""

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import cpcore
from cpcore import (
    ChunkStats,
    Dropout,
    Event,
    Layout,
    Visibility,
    attention_chunk_stats,
    contiguous,
    empty_stats,
    finalize,
    from_lengths,
    from_owned,
    merge_chunk_stats,
    per_document,
    schedule,
    simulate,
    striped,
    zigzag,
)
from cpcore import pitfalls as wrong
from cpcore import training_pitfalls as untrained
from cpcore.loss import LossSum, loss_gradient, loss_sum, mean_loss, next_token_labels
from cpcore.packing import pad_packed
from cpcore.positions import document_positions, rotary

FORM = re.compile(r"[^:\n]+: expected .+, received .+", re.DOTALL)
HUGE, UNWRITABLE = 10**400, 10**5000  # beyond every float; beyond what Python writes out
MASKED: Any = np.ma.masked_array(np.ones((2, 3)), mask=True)
# Right for no argument of any function.
NEVER: dict[str, Any] = {
    "object": object(), "complex": 1 + 0j, "bytes": b"1", "ellipsis": ...,
    "duration": np.timedelta64(1), "durations": np.array([1], "m8[s]"),
    "dates": np.array(["2020-01-01"], "M8[D]"), "record": np.zeros(3, [("a", float)]),
    "masked": MASKED, "unwritable": -UNWRITABLE, "Run": cpcore.Run(*[None] * 7),  # type: ignore[arg-type]
    "objects": [object()], "None in an array": np.array([None, 1], dtype=object),
}  # fmt: skip
BAD: dict[str, Any] = NEVER | {
    "huge": HUGE, "-huge": -HUGE, "2**62": 2**62, "2**63": 2**63, "2**64": 2**64, "-1": -1,
    "0": 0, "True": True, "False": False, "np.True_": np.bool_(True), "nan": float("nan"),
    "inf": np.inf, "-inf": -np.inf, "float32 nan": np.float32("nan"), "1.5": 1.5, "1.0": 1.0,
    "int8": np.int8(1), "uint64": np.uint64(2**63), "float16": np.float16(1), "text": "1",
    "ring": "ring", "None": None, "[]": [], "ragged": [[1, 2], [3]], "ragged floats": [[1.0], []],
    "[1]": [1], "[1.0]": [1.0], "['a']": ["a"], "[None]": [None], "[huge]": [HUGE],
    "[2**63, 1]": [2**63, 1], "[2**64]": [2**64], "0-d": np.array(1), "0-d float": np.array(1.0),
    "floats": np.ones((2, 3)), "integers": np.ones((2, 3), int), "range": np.arange(3),
    "bools": np.ones(3, bool), "words": np.array(["a", "b"]), "imaginary": np.ones((2, 3)) * 1j,
    "nans": np.full((2, 3), np.nan), "{}": {}, "{1}": {1}, "class": Visibility, "tuple": (1, 2),
    "lost": ("lost_return", 0, 1), "lost words": ("lost_return", "a", 1), "lost far": (
        "lost_return", HUGE, 1), "arrays": (np.ones(2), 0, 1), "no lost": ("lost_return", True, 0),
    "Visibility": Visibility(), "Layout": zigzag(4, 2), "zigzag": zigzag, "Dropout": Dropout(0, 0),
    "returns None": lambda *_: None, "stats": empty_stats((2,), 3, float),
}  # fmt: skip

S, LAYOUT, RULE = 5, from_lengths([2, 3]), Visibility()
RNG = np.random.default_rng(0)
Q, K, V, DOUT = (RNG.standard_normal((S, 2)) for _ in range(4))
STATE = attention_chunk_stats(Q, K, V)
EVENTS = list(schedule(LAYOUT, RULE))
PACK = pad_packed([0, 3, 5], 4)
MASK, ONES, LOGITS = np.ones((S, S), bool), np.ones((S, S)), RNG.standard_normal((3, 4))
DENSE = {"query": Q, "key": K, "value": V, "visible": MASK, "scale": 1.0, "keep": ONES}
CHUNKS = {
    "query": Q, "key_chunks": [K[:2], K[2:]], "value_chunks": [V[:2], V[2:]], "visibility": RULE,
    "query_positions": np.arange(S), "key_positions": [[0, 1], [2, 3, 4]], "scale": 1.0,
}  # fmt: skip
LABELS = {"logits": LOGITS, "labels": [0, 1, -1]}
HEADS = {"q_heads": 2, "kv_heads": 1, "head_dim": 2}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "chunk": (
        attention_chunk_stats,
        {"query": Q, "key_chunk": K, "value_chunk": V, "visible": MASK, "scale": 1.0, "keep": ONES},
    ),
    "merge": (merge_chunk_stats, {"acc": STATE, "chunk": STATE}),
    "empty": (empty_stats, {"rows_shape": (2,), "value_dim": 2, "dtype": float}),
    "finalize": (finalize, {"stats": STATE, "dtype": float}),
    "dense": (cpcore.dense_attention, DENSE),
    "dense backward": (cpcore.dense_attention_backward, DENSE | {"dout": DOUT}),
    "ring": (cpcore.ring_attention, CHUNKS),
    "Visibility": (
        Visibility,
        {"causal": True, "window": 2, "documents": [0, 0, 1], "relation": np.ones((3, 3), bool)},
    ),
    "block": (RULE.block, {"q_pos": [0, 1], "k_pos": [0, 1]}),
    "pairs": (RULE.pairs, {"q_pos": [0, 1], "k_pos": [0, 1]}),
    "padding": (RULE.padding, {"positions": [0, 1]}),
    "Layout": (Layout, {"owned": ([0, 1], [2])}),
    "shard": (LAYOUT.shard, {"x": Q, "axis": -2}),
    "unshard": (LAYOUT.unshard, {"parts": [Q[:2], Q[2:]], "axis": -2}),
    "contiguous": (contiguous, {"seq_len": 4, "cp_size": 2}),
    "zigzag": (zigzag, {"seq_len": 4, "cp_size": 2}),
    "striped": (striped, {"seq_len": 4, "cp_size": 2, "stripe": 1}),
    "from_lengths": (from_lengths, {"lengths": [1, 2]}),
    "from_owned": (from_owned, {"owned": [[0, 1], [2]]}),
    "per_document": (per_document, {"cu_seqlens": [0, 4], "cp_size": 2, "layout": zigzag}),
    "schedule": (
        lambda **arguments: list(schedule(**arguments)),
        {
            "layout": LAYOUT, "visibility": RULE, "protocol": "ring", "max_block": 1,
            "backward": True,
        },
    ),
    "simulate": (
        simulate,
        {
            "query": Q, "key": K, "value": V, "layout": LAYOUT, "visibility": RULE, "dout": DOUT,
            "protocol": "ring", "max_block": 2, "scale": 1.0, "dropout": Dropout(0.1, 1),
            "fault": None, "events": None,
        },
    ),
    "ledger": (
        cpcore.ledger,
        {
            "events": EVENTS, "layout": LAYOUT, **HEADS, "value_dim": 2, "element_bytes": 2,
            "grad_bytes": 4, "state_bytes": 4,
        },
    ),
    "Dropout": (Dropout, {"rate": 0.5, "seed": 1}),
    "keep": (Dropout(0.5, 1).keep, {"batch": 0, "query_head": 0, "i": [0, 1], "j": [0, 1]}),
    "factor": (Dropout(0.5, 1).factor, {"shape": (2, 3, 4), "q_pos": [0, 1], "k_pos": [0]}),
    "rotary": (rotary, {"x": Q, "positions": np.arange(S), "base": 10000.0}),
    "document_positions": (document_positions, {"documents": [0, 0, 1]}),
    "pad_packed": (pad_packed, {"cu_seqlens": [0, 3, 5], "multiple": 4}),
    "pad": (PACK.pad, {"x": Q, "axis": -2, "fill": 0}),
    "unpad": (PACK.unpad, {"x": np.ones((8, 2)), "axis": -2}),
    "labels": (next_token_labels, {"tokens": [1, 2, 3], "documents": [0, 0, 1]}),
    "loss_sum": (loss_sum, LABELS),
    "loss_gradient": (loss_gradient, LABELS | {"count": 2}),
    "mean_loss": (mean_loss, {"parts": [LossSum(1.0, 2)]}),
    "mean of a part": (lambda *, of, n: mean_loss([LossSum(of, n)] * 2), {"of": 1.0, "n": 2}),
    "equal_weight_mean": (wrong.equal_weight_mean, CHUNKS),
    "key_count_mean": (wrong.key_count_mean, CHUNKS),
    "mean_over_all_chunks": (wrong.mean_over_all_chunks, CHUNKS),
    "without_rescale": (wrong.merge_without_rescale, {"acc": STATE, "chunk": STATE}),
    "sum_only": (wrong.merge_rescaling_sum_only, {"acc": STATE, "chunk": STATE}),
    "flipped_sign": (wrong.merge_with_flipped_sign, {"acc": STATE, "chunk": STATE}),
    "add_lse": (wrong.add_lse, {"lse": LOGITS, "other": LOGITS}),
    "ring with": (
        lambda *, merge, scale: wrong.ring_attention_with(merge, Q, [K], [V], scale=scale),
        {"merge": merge_chunk_stats, "scale": 1.0},
    ),
    "rank means": (untrained.mean_of_rank_means, {"parts": [LossSum(1.0, 2)]}),
    "means of a part": (
        lambda *, of, n: untrained.mean_of_rank_means([LossSum(of, n)]),
        {"of": 1.0, "n": 2},
    ),
    "rank_mean": (untrained.rank_mean, LABELS),
    "rank_mean_gradient": (untrained.rank_mean_gradient, LABELS),
    "shift_after_shard": (untrained.shift_after_shard, {"tokens": range(S), "layout": LAYOUT}),
    "averaged": (untrained.averaged_over_ranks, {"gradients": [LOGITS, LOGITS]}),
    "an average": (lambda *, of: untrained.averaged_over_ranks([of, LOGITS]), {"of": LOGITS}),
    "local_rotary": (untrained.local_rotary, {"x": Q, "positions": np.arange(S), "base": 1e4}),
    "repeat": (
        untrained.repeat_kv_heads,
        {"key": np.ones((2, 3, 4)), "value": np.ones((2, 3, 4)), "q_heads": 4},
    ),
    "floor_divided": (untrained.floor_divided_cu_seqlens, {"cu_seqlens": [0, 4], "cp_size": 2}),
    "sum_in_16_bits": (untrained.sum_in_16_bits, {"values": LOGITS}),
    "lse_in_16_bits": (untrained.lse_in_16_bits, {"lse": LOGITS}),
}  # fmt: skip


def of_a_state(part: str, value: Any) -> None:
    state = STATE._replace(**{part: value})
    for change in (
        lambda: merge_chunk_stats(state, STATE),
        lambda: merge_chunk_stats(STATE, state),
        lambda: finalize(state),
    ):
        answer(change)


def of_an_event(call: Callable[..., Any], name: str, value: Any) -> Any:
    return call(events=[EVENTS[0]._replace(**{name: value}), *EVENTS[1:]])


def answer(call: Callable[[], Any]) -> bool:
    """Whether the call is accepted; it fails unless a refusal has the one form, and is short."""
    refusal = None
    try:
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    except ValueError as error:
        refusal = error
    if refusal is not None:
        assert type(refusal) is ValueError
        assert FORM.fullmatch(str(refusal)), str(refusal)
        assert len(str(refusal)) < 1300
    return refusal is None


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_takes_any_kind_of_value_or_refuses_it_in_the_one_form(name: str) -> None:
    call, right = CALLS[name]
    assert answer(partial(call, **right))
    for argument in right:
        taken = {
            bad for bad, value in BAD.items() if answer(partial(call, **right | {argument: value}))
        }
        assert not taken & NEVER.keys(), f"{argument} takes {taken & NEVER.keys()}"


@pytest.mark.parametrize("part", ChunkStats._fields)
def test_every_part_of_a_state_is_an_array_or_refused(part: str) -> None:
    for value in BAD.values():
        of_a_state(part, value)


@pytest.mark.parametrize("field", Event._fields)
def test_every_field_of_an_event_is_of_its_kind_or_refused(field: str) -> None:
    play = partial(simulate, Q, K, V, LAYOUT, RULE, dout=DOUT)
    count = partial(cpcore.ledger, layout=LAYOUT, **HEADS)
    for call in (play, count):
        taken = {bad for bad, v in BAD.items() if answer(partial(of_an_event, call, field, v))}
        refused = NEVER.keys() | {"huge", "-huge", "2**64", "-1", "nan", "ring"}
        assert not taken & (refused if field == "collective" else refused | {"True"})


def test_every_function_of_the_package_is_called_here() -> None:
    called = {getattr(call, "__name__", "") for call, _ in CALLS.values()} | {"schedule"}
    functions = {n for n in cpcore.__all__ if callable(getattr(cpcore, n))}
    records = {"ChunkStats", "Event", "LedgerRow", "RankResult", "Run"}
    assert functions - records <= called
