"""A layout that is no partition, and data that does not fit it, are refused with one error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cpcore import Layout, contiguous, from_lengths, from_owned, per_document, striped, zigzag
from tests.support.errors import refused


@pytest.mark.parametrize(
    ("make", "name", "wanted", "received"),
    [
        (lambda: contiguous(-1, 2), "seq_len", "an integer of at least 0", "-1"),
        (lambda: contiguous(4.0, 2), "seq_len", "an integer of at least 0", "4.0"),  # type: ignore[arg-type]
        (lambda: contiguous(4, 0), "cp_size", "an integer of at least 1", "0"),
        (lambda: zigzag(4, 0), "cp_size", "an integer of at least 1", "0"),
        (lambda: zigzag(-4, 1), "seq_len", "an integer of at least 0", "-4"),
        (lambda: zigzag(4, True), "cp_size", "an integer of at least 1", "True"),
        (lambda: striped(4, -1), "cp_size", "an integer of at least 1", "-1"),
        (lambda: striped(4, 2, stripe=0), "stripe", "an integer of at least 1", "0"),
        (lambda: from_lengths([2, -1]), "lengths", "an integer of at least 0", "-1"),
        (lambda: from_lengths([]), "owned", "at least one rank", "none"),
        (lambda: from_owned([]), "owned", "at least one rank", "none"),
        (
            lambda: from_owned([[0, 1], [1]]),
            "owned",
            "each position 0 … 2 exactly once",
            "1 where 2 should stand, sorted",
        ),
        (
            lambda: from_owned([[0], [2]]),
            "owned",
            "each position 0 … 1 exactly once",
            "2 where 1 should stand, sorted",
        ),
        (lambda: from_owned(None), "owned", "a list with one entry per rank", "NoneType"),  # type: ignore[arg-type]
        (lambda: from_lengths(5), "lengths", "a list with one entry per rank", "int"),  # type: ignore[arg-type]
        (lambda: Layout(3), "owned", "positions of each rank", "int"),  # type: ignore[arg-type]
        (
            lambda: from_owned([np.array([0, 2**63], np.uint64)]),
            "owned[0]",
            f"integers of at most {2**63 - 1}",
            str(2**63),
        ),
        (
            lambda: striped(4, 2, 10**30),
            "stripe",
            f"an integer of at most {2**63 - 1}",
            "a larger one",
        ),
        (
            lambda: per_document([0, 4], 2, layout="zigzag"),  # type: ignore[arg-type]
            "layout",
            "a function of (seq_len, cp_size)",
            "'zigzag'",
        ),
        (
            lambda: from_owned([[0], [[1], [2, 3]]]),  # type: ignore[list-item]
            "owned[1]",
            "an array",
            "lists of unequal lengths",
        ),
        (lambda: from_owned([[0], [-1]]), "owned[1]", "positions of at least 0", "-1"),
        (lambda: from_owned([[0.0]]), "owned[0]", "a 1-D integer array", "float64 of shape (1,)"),
        (
            lambda: from_owned([[0], [[1]]]),
            "owned[1]",
            "a 1-D integer array",
            "int64 of shape (1, 1)",
        ),
        (lambda: per_document([1, 4], 2), "cu_seqlens", "0 followed by rising ends", "[1, 4]"),
        (
            lambda: per_document([0, 4, 3], 2),
            "cu_seqlens",
            "0 followed by rising ends",
            "[0, 4, 3]",
        ),
        (lambda: per_document([], 2), "cu_seqlens", "0 followed by rising ends", "[]"),
        (
            lambda: per_document([[0, 2]], 2),
            "cu_seqlens",
            "a 1-D integer array",
            "int64 of shape (1, 2)",
        ),
        (lambda: per_document([0, 2], 0), "cp_size", "an integer of at least 1", "0"),
    ],
)
def test_a_bad_layout_is_refused(
    make: Callable[[], Layout], name: str, wanted: str, received: str
) -> None:
    with refused(name, wanted, received):
        make()


def test_a_document_layout_with_another_rank_count_is_refused() -> None:
    for ranks in (1, 3):
        with refused("layout", "2 ranks, 4 positions", f"{ranks} ranks, 4 positions"):
            per_document(
                [0, 4], 2, layout=lambda seq_len, _, ranks=ranks: contiguous(seq_len, ranks)
            )
    with refused("layout", "2 ranks, 4 positions", "2 ranks, 3 positions"):
        per_document([0, 4], 2, layout=lambda seq_len, ranks: contiguous(seq_len - 1, ranks))
    with refused("layout", "2 ranks, 3 positions", "2 ranks, 4 positions"):
        per_document([0, 4, 7], 2, layout=lambda _, ranks: contiguous(4, ranks))


def test_parts_of_other_shapes_and_axes_that_are_no_integer_are_refused() -> None:
    layout = contiguous(4, 2)
    with refused("parts[1]", "the other axes of parts[0], (3,)", (2,)):
        layout.unshard([np.ones((2, 3)), np.ones((2, 2))])
    with refused("axis", "an integer", "0.0"):
        layout.shard(np.ones((4, 3)), axis=0.0)  # type: ignore[arg-type]
    with refused("x", "an array", "lists of unequal lengths"):
        layout.shard([[1.0], [1.0, 2.0]])


def test_data_of_another_length_is_refused() -> None:
    layout = contiguous(4, 2)
    with refused("x", "4 positions along axis -2", "shape (5, 1)"):
        layout.shard(np.zeros((5, 1)))
    with refused("x", "4 positions along axis -2", "shape (4,)"):
        layout.shard(np.zeros(4))
    with refused("x", "4 positions along axis 1", "shape (4,)"):
        layout.shard(np.zeros(4), axis=1)
    with refused("x", "4 positions along axis -3", "shape (4, 4)"):
        layout.shard(np.zeros((4, 4)), axis=-3)
    with refused("parts", "2 arrays, one per rank", "1"):
        layout.unshard([np.zeros((2, 1))])
    with refused("parts[1]", "2 positions along axis -2", "shape (3, 1)"):
        layout.unshard([np.zeros((2, 1)), np.zeros((3, 1))])


@pytest.mark.parametrize("value", [3, None, np.array(3)], ids=repr)
def test_what_is_no_list_is_refused_by_name(value: Any) -> None:
    calls = {"lengths": from_lengths, "owned": from_owned, "parts": contiguous(4, 2).unshard}
    for name, call in calls.items():
        with refused(name, "a list with one entry per rank", type(value).__name__):
            call(value)
