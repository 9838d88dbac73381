"""What is refused for its kind or its size, in the words of the error, and before any work."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cpcore
from cpcore import (
    ChunkStats,
    Dropout,
    attention_chunk_stats,
    contiguous,
    dense_attention,
    dense_attention_backward,
    empty_stats,
    finalize,
    from_lengths,
    ledger,
    merge_chunk_stats,
    per_document,
    ring_attention,
    schedule,
    simulate,
    striped,
    zigzag,
)
from cpcore.checks import MOST_POSITIONS, MOST_RANKS
from cpcore.loss import LossSum, mean_loss
from cpcore.packing import pad_packed
from cpcore.pitfalls import add_lse, equal_weight_mean, ring_attention_with
from cpcore.training_pitfalls import (
    averaged_over_ranks,
    lse_in_16_bits,
    mean_of_rank_means,
    shift_after_shard,
    sum_in_16_bits,
)
from tests.support.errors import refused

Array = NDArray[Any]
X = np.ones((4, 2))
LAYOUT = contiguous(4, 2)
HUGE = 10**400
FLOATS = "float16, float32 or float64"
PROTOCOLS = "one of ring, ring_full_return, direct, all_gather"
MANY = 2**62


def test_every_module_of_a_training_step_is_reached_by_importing_the_package() -> None:
    names = "agreements faults loss packing pitfalls positions replay_faults training_pitfalls"
    code = f"import cpcore; [getattr(cpcore, name).__doc__[0] for name in {names.split()}]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert set(names.split()) <= set(cpcore.__all__)


@pytest.mark.parametrize("scale", [HUGE, -HUGE], ids=["HUGE", "-HUGE"])
def test_a_scale_beyond_every_float_is_no_finite_number(scale: Any) -> None:
    number = "a finite number"
    with refused("scale", number, repr(scale)):
        attention_chunk_stats(X, X, X, scale=scale)
    with refused("scale", number, repr(scale)):
        ring_attention(X, [X], [X], scale=scale)
    with refused("scale", number, repr(scale)):
        simulate(X, X, X, LAYOUT, None, scale=scale)
    with refused("scale", number, "a huge one"):
        dense_attention(X, X, X, scale=scale)


@pytest.mark.parametrize(
    ("keep", "wanted", "received"),
    [
        (np.ones((4, 4), int), FLOATS, "int64"),
        (np.ones((4, 4), bool), FLOATS, "bool"),
        ([[1.0, 2.0], [3.0]], "an array", "lists of unequal lengths"),
        (np.ones((3, 4)), "a shape that broadcasts to (4, 4)", (3, 4)),
        (np.ones((2, 4, 4)), "a shape that broadcasts to (4, 4)", (2, 4, 4)),
        (-np.ones((4, 4)), "finite factors of at least 0 in float64", "others"),
        (np.full((4, 4), np.nan), "finite factors of at least 0 in float64", "others"),
        (np.full((4, 4), np.inf), "finite factors of at least 0 in float64", "others"),
    ],
)
def test_a_factor_of_dropout_is_checked_like_the_oracles(
    keep: Any, wanted: str, received: object
) -> None:
    with refused("keep", wanted, received):
        attention_chunk_stats(X, X, X, keep=keep)


def test_a_factor_that_the_state_cannot_hold_is_refused_and_one_that_broadcasts_is_not() -> None:
    x = X.astype(np.float32)
    with refused("keep", "finite factors of at least 0 in float32", "others"):
        attention_chunk_stats(x, x, x, keep=np.full((4, 4), 1e300))
    factors = np.array([[0.0, 2.0, 2.0, 0.0]])
    out, _ = finalize(attention_chunk_stats(X, X, np.arange(8.0).reshape(4, 2), keep=factors))
    assert out.tolist() == [[3.0, 4.0]] * 4  # half of rows 1 and 2, doubled


def test_keep_is_checked_before_any_score_is_computed() -> None:
    large = 1e200 * X
    with refused("keep", FLOATS, "int64"):
        attention_chunk_stats(large, large, X, keep=np.ones((4, 4), int))


@pytest.mark.parametrize("returned", [None, [[0, 1], [2, 3]], 2])
def test_a_layout_function_that_returns_no_layout_is_refused(returned: Any) -> None:
    with refused("layout", "a function that returns a Layout", repr(returned)):
        per_document([0, 4], 2, layout=lambda *_: returned)


@pytest.mark.parametrize("value", [np.array(["ring", "direct"]), np.ones(2), ["ring"], 3])
def test_a_protocol_or_a_fault_that_is_no_name_is_refused(value: Any) -> None:
    with refused("protocol", PROTOCOLS, repr(value)):
        schedule(LAYOUT, None, protocol=value)
    for fault in (value, (value, 0, 1), (np.ones(2), 0, 1)):
        with pytest.raises(ValueError, match=r"^fault: expected \('lost_return', rank, owner\) or"):
            simulate(X, X, X, LAYOUT, None, fault=fault)


def test_sizes_that_would_fill_the_memory_are_refused_before_any_array() -> None:
    positions, ranks = (f"an integer of at most {n}" for n in (MOST_POSITIONS, MOST_RANKS))
    for cut in (contiguous, zigzag, striped):
        with refused("seq_len", positions, "a larger one"):
            cut(MOST_POSITIONS + 1, 2)
        with refused("cp_size", ranks, "a larger one"):
            cut(4, MOST_RANKS + 1)
    with refused("cp_size", ranks, "a larger one"):
        per_document([0, 4], MANY)
    with refused("cu_seqlens[-1]", positions, "a larger one"):
        per_document([0, MANY], 2)
    with refused("sum of lengths", positions, "a larger one"):
        from_lengths([MANY, MANY])
    with refused("multiple", positions, "a larger one"):
        pad_packed([0, 3], MANY)
    with refused("multiple", f"at most {MOST_POSITIONS} padded slots", 2 * MOST_POSITIONS):
        pad_packed([0, 3, 5], MOST_POSITIONS)
    for rows in ((MANY, 1), (2**20, 2**20)):
        with refused("rows_shape and value_dim", f"at most {2**31} numbers", rows[0] * rows[1] * 3):
            empty_stats(rows, 1, float)
    many_axes = (1,) * 32
    with refused("rows_shape", "a tuple (…, Q)", repr(many_axes)):
        empty_stats(many_axes, 1, float)
    assert empty_stats(many_axes[1:], 1, float).output.ndim == 32
    assert len(contiguous(4, MOST_RANKS).owned) == MOST_RANKS


def test_an_error_is_short_whatever_was_received() -> None:
    with refused("seq_len", "an integer of at least 0", "int too long to write"):
        contiguous(-(10**5000), 2)
    with refused("scale", "a finite number", f"[{'1.0, ' * 99}1.0, …"):
        attention_chunk_stats(X, X, X, scale=[1.0] * 9999)  # type: ignore[arg-type]


def test_durations_are_no_integers() -> None:
    day = np.timedelta64(4)
    with refused("seq_len", "an integer of at least 0", repr(day)):
        contiguous(day, 2)  # type: ignore[arg-type]
    with refused("j", "integers", "timedelta64[s]"):
        Dropout(0.5, 1).keep(0, 0, [0], np.array([1], "m8[s]"))


def test_a_masked_array_is_refused_for_its_hidden_entries_would_count() -> None:
    masked: Any = np.ma.masked_array(X, mask=X > 0)
    for call in (
        lambda: attention_chunk_stats(masked, X, X),
        lambda: dense_attention(masked, X, X),
    ):
        with refused("query", "an array without a mask", "a masked one"):
            call()


def test_gradients_that_overflow_are_refused_by_the_oracle_as_by_the_ring() -> None:
    """Under raised flags, too: the error is the package's, not numpy's."""
    large = X * 1e200
    for dtype in (np.float32, np.float64):
        big = X.astype(dtype) * dtype(1e30 if dtype is np.float32 else 1e200)
        small = X.astype(dtype)
        with (
            np.errstate(all="raise"),
            refused("dout", f"gradients that fit {np.dtype(dtype)}", "an overflow"),
        ):
            dense_attention_backward(small, small, big, big)
    with refused("dout", "gradients that fit float64", "an overflow"):
        simulate(X, X, large, LAYOUT, None, dout=large)
    with refused("dout", "finite numbers in seen slots", "NaN or infinity"):
        dense_attention_backward(*[X.astype(np.float32)] * 3, large)


@pytest.mark.parametrize("key", [np.float64(1.0), np.ones(2)])
def test_the_oracle_refuses_a_key_with_fewer_axes(key: Any) -> None:
    shapes = f"(4, 2), {np.shape(key)}, (4, 2)"
    with refused("key", "(…, K, D) to fit a query (…, Q, D)", shapes):
        dense_attention(X, key, X)


def test_the_oracle_names_lists_of_unequal_lengths() -> None:
    with refused("visible", "an array", "unequal lengths"):
        dense_attention(X, X, X, visible=[[True], [True, False]])


STATE = ChunkStats(np.ones((1, 2)), np.ones(1), np.zeros(1))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_state_whose_seen_rows_are_not_finite_is_refused(bad: float) -> None:
    state = STATE._replace(output=np.array([[1.0, bad]]))
    with refused("stats.output", "finite numbers where the sum is above 0", "others"):
        finalize(state)
    blind = state._replace(sum=np.zeros(1))
    assert finalize(blind)[0].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("part", ChunkStats._fields)
@pytest.mark.parametrize("value", [1.0, [1.0], np.float64(1.0)])
def test_a_part_of_a_state_that_is_no_array_is_refused(part: str, value: Any) -> None:
    with refused(f"chunk.{part}", "an array", type(value).__name__):
        merge_chunk_stats(STATE, STATE._replace(**{part: value}))


def test_sums_and_quotients_that_overflow_are_refused_not_returned_as_infinity() -> None:
    large = STATE._replace(sum=np.array([1.7e308]))
    with refused("chunk", "a weighted sum that fits float64", "an overflow"):
        merge_chunk_stats(large, large)
    tiny = ChunkStats(np.full((1, 2), 1e300), np.array([1e-300]), np.zeros(1))
    with np.errstate(all="raise"), refused("dtype", "results that fit float64", "an overflow"):
        finalize(tiny)


def test_an_output_that_its_dtype_cannot_hold_names_the_query() -> None:
    query, values = X.astype(np.float16), [X * 1e6]
    for attend in (ring_attention, equal_weight_mean):
        with refused("query", "results that fit float16", "an overflow"):
            attend(query, [X], values)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"rank": False}, "an integer as rank"),
        ({"pairs": True}, "an integer as pairs"),
        ({"step": -1}, f"step and pairs from 0 to {2**63 - 1}"),
        ({"pairs": 2**64}, f"step and pairs from 0 to {2**63 - 1}"),
        ({"collective": 1}, "True or False as collective"),
        ({"collective": np.ones(2)}, "True or False as collective"),
        ({"sent_tokens": 3}, "tokens of at most 2, the longest shard"),
        ({"phase": np.array(["forward"] * 2)}, "a phase and a verdict that exist"),
        ({"stream": np.array(["kv"] * 2)}, "the stream of their phase"),
    ],
)
def test_an_event_with_a_field_of_another_kind_is_refused(
    change: dict[str, Any], wanted: str
) -> None:
    first, *rest = schedule(LAYOUT, None)
    changed = first._replace(**change)
    with refused("events", wanted, changed):
        simulate(X, X, X, LAYOUT, None, dout=X, events=[changed, *rest])
    with refused("events", wanted, changed):
        ledger([changed, *rest], LAYOUT, q_heads=1, kv_heads=1, head_dim=1)


def test_a_mean_adds_sums_and_counts_that_do_not_wrap() -> None:
    most = np.int64(2**63 - 1)
    assert mean_loss([LossSum(1.0, most)] * 2) == 2 / (2 * (2**63 - 1))  # type: ignore[arg-type]
    with refused("parts", "sums that fit a float together", "an overflow"):
        mean_loss([LossSum(1.7e308, 1)] * 2)
    with refused("parts.sum", "a finite number", str(HUGE)):
        mean_loss([LossSum(HUGE, 1)])
    with refused("parts.sum", "a finite number", "True"):
        mean_loss([LossSum(True, 1)])


def test_the_wrong_ways_take_the_kinds_of_the_right_ones() -> None:
    with refused("parts", "an iterable of LossSum", "one of tuple"):
        mean_of_rank_means([(1.0, 2)])  # type: ignore[list-item]
    with refused("layout", "a Layout", "list"):
        shift_after_shard([1, 2], [[0], [1]])  # type: ignore[arg-type]
    with refused("gradients", "a list with one array per rank", "dict"):
        averaged_over_ranks({})  # type: ignore[arg-type]
    with refused("gradients[1]", "shape (4, 2)", (2,)):
        averaged_over_ranks([X, X[0]])
    with refused("values", "at least 1 axis", "a single number"):
        sum_in_16_bits(np.float64(1.0))
    with refused("other", "shape (4, 2) like lse", (2,)):
        add_lse(X, X[0])
    with refused("lse", "finite numbers or -inf", "NaN or +inf"):
        add_lse([np.nan], [0.0])
    with refused("merge", "a function of two ChunkStats", "None"):
        ring_attention_with(None, X, [X], [X])  # type: ignore[arg-type]
    with refused("merge", "a function that returns a ChunkStats", "3"):
        ring_attention_with(lambda *_: 3, X, [X], [X])  # type: ignore[arg-type,return-value]


def test_numbers_beyond_16_bits_become_infinite_without_a_warning() -> None:
    with np.errstate(all="raise"):
        assert lse_in_16_bits(np.array([1e6, 1e-30])).tolist() == [np.inf, 0.0]
        assert sum_in_16_bits(np.array([1e6, 1.0])) == np.inf
