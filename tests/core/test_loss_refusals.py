"""A caller's mistake in labels or losses is one ValueError that says what was wrong."""

from typing import Any

import numpy as np
import pytest

from cpcore import from_lengths
from cpcore.loss import LossSum, loss_gradient, loss_sum, mean_loss, next_token_labels
from cpcore.training_pitfalls import (
    floor_divided_cu_seqlens,
    lse_in_16_bits,
    repeat_kv_heads,
    shift_after_shard,
    sum_in_16_bits,
)
from tests.support.errors import refused

FLOATS = "float16, float32 or float64"


@pytest.mark.parametrize(
    ("tokens", "wanted", "received"),
    [
        ([0.5, 1.0], "a 1-D integer array", "float64 of shape (2,)"),
        ([[1, 2]], "a 1-D integer array", "int64 of shape (1, 2)"),
        ([3, -1], "positions of at least 0", -1),
    ],
)
def test_tokens_are_ids_of_at_least_0(tokens: Any, wanted: str, received: Any) -> None:
    with refused("tokens", wanted, received):
        next_token_labels(tokens)


@pytest.mark.parametrize(
    ("documents", "wanted", "received"),
    [
        ([0, 0], "3 integers", "int64 of shape (2,)"),
        ([0.0, 0.0, 0.0], "3 integers", "float64 of shape (3,)"),
        ([[0, 0, 0]], "3 integers", "int64 of shape (1, 3)"),
        ([0, -2, 0], "ids of at least -1", -2),
    ],
)
def test_there_is_one_document_id_per_token(documents: Any, wanted: str, received: Any) -> None:
    with refused("documents", wanted, received):
        next_token_labels([1, 2, 3], documents)


GOOD: dict[str, Any] = {"logits": np.zeros((2, 3)), "labels": [0, 2]}


@pytest.mark.parametrize(
    ("arguments", "name", "wanted", "received"),
    [
        ({"logits": np.zeros((2, 3), int)}, "logits", FLOATS, "int64"),
        ({"logits": np.zeros(3)}, "logits", "shape (S, vocabulary)", (3,)),
        ({"logits": np.zeros((2, 0))}, "logits", "shape (S, vocabulary)", (2, 0)),
        ({"logits": np.zeros((1, 2, 3))}, "logits", "shape (S, vocabulary)", (1, 2, 3)),
        ({"labels": [0]}, "labels", "2 integers", "int64 of shape (1,)"),
        ({"labels": [0.0, 1.0]}, "labels", "2 integers", "float64 of shape (2,)"),
        ({"labels": [[0, 1]]}, "labels", "2 integers", "int64 of shape (1, 2)"),
        ({"labels": [0, 3]}, "labels", "-1 or ids below 3", [0, 3]),
        ({"labels": [-2, 0]}, "labels", "-1 or ids below 3", [-2, 0]),
        *(
            (
                {"logits": np.array([[0.0, bad], [0.0, 0.0]]), "labels": [0, 0]},
                "logits",
                "finite numbers where a label counts",
                "NaN or infinity",
            )
            for bad in (np.nan, np.inf, -np.inf)
        ),
    ],
)
def test_logits_and_labels_that_do_not_fit_are_refused_in_sum_and_gradient(
    arguments: dict[str, Any], name: str, wanted: str, received: Any
) -> None:
    given = GOOD | arguments
    with refused(name, wanted, received):
        loss_sum(**given)
    with refused(name, wanted, received):
        loss_gradient(**given, count=2)


@pytest.mark.parametrize("count", [1, 0, -1, 2.0, True])
def test_a_count_below_the_ranks_own_is_refused(count: Any) -> None:
    with refused("count", "an integer of at least 2", repr(count)):
        loss_gradient(**GOOD, count=count)


