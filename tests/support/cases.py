"""Random attention problems for hypothesis: shapes, splits, rules, dtypes and memory layouts."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.relation import double_loop
from tests.support.tolerance import Problem

Array = NDArray[Any]
EXPLORING = os.environ.get("CPCORE_EXPLORE") == "1"
FLOATS = (np.float16, np.float32, np.float64)
VIEWS = ("plain", "fortran", "swapped", "reversed", "strided", "readonly")


@dataclass(frozen=True)
class Case:
    """A problem whose keys are cut into chunks; rule None means full attention."""

    problem: Problem
    lengths: list[int]
    rule: dict[str, Any] | None
    q_pos: list[int]
    k_pos: list[int]

    def split(self, array: Array, axis: int = -2) -> list[Array]:
        return np.split(array, np.cumsum(self.lengths)[:-1], axis=axis)

    def key_positions(self) -> list[Array]:
        return self.split(np.array(self.k_pos, np.int64), axis=0)


def examples(count: int) -> settings:
    """Run a property on this many examples; on twenty times as many when exploring."""
    return settings(max_examples=20 * count if EXPLORING else count)


def as_view(array: Array, kind: str) -> Array:
    """The same numbers in another memory layout; gaps hold NaN, so that reading them shows."""
    if kind == "fortran":
        return np.asfortranarray(array)
    if kind == "swapped":
        return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind == "reversed":
        return array[..., ::-1, :].copy()[..., ::-1, :]
    if kind == "strided":
        roomy = np.full((*array.shape[:-2], array.shape[-2] * 2, array.shape[-1] * 3), np.nan)
        roomy = roomy.astype(array.dtype)
        roomy[..., ::2, ::3] = array
        return roomy[..., ::2, ::3]
    array = array.copy()
    array.setflags(write=kind != "readonly")
    return array


def splits(longest: int = 5) -> st.SearchStrategy[list[int]]:
    """Chunk lengths: a few of any length, many of one key, or forty of which some are empty."""
    return st.one_of(
        st.lists(st.integers(0, longest), min_size=1, max_size=6),
        st.integers(1, 9).map(lambda n: [1] * n),
        st.lists(st.integers(0, 2), min_size=40, max_size=40),
    )


@st.composite
def rules(draw: st.DrawFn, length: int) -> dict[str, Any]:
    """Keyword arguments of a Visibility over `length` positions."""
    rule: dict[str, Any] = {"causal": draw(st.booleans())}
    if draw(st.booleans()):
        rule["window"] = draw(st.integers(1, length + 2))
    if draw(st.booleans()):
        ids = st.integers(-1, 2)
        rule["documents"] = np.array(
            draw(st.lists(ids, min_size=length, max_size=length)), np.int64
        )
    if draw(st.integers(0, 3)) == 0:
        seed = draw(st.integers(0, 2**16))
        rule["relation"] = np.random.default_rng(seed).random((length, length)) < 0.7
    return rule


@st.composite
def cases(draw: st.DrawFn, *, backward: bool = False) -> Case:
    """Any split of any small problem: 0 queries, 0 keys, groups of heads and strided views too."""
    lengths = draw(splits())
    total = sum(lengths)
    rule = draw(st.none() | rules(total))
    k_pos = list(range(total))
    if rule is not None and draw(st.booleans()):
        k_pos = draw(st.permutations(k_pos))
    if rule is None:
        q_pos = list(range(draw(st.integers(0, 6))))
    elif total == 0:
        q_pos = []
    else:
        q_pos = draw(st.lists(st.integers(0, total - 1), max_size=8))
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    lead = draw(st.sampled_from([(), (kv_heads,), (2, kv_heads), (1, 2, kv_heads)]))
    q_lead = (*lead[:-1], lead[-1] * group) if lead else ()
    width, value_width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(FLOATS))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    size = draw(st.sampled_from([1.0, 1.0, 0.0, 1e-3, 20.0]))

    def numbers(*shape: int, size: float = 1.0) -> Array:
        view = draw(st.sampled_from(VIEWS))
        return as_view((size * rng.standard_normal(shape)).astype(dtype), view)

    problem = Problem(
        q=numbers(*q_lead, len(q_pos), width, size=size),
        k=numbers(*lead, total, width),
        v=numbers(*lead, total, value_width),
        visible=None if rule is None else double_loop(q_pos, k_pos, rule),
        scale=draw(st.sampled_from([None, None, 0.3, -1.5])),
        dout=numbers(*q_lead, len(q_pos), value_width) if backward else None,
    )
    return Case(problem, lengths, rule, q_pos, k_pos)
