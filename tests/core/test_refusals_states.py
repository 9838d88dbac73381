"""A running state that no chunk could have produced is refused, not merged into a wrong answer."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import ChunkStats, empty_stats, finalize, merge_chunk_stats, pitfalls
from tests.support.errors import refused

Array = NDArray[Any]
GOOD = ChunkStats(np.ones((2, 3)), np.ones(2), np.ones(2))
AT_LEAST_0 = "finite numbers of at least 0"
FINITE = "finite numbers where the sum is above 0"


def row(value: float) -> Array:
    return np.array([1.0, value])


@pytest.mark.parametrize(
    ("part", "value", "wanted", "received"),
    [
        ("sum", row(np.nan), AT_LEAST_0, "others"),
        ("sum", row(-1), AT_LEAST_0, "others"),
        ("sum", row(np.inf), AT_LEAST_0, "others"),
        ("max", row(-np.inf), FINITE, "others"),
        ("max", row(np.inf), FINITE, "others"),
        ("max", row(np.nan), FINITE, "others"),
        ("max", row(1).astype(np.float16), np.dtype(np.float64), "float16"),
        ("sum", row(1).astype(np.float32), np.dtype(np.float64), "float32"),
        ("output", np.ones((2, 3), np.float16), np.dtype(np.float32), "float16"),
    ],
)
def test_an_impossible_state_is_refused_by_merge_and_finalize(
    part: str, value: Array, wanted: object, received: str
) -> None:
    """A maximum rounded to 16 bits would shift every weight rebuilt from it, unnoticed."""
    state = GOOD._replace(**{part: value})
    with refused(f"stats.{part}", wanted, received):
        finalize(state)
    with refused(f"acc.{part}", wanted, received):
        merge_chunk_stats(state, GOOD)
    with refused(f"chunk.{part}", wanted, received):
        merge_chunk_stats(GOOD, state)


def test_rows_that_saw_nothing_may_hold_anything() -> None:
    junk = np.array([1.0, np.nan])
    state = ChunkStats(np.array([[1.0], [np.nan]]), row(0), junk)
    assert finalize(state)[0].tolist() == [[1.0], [0.0]]
    assert finalize(merge_chunk_stats(state, state))[0].tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("value", [None, tuple(GOOD), (1, 2), [1.0]])
def test_what_is_no_state_is_refused(value: Any) -> None:
    for name, call in {
        "stats": lambda: finalize(value),
        "acc": lambda: merge_chunk_stats(value, GOOD),
        "chunk": lambda: merge_chunk_stats(GOOD, value),
    }.items():
        with refused(name, "a ChunkStats", type(value).__name__):
            call()


@pytest.mark.parametrize(
    "merge", [pitfalls.merge_without_rescale, pitfalls.merge_with_flipped_sign]
)
def test_wrong_merges_refuse_bad_states_all_the_same(merge: Any) -> None:
    with refused("chunk", "output of shape (2, 3)", "(1, 3)"):
        merge(GOOD, ChunkStats(np.ones((1, 3)), np.ones(1), np.ones(1)))
    with refused("lse", "float16, float32 or float64", "<U1"):
        pitfalls.add_lse("a", 1.0)


@pytest.mark.parametrize("dtype", ["text", 3, None])
def test_a_dtype_that_is_none_is_refused(dtype: Any) -> None:
    with refused("dtype", "a floating dtype", repr(dtype)):
        empty_stats((2,), 3, dtype)
    with refused("rows_shape", "a tuple (…, Q)", "3"):
        empty_stats(3, 3, np.float32)  # type: ignore[arg-type]


def test_a_result_that_its_dtype_cannot_hold_is_refused() -> None:
    """float16 ends at 65504; underflow is rounding and stays silent."""
    with refused("dtype", "results that fit float16", "an overflow"):
        finalize(GOOD._replace(output=1e6 * GOOD.output), np.float16)
    with np.errstate(all="raise"):
        tiny = finalize(
            ChunkStats(*(np.full(s, x) for s, x in (((1, 1), 1e-310), (1, 3.0), (1, 0.0))))
        )
        assert tiny[0].item() > 0
        assert finalize(GOOD._replace(output=1e-30 * GOOD.output), np.float16)[0].max() == 0
