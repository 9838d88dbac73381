"""A caller's mistake in the chunks, positions or scale of `ring_attention` is one clear error."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import Visibility, attention_chunk_stats, ring_attention
from tests.support.errors import refused

Array = NDArray[Any]


def ones(*shape: int, dtype: Any = np.float64) -> Array:
    return np.ones(shape, dtype)


FLOATS = "float16, float32 or float64"
FINITE = ("finite numbers in every used slot", "NaN or infinity")
INTEGERS = "a 1-D integer array"
CAUSAL = Visibility()
Q, K, V = ones(3, 1), [ones(2, 1), ones(1, 1)], [ones(2, 4), ones(1, 4)]
GOOD: dict[str, Any] = {"query": Q, "key_chunks": K, "value_chunks": V}


def key(second: Array) -> dict[str, Any]:
    return {"key_chunks": [K[0], second]}


def value(second: Array) -> dict[str, Any]:
    return {"value_chunks": [V[0], second]}


@pytest.mark.parametrize(
    ("arguments", "name", "wanted", "received"),
    [
        ({"key_chunks": [], "value_chunks": []}, "key_chunks", "at least one chunk", "none"),
        ({"value_chunks": V[:1]}, "value_chunks", "2 chunks", 1),
        ({"query": ones(3, 1, dtype=int)}, "query", FLOATS, "int64"),
        (key(ones(1, 1, dtype=int)), "key_chunks[1]", FLOATS, "int64"),
        (value(ones(1, 4, dtype=complex)), "value_chunks[1]", FLOATS, "complex128"),
        (key(ones(1, 2)), "key_chunks[1]", "width D = 1 like query", "shape (1, 2)"),
        (value(ones(2, 4)), "value_chunks[1]", "shape (1, 'Dv')", "shape (2, 4)"),
        (value(ones(1, 3)), "value_chunks[1]", "heads and width of chunk 0, (2, 4)", "(1, 3)"),
        (key(np.nan * ones(1, 1)), "key_chunks[1]", *FINITE),
        (value(np.inf * ones(1, 4)), "value_chunks[1]", *FINITE),
        ({"query": np.nan * Q, "visibility": CAUSAL}, "query", *FINITE),
        ({"scale": np.nan}, "scale", "a finite number", "nan"),
        ({"scale": np.nan, "query": ones(0, 1)}, "scale", "a finite number", "nan"),
        ({"query_positions": [0, 1]}, "query_positions", "3 positions", 2),
        ({"query_positions": [0, 1, -1]}, "query_positions", "positions of at least 0", -1),
        ({"query_positions": [0.0] * 3}, "query_positions", INTEGERS, "float64 of shape (3,)"),
        ({"key_positions": [[0, 1]]}, "key_positions", "2 arrays", 1),
        ({"key_positions": [[0, 1], [2, 3]]}, "key_positions[1]", "1 positions", 2),
        ({"key_positions": [[0, -1], [2]]}, "key_positions[0]", "positions of at least 0", -1),
        ({"key_positions": [[0, 1], [2.5]]}, "key_positions[1]", INTEGERS, "float64 of shape (1,)"),
        (
            {"query": ones(2, 1), "visibility": CAUSAL},
            "query_positions",
            "given when 2 queries meet 3 keys under a visibility",
            None,
        ),
        (
            {"visibility": Visibility(documents=np.array([0, 0]))},
            "query_positions",
            "positions below 2 (documents)",
            2,
        ),
        (
            {"query": 1e200 * Q, "key_chunks": [1e200 * k for k in K]},
            "query and key_chunk",
            "finite scores in float64",
            "an overflow",
        ),
    ],
)
def test_ring_attention_refuses(
    arguments: dict[str, Any], name: str, wanted: str, received: object
) -> None:
    with refused(name, wanted, received):
        ring_attention(**(GOOD | arguments))


def test_chunks_with_different_head_counts_are_refused() -> None:
    keys, values = [ones(2, 2, 1), ones(4, 1, 1)], [ones(2, 2, 4), ones(4, 1, 4)]
    with refused("key_chunks[1]", "heads and width of chunk 0, (2, 2, 1)", (4, 1, 1)):
        ring_attention(ones(4, 3, 1), keys, values)


def test_two_chunks_whose_sum_overflows_are_refused_not_returned_as_infinity() -> None:
    zero, large = np.zeros((1, 1)), np.full((1, 1), 1.5e308)
    with refused("chunk", "a weighted sum that fits float64", "an overflow"):
        ring_attention(zero, [zero, zero], [large, large])


def test_a_full_attention_needs_no_positions_whatever_the_lengths() -> None:
    assert ring_attention(ones(2, 1), K, V).tolist() == [[1.0] * 4] * 2


def test_positions_may_repeat_and_skip_and_come_in_any_order() -> None:
    """Only the order relation counts, so a rank may hold any subset."""
    out = ring_attention(
        np.zeros((2, 1)), [np.zeros((2, 1))], [np.array([[1.0], [3.0]])],
        visibility=CAUSAL, query_positions=[50, 7], key_positions=[[9, 7]],
    )  # fmt: skip
    assert out.tolist() == [[2.0], [3.0]]


@pytest.mark.parametrize("name", ["query", "key_chunks", "value_chunks"])
def test_nan_where_the_mask_hides_everything_is_refused_unless_the_slot_is_padding(
    name: str,
) -> None:
    """A relation without a pair hides NaN from every score, and it is a mistake all the same."""
    nothing = np.zeros((3, 3), bool)
    arrays = dict(GOOD)
    arrays[name] = Q * np.nan if name == "query" else [arrays[name][0], arrays[name][1] * np.nan]
    label = name if name == "query" else f"{name}[1]"
    with refused(label, *FINITE):
        ring_attention(**arrays, visibility=Visibility(relation=nothing))
    ids = np.array([-1, -1, -1])
    assert not ring_attention(**arrays, visibility=Visibility(documents=ids)).any()


@pytest.mark.parametrize("count", [41, 64, 200])
def test_many_chunks_of_one_key_are_one_softmax(count: int) -> None:
    """Equal scores: the mean of all values, whichever chunk a value is in."""
    values = np.arange(count, dtype=float)[:, None]
    chunks = np.split(np.zeros((count, 1)), count), np.split(values, count)
    assert np.allclose(ring_attention(ones(1, 1), *chunks), (count - 1) / 2, rtol=1e-13)


@pytest.mark.parametrize("value", [True, "causal", np.ones((3, 3), bool)])
def test_a_visibility_that_is_none_is_refused(value: Any) -> None:
    with refused("visibility", "a Visibility or None", type(value).__name__):
        ring_attention(**GOOD, visibility=value)


@pytest.mark.parametrize("name", ["key_chunks", "value_chunks", "key_positions"])
@pytest.mark.parametrize("value", [3, "text", iter(())])
def test_chunks_that_are_no_list_are_refused(name: str, value: Any) -> None:
    with refused(name, "a list with one array per chunk", type(value).__name__):
        ring_attention(**{**GOOD, name: value})


def test_positions_beyond_int64_are_refused_not_wrapped_around() -> None:
    far = np.array([2**63], np.uint64)
    with refused("q_pos", f"integers of at most {2**63 - 1}", 2**63):
        Visibility().block(far, [0])
    with refused("documents", f"integers of at most {2**63 - 1}", 2**63):
        Visibility(documents=far)
    assert Visibility().block([2**40], [2**40, 2**40 + 1]).tolist() == [[True, False]]
    rule = Visibility(causal=False, documents=np.array([1, 257, 1]))
    assert rule.block([0], [0, 1, 2]).tolist() == [[True, False, True]]


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_the_last_rows_beyond_a_tile_are_computed_too(
    extra: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal scores, full attention: every row is the mean of all values."""
    monkeypatch.setattr("cpcore.ring.QUERY_TILE", 4)
    rows = 4 + extra
    out = ring_attention(np.zeros((rows, 1)), [np.zeros((2, 1))], [np.array([[1.0], [3.0]])])
    assert out.tolist() == [[2.0]] * rows


def test_hidden_chunks_are_skipped_and_full_ones_need_no_mask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Causal, three chunks of two, a query at position 2: one full, one partial, one hidden."""
    masks = []

    def spy(*arrays: Any, visible: Any, scale: float) -> Any:
        masks.append(visible)
        return attention_chunk_stats(*arrays, visible=visible, scale=scale)

    monkeypatch.setattr("cpcore.ring.attention_chunk_stats", spy)
    chunks = [np.zeros((2, 1))] * 3
    ring_attention(ones(1, 1), chunks, chunks, visibility=CAUSAL, query_positions=[2])
    assert [mask if mask is None else mask.tolist() for mask in masks] == [None, [[True, False]]]