def test_the_wrong_ways_of_training_check_their_arguments() -> None:
    k = np.ones((2, 3, 4))
    with refused("tokens", "positions of at least 0", -1):
        shift_after_shard([-1], from_lengths([1]))
    with refused("x", "2 positions along axis 0", "shape (1,)"):
        shift_after_shard([1], from_lengths([2]))
    with refused("cp_size", "an integer of at least 1", 0):
        floor_divided_cu_seqlens([0, 4], 0)
    with refused("cu_seqlens", "positions of at least 0", -4):
        floor_divided_cu_seqlens([0, -4], 1)
    with refused("key", "a head count (axis -3) that divides 3", "shape (2, 3, 4)"):
        repeat_kv_heads(k, k, 3)
    with refused("key", "a head count (axis -3) that divides 2", "shape (3, 4)"):
        repeat_kv_heads(k[0], k[0], 2)
    with refused("value", "shape (2, 3, 'Dv')", "shape (1, 3, 4)"):
        repeat_kv_heads(k, k[:1], 2)
    with refused("q_heads", "an integer of at least 1", 0):
        repeat_kv_heads(k, k, 0)
    for name, arrays in (("key", (k.astype(int), k)), ("value", (k, k.astype(int)))):
        with refused(name, FLOATS, "int64"):
            repeat_kv_heads(*arrays, 2)
    with refused("key", "a head count (axis -3) that divides 2", "shape (0, 3, 4)"):
        repeat_kv_heads(k[:0], k[:0], 2)
    assert repeat_kv_heads(k[:1], k[:1], 3)[0].shape == (3, 3, 4)
    for function, name in ((sum_in_16_bits, "values"), (lse_in_16_bits, "lse")):
        with refused(name, FLOATS, "int64"):
            function([1, 2])


@pytest.mark.parametrize(
    ("parts", "received"),
    [
        (3.0, "float"),
        (LossSum(2.0, 1), "LossSum"),
        ([(2.0, 1)], "one of tuple"),
        ([LossSum(2.0, 1), 0.5], "one of float"),
    ],
)
def test_a_mean_is_taken_of_sums_with_their_counts(parts: Any, received: str) -> None:
    with refused("parts", "an iterable of LossSum", received):
        mean_loss(parts)


RAGGED: Any = [[1, 2], [3]]


def test_lists_of_unequal_lengths_are_named() -> None:
    with refused("documents", "an array", "lists of unequal lengths"):
        next_token_labels([1, 2], RAGGED)
    with refused("labels", "an array", "lists of unequal lengths"):
        loss_sum([[0.0, 1.0]], RAGGED)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loss_that_overflows_is_refused_and_its_gradient_is_right(dtype: Any) -> None:
    """The difference of the two logits leaves the dtype; probabilities are 1 and 0 all the same."""
    most = np.finfo(dtype).max
    logits = np.array([[most, -most]])
    with refused("logits", f"losses that fit {np.dtype(dtype)}", "an overflow"):
        loss_sum(logits, [1])
    assert loss_sum(logits, [0]) == (0.0, 1)
    assert loss_gradient(logits, [1], 1).tolist() == [[1.0, -1.0]]


def test_an_underflow_is_no_error_even_where_flags_are_raised() -> None:
    with np.errstate(all="raise"):
        assert loss_sum(np.array([[0.0, -1000.0]]), [0]) == (0.0, 1)
        assert not loss_gradient(np.array([[0.0, -1000.0]]), [0], 1).any()


@pytest.mark.parametrize(
    ("part", "argument", "wanted", "received"),
    [
        (LossSum(1.0, -1), "parts.count", "an integer of at least 0", "-1"),
        (LossSum(1.0, 0.5), "parts.count", "an integer of at least 0", "0.5"),  # type: ignore[arg-type]
        (LossSum(float("nan"), 1), "parts.sum", "a finite number", "nan"),
        (LossSum("1", 1), "parts.sum", "a finite number", "'1'"),  # type: ignore[arg-type]
    ],
)
def test_a_part_without_a_sum_or_a_count_is_refused(
    part: LossSum, argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        mean_loss([LossSum(1.0, 1), part])
