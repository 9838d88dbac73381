"""Faults of real systems in who sees whom once the sequence is cut in two.

Every score is 0, so each row's answer is the plain mean of the values it sees.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Visibility, ring_attention

Array = NDArray[Any]
V1248 = np.array([1.0, 2.0, 4.0, 8.0])[:, None]


def ring_of_two(visibility: Visibility, v: Array, queries: list[Any], keys: list[Any]) -> Any:
    """Both ranks of a ring of two with uniform scores, with the given positions."""
    halves = np.split(v, 2)
    uniform = [np.zeros_like(half) for half in halves]
    results = []
    for q, q_pos in zip(uniform, queries, strict=True):
        where = {"query_positions": q_pos, "key_positions": keys}
        results.append(ring_attention(q, uniform, halves, visibility=visibility, **where))
    return [out.ravel().tolist() for out in results]


def test_c11_the_triangle_is_applied_by_global_position() -> None:
    where, rule = [[0, 1], [2, 3]], Visibility()
    assert ring_of_two(rule, V1248, where, where) == [[1, 1.5], [pytest.approx(7 / 3), 3.75]]
    local = ring_of_two(rule, V1248, [[0, 1], [0, 1]], [[0, 1], [0, 1]])
    assert local[1][0] == 2.5  # row 2 misses key 1


def test_c12_a_window_stays_a_window_across_the_rank_border() -> None:
    where = [[0, 1], [2, 3]]
    assert ring_of_two(Visibility(window=2), V1248, where, where) == [[1, 1.5], [3, 6]]
    without = ring_of_two(Visibility(), V1248, where, where)
    assert without[1] != [3, 6]


def test_c13_packed_documents_never_see_each_other() -> None:
    v, where = np.array([1.0, 3.0, 10.0, 30.0])[:, None], [[0, 1], [2, 3]]
    packed = Visibility(documents=np.array([0, 0, 1, 1]))
    assert ring_of_two(packed, v, where, where) == [[1, 2], [10, 20]]
    mixed = ring_of_two(Visibility(), v, where, where)
    assert mixed == [[1, 2], [pytest.approx(14 / 3), 11]]
