"""Visibility against a double loop over pairs, and what it refuses."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Visibility
from tests.support.errors import refused
from tests.support.relation import double_loop

Array = NDArray[Any]
S = 7
DOCUMENTS = (None, [0, 0, 0, 1, 1, 2, 2], [0, 0, -1, 1, 1, -1, -1], [5, 0, 5, 0, 5, 0, -1])
WINDOWS = (None, 1, 2, 3, S, 100)
POSITIONS: tuple[tuple[list[int], list[int]], ...] = (
    (list(range(S)), list(range(S))),
    ([3], [3]),
    ([6, 0, 3], [2, 5, 1, 0]),
    ([0, 1], [5, 6]),
    ([5, 6], [0, 1]),
    ([2, 2, 4], [4, 4, 2]),
    ([], [0, 1]),
    ([1], []),
    ([], []),
)


def relations() -> list[Array | None]:
    return [None, np.random.default_rng(3).random((S, S)) < 0.6]


def combinations() -> list[dict[str, Any]]:
    every = itertools.product((True, False), WINDOWS, DOCUMENTS, relations())
    names = ("causal", "window", "documents", "relation")
    return [dict(zip(names, parts, strict=True)) for parts in every]


def test_block_equals_the_double_loop_for_every_combination() -> None:
    for rule, (q_pos, k_pos) in itertools.product(combinations(), POSITIONS):
        block = Visibility(**rule).block(q_pos, k_pos)
        assert block.dtype == np.bool_
        assert block.shape == (len(q_pos), len(k_pos))
        assert (block == double_loop(q_pos, k_pos, rule)).all(), (rule, q_pos, k_pos)


def test_verdict_and_pairs_say_what_the_double_loop_says() -> None:
    verdicts = set()
    for rule, (q_pos, k_pos) in itertools.product(combinations(), POSITIONS):
        table = double_loop(q_pos, k_pos, rule)
        seen = int(table.sum())
        wanted = "empty" if seen == 0 else "full" if seen == table.size else "partial"
        pairs = Visibility(**rule).pairs(q_pos, k_pos)
        assert (pairs, type(pairs)) == (seen, int)
        assert Visibility(**rule).verdict(q_pos, k_pos) == wanted
        verdicts.add(wanted)
    assert verdicts == {"empty", "full", "partial"}


def test_the_default_is_causal_and_nothing_else() -> None:
    assert Visibility().block([0, 1, 2], [0, 1, 2]).tolist() == np.tri(3, dtype=bool).tolist()
    rule = Visibility()
    assert (rule.causal, rule.window, rule.documents, rule.relation) == (True, None, None, None)


def test_a_window_of_n_shows_n_keys_and_without_causal_its_mirror_too() -> None:
    every = range(10)
    assert Visibility(window=3).block([5], every).nonzero()[1].tolist() == [3, 4, 5]
    both = Visibility(causal=False, window=3).block([5], every)
    assert both.nonzero()[1].tolist() == [3, 4, 5, 6, 7]


def test_full_relations_have_a_full_verdict_and_padding_never_has_one() -> None:
    assert Visibility(causal=False).verdict([4, 1], [2, 9]) == "full"
    assert Visibility().verdict([4, 3], [2, 0]) == "full"
    assert Visibility().verdict([1], [2]) == "empty"
    padded = Visibility(causal=False, documents=np.array([0, -1]))
    assert padded.verdict([0, 1], [0, 1]) == "partial"
    assert padded.verdict([1], [0, 1]) == "empty"


def test_padding_is_document_minus_one() -> None:
    assert Visibility(documents=np.array([0, -1, 3])).padding([2, 1, 1]).tolist() == [
        False,
        True,
        True,
    ]
    nowhere = Visibility().padding([5, 9])
    assert (nowhere.tolist(), nowhere.dtype) == ([False, False], np.dtype(bool))


def test_the_callers_arrays_are_copied_and_ours_are_read_only() -> None:
    ids, table = np.array([0, 0]), np.ones((2, 2), bool)
    rule = Visibility(causal=False, documents=ids, relation=table)
    ids[1], table[0, 0] = 7, False
    assert rule.block([0, 1], [0, 1]).all()
    assert rule.documents is not None
    assert rule.relation is not None
    assert not rule.documents.flags.writeable
    assert not rule.relation.flags.writeable
    assert ids.flags.writeable
    assert table.flags.writeable


def test_block_results_do_not_share_memory_with_the_rule() -> None:
    rule = Visibility(causal=False, relation=np.ones((2, 2), bool))
    rule.block([0, 1], [0, 1])[:] = False
    assert rule.block([0, 1], [0, 1]).all()


def test_documents_may_be_small_or_unsigned_integers_and_may_be_empty() -> None:
    for dtype in (np.int8, np.uint16, np.int32):
        rule = Visibility(documents=np.array([0, 1], dtype))
        assert rule.documents is not None
        assert rule.documents.dtype == np.int64
    empty = Visibility(documents=np.array([]))
    assert empty.block([], []).shape == (0, 0)
    with refused("q_pos", "positions below 0 (documents)", "0"):
        empty.block([0], [])


def test_numpy_booleans_and_integers_are_fine_as_settings() -> None:
    settings: dict[str, Any] = {"causal": np.False_, "window": np.int32(2)}
    rule = Visibility(**settings)
    assert rule.block([1], [0, 1, 2, 3]).tolist() == [[True, True, True, False]]
    assert type(rule.window) is int


@pytest.mark.parametrize(
    ("settings", "name", "wanted", "received"),
    [
        ({"causal": None}, "causal", "True or False", "None"),
        ({"causal": 1}, "causal", "True or False", "1"),
        ({"window": 0}, "window", "an integer of at least 1", "0"),
        ({"window": -3}, "window", "an integer of at least 1", "-3"),
        ({"window": 2.0}, "window", "an integer of at least 1", "2.0"),
        ({"window": True}, "window", "an integer of at least 1", "True"),
        ({"documents": [0.5]}, "documents", "a 1-D integer array", "float64 of shape (1,)"),
        ({"documents": [[0]]}, "documents", "a 1-D integer array", "int64 of shape (1, 1)"),
        ({"documents": [True]}, "documents", "a 1-D integer array", "bool of shape (1,)"),
        ({"documents": [0, -2]}, "documents", "ids of at least -1", "-2"),
        (
            {"documents": np.zeros((0, 2), int)},
            "documents",
            "a 1-D integer array",
            "int64 of shape (0, 2)",
        ),
        ({"relation": [[1]]}, "relation", "a square bool matrix (S, S)", "int64 of shape (1, 1)"),
        ({"relation": [[True], [True, False]]}, "relation", "an array", "lists of unequal lengths"),
        ({"relation": [True]}, "relation", "a square bool matrix (S, S)", "bool of shape (1,)"),
        (
            {"relation": [[True, True]]},
            "relation",
            "a square bool matrix (S, S)",
            "bool of shape (1, 2)",
        ),
        (
            {"relation": np.ones((2, 2, 2), bool)},
            "relation",
            "a square bool matrix (S, S)",
            "bool of shape (2, 2, 2)",
        ),
    ],
)
def test_a_bad_rule_is_refused(
    settings: dict[str, Any], name: str, wanted: str, received: str
) -> None:
    with refused(name, wanted, received):
        Visibility(**settings)


@pytest.mark.parametrize(
    ("q_pos", "k_pos", "name", "wanted", "received"),
    [
        ([-1], [0], "q_pos", "positions of at least 0", "-1"),
        ([0], [0, -2], "k_pos", "positions of at least 0", "-2"),
        ([0.0], [0], "q_pos", "a 1-D integer array", "float64 of shape (1,)"),
        ([0], [[0]], "k_pos", "a 1-D integer array", "int64 of shape (1, 1)"),
        ([3], [0], "q_pos", "positions below 3 (documents)", "3"),
        ([0], [0, 4], "k_pos", "positions below 3 (documents)", "4"),
    ],
)
def test_bad_positions_are_refused(
    q_pos: Any, k_pos: Any, name: str, wanted: str, received: str
) -> None:
    rule = Visibility(documents=np.array([0, 0, 1]))
    for ask in (rule.block, rule.pairs, rule.verdict):
        with refused(name, wanted, received):
            ask(q_pos, k_pos)


def test_positions_beyond_an_explicit_relation_are_refused() -> None:
    rule = Visibility(relation=np.ones((2, 2), bool))
    with refused("k_pos", "positions below 2 (relation)", "2"):
        rule.block([1], [2])
    with refused("positions", "positions below 2 (relation)", "5"):
        rule.padding([5])
