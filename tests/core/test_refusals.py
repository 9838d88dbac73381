"""A caller's mistake in a chunk, a merge or a result is one ValueError that says what was wrong."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import ChunkStats, attention_chunk_stats, empty_stats, finalize, merge_chunk_stats
from tests.support.errors import refused

Array = NDArray[Any]


def ones(*shape: int, dtype: Any = np.float64) -> Array:
    return np.ones(shape, dtype)


NAN, INF, MANY = np.nan, np.inf, 1.5e308
FLOATS = "float16, float32 or float64"
FINITE = ("finite numbers in every used slot", "NaN or infinity")
DIVIDES = "a head count (axis -3) that divides"
NUMBER = "a finite number"
GOOD_ARGUMENTS: dict[str, Any] = {
    "query": ones(2, 3),
    "key_chunk": ones(4, 3),
    "value_chunk": ones(4, 5),
}


def heads(query: int, key: int) -> dict[str, Array]:
    return {
        "query": ones(query, 2, 3),
        "key_chunk": ones(key, 4, 3),
        "value_chunk": ones(key, 4, 5),
    }


@pytest.mark.parametrize(
    ("arguments", "name", "wanted", "received"),
    [
        ({"query": ones(2, 3, dtype=int)}, "query", FLOATS, "int64"),
        ({"key_chunk": ones(4, 3, dtype=complex)}, "key_chunk", FLOATS, "complex128"),
        ({"value_chunk": ones(4, 5, dtype=bool)}, "value_chunk", FLOATS, "bool"),
        ({"query": ones(3)}, "query", "at least 2 axes (…, Q, D)", "shape (3,)"),
        ({"query": ones(2, 0)}, "query", "a width D of at least 1", "shape (2, 0)"),
        ({"key_chunk": ones(1, 4, 3)}, "key_chunk", "2 axes like query", "shape (1, 4, 3)"),
        ({"key_chunk": ones(4, 2)}, "key_chunk", "width D = 3 like query", "shape (4, 2)"),
        ({"value_chunk": ones(3, 5)}, "value_chunk", "shape (4, 'Dv')", "shape (3, 5)"),
        ({"value_chunk": ones(4)}, "value_chunk", "shape (4, 'Dv')", "shape (4,)"),
        (
            heads(2, 2) | {"key_chunk": ones(2, 4, 7)},
            "key_chunk",
            "width D = 3 like query",
            "shape (2, 4, 7)",
        ),
        (
            heads(2, 2) | {"value_chunk": ones(2, 3, 5)},
            "value_chunk",
            "shape (2, 4, 'Dv')",
            "shape (2, 3, 5)",
        ),
        (heads(4, 3), "key_chunk", f"{DIVIDES} 4", "shape (3, 4, 3)"),
        (heads(2, 4), "key_chunk", f"{DIVIDES} 2", "shape (4, 4, 3)"),
        (heads(2, 0), "key_chunk", f"{DIVIDES} 2", "shape (0, 4, 3)"),
        ({"visible": ones(2, 4)}, "visible", "bool (True = may attend)", "float64"),
        ({"scale": NAN}, "scale", NUMBER, "nan"),
        ({"scale": -INF}, "scale", NUMBER, "-inf"),
        ({"scale": 1 + 0j}, "scale", NUMBER, "(1+0j)"),
        ({"scale": "1"}, "scale", NUMBER, "'1'"),
        ({"scale": True}, "scale", NUMBER, "True"),
        ({"scale": [1.0]}, "scale", NUMBER, "[1.0]"),
        ({"query": NAN * ones(2, 3)}, "query", *FINITE),
        ({"key_chunk": INF * ones(4, 3)}, "key_chunk", *FINITE),
        ({"key_chunk": -INF * ones(4, 3)}, "key_chunk", *FINITE),
        (
            {"value_chunk": NAN * ones(4, 5), "visible": np.eye(2, 4, dtype=bool)},
            "value_chunk",
            *FINITE,
        ),
        (
            {"value_chunk": MANY * ones(4, 5)},
            "value_chunk",
            "a weighted sum that fits float64",
            "an overflow",
        ),
        (
            {
                "query": ones(2, 4, 2, 3),
                "key_chunk": ones(3, 4, 4, 3),
                "value_chunk": ones(3, 4, 4, 5),
            },
            "key_chunk",
            "leading axes (2,)",
            "shape (3, 4, 4, 3)",
        ),
    ],
)
def test_a_chunk_summary_refuses(
    arguments: dict[str, Any], name: str, wanted: str, received: str
) -> None:
    with refused(name, wanted, received):
        attention_chunk_stats(**(GOOD_ARGUMENTS | arguments))


@pytest.mark.parametrize("shape", [(4, 2), (2, 2, 4), (3, 4)])
def test_a_mask_that_does_not_broadcast_is_refused(shape: tuple[int, ...]) -> None:
    with refused("visible", "a shape that broadcasts to (2, 4)", shape):
        attention_chunk_stats(**GOOD_ARGUMENTS, visible=ones(*shape, dtype=bool))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_visible_score_that_overflows_is_refused(sign: int) -> None:
    large = 1e200 * ones(1, 1)
    with refused("query and key_chunk", "finite scores in float64", "an overflow"):
        attention_chunk_stats(large, sign * large, ones(1, 1))


GOOD = ChunkStats(ones(2, 3), ones(2), ones(2))


@pytest.mark.parametrize(
    "state",
    [
        GOOD._replace(output=ones(3)),
        GOOD._replace(output=np.array(1.0)),
        GOOD._replace(sum=ones(3)),
        GOOD._replace(max=ones(2, 1)),
    ],
)
def test_a_malformed_state_is_refused_on_either_side_and_in_finalize(state: ChunkStats) -> None:
    shapes, received = "shapes (…, Q, Dv), (…, Q), (…, Q)", tuple(x.shape for x in state)
    with refused("acc", shapes, received):
        merge_chunk_stats(state, GOOD)
    with refused("chunk", shapes, received):
        merge_chunk_stats(GOOD, state)
    with refused("stats", shapes, received):
        finalize(state)


@pytest.mark.parametrize("part", ["output", "sum", "max"])
def test_a_state_of_integers_is_refused(part: str) -> None:
    state = GOOD._replace(**{part: getattr(GOOD, part).astype(int)})
    with refused(f"acc.{part}", FLOATS, "int64"):
        merge_chunk_stats(state, GOOD)
    with refused(f"chunk.{part}", FLOATS, "int64"):
        merge_chunk_stats(GOOD, state)
    with refused(f"stats.{part}", FLOATS, "int64"):
        finalize(state)


def test_states_of_different_queries_widths_or_dtypes_do_not_merge() -> None:
    rows = ChunkStats(ones(1, 3), ones(1), ones(1))
    width = ChunkStats(ones(2, 1), ones(2), ones(2))
    narrow = ChunkStats(*(x.astype(np.float32) for x in GOOD))
    with refused("chunk", "output of shape (2, 3)", "(1, 3)"):
        merge_chunk_stats(GOOD, rows)
    with refused("chunk", "output of shape (2, 3)", "(2, 1)"):
        merge_chunk_stats(GOOD, width)
    with refused("chunk", "output of dtype float64", "float32"):
        merge_chunk_stats(GOOD, narrow)


def test_a_merge_that_overflows_is_refused_not_returned_as_infinity() -> None:
    state = GOOD._replace(output=MANY * ones(2, 3))
    with refused("chunk", "a weighted sum that fits float64", "an overflow"):
        merge_chunk_stats(state, state)


def test_neutral_states_and_results_have_floating_dtypes_and_whole_sizes() -> None:
    with refused("dtype", "a floating dtype", "int64"):
        empty_stats((2,), 3, np.int64)
    with refused("dtype", "a floating dtype", "complex64"):
        finalize(GOOD, np.complex64)
    with refused("rows_shape", "an integer of at least 0", -1):
        empty_stats((2, -1), 3, np.float32)
    with refused("value_dim", "an integer of at least 0", -3):
        empty_stats((2,), -3, np.float32)
