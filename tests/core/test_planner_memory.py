"""Bytes of training and serving, against published sizes and a second count."""

from typing import Any

import pytest

from cpcore import planner
from cpcore.planner import ModelShape, model_shape
from tests.support.errors import refused

GIB = 2**30
LLAMA_8B, LLAMA_70B = model_shape("Llama 3.1 8B"), model_shape("Llama 3.1 70B")
SMALL = ModelShape("small", 3, 8, 4, 2, 5, 7, 11)
LONG = 131_072


def weights_one_by_one(model: ModelShape) -> int:
    """Every matrix and norm of the model, by its shape."""
    q, kv = model.q_heads * model.head_dim, model.kv_heads * model.head_dim
    layer = [(model.hidden, q), (model.hidden, kv), (model.hidden, kv), (q, model.hidden)]
    layer += [(model.hidden, model.mlp_hidden)] * 2 + [(model.mlp_hidden, model.hidden)]
    layer += [(model.hidden, 1)] * 2
    ends = [(model.vocabulary, model.hidden)] * 2 + [(model.hidden, 1)]
    return sum(a * b for a, b in layer * model.layers + ends)


@pytest.mark.parametrize("model", [SMALL, *planner.MODELS.values()], ids=lambda m: m.name)
def test_parameters_are_the_entries_of_every_matrix(model: ModelShape) -> None:
    assert model.parameters == weights_one_by_one(model)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("Llama 2 7B", 6.74), ("Llama 3.1 8B", 8.03), ("Llama 3.1 70B", 70.55),
     ("Llama 3.1 405B", 405.85)],
)  # fmt: skip
def test_presets_have_the_parameters_of_their_published_checkpoints(
    name: str, billions: float
) -> None:
    assert round(model_shape(name).parameters / 1e9, 2) == billions


def test_sixteen_bytes_a_parameter_in_five_parts() -> None:
    state = planner.training_state(1000)
    assert state == (2000, 2000, 4000, 4000, 4000)
    assert (state.optimizer_bytes, state.total_bytes) == (12_000, 16_000)
    assert round(planner.training_state(70 * 10**9).total_bytes / 2**40, 2) == 1.02


def test_shards_of_the_state_cover_it_even_when_they_do_not_divide_it() -> None:
    parts = [planner.training_state(10, state_shards=n).weights_bytes for n in (1, 3, 5, 16)]
    assert parts == [20, 8, 4, 2]


def test_logits_of_a_long_sample_outweigh_all_layer_boundaries() -> None:
    logits = planner.logits_bytes(LONG, LLAMA_8B.vocabulary)
    assert round(logits / GIB, 1) == 62.6
    assert planner.boundary_bytes(LLAMA_8B, LONG) == 32 * GIB < logits


def test_boundaries_and_keys_of_seventy_billion_parameters_at_a_million_tokens() -> None:
    share = 2**20 // 64
    assert planner.boundary_bytes(LLAMA_70B, share) == 20 * GIB
    assert planner.kv_bytes(LLAMA_70B, 2**20) == 320 * GIB
    assert planner.kv_bytes(LLAMA_70B, share) == 5 * GIB
    assert planner.kv_bytes(LLAMA_70B, 1) == 327_680
    layer = planner.layer_activations(LLAMA_70B, share)
    assert layer.keys_values_bytes == 64 * 2**20


def saved_shapes(model: ModelShape, tokens: int) -> list[tuple[int, int]]:
    """(elements, bytes each) of every tensor that one layer's backward pass reads."""
    wide, inner = tokens * model.hidden, tokens * model.mlp_hidden
    heads = tokens * model.head_dim
    return [
        (wide, 2), (wide, 2), (wide, 2), (wide, 2),  # input, norm 1 out, residual, norm 2 out
        (heads * model.q_heads, 2), (heads * model.kv_heads, 2), (heads * model.kv_heads, 2),
        (heads * model.q_heads, 2), (tokens * model.q_heads, 4),  # attention output and lse
        (inner, 2), (inner, 2), (inner, 2),  # gate, up, product
    ]  # fmt: skip


@pytest.mark.parametrize("model", [SMALL, LLAMA_8B], ids=lambda m: m.name)
def test_a_layer_saves_the_inputs_of_its_products(model: ModelShape) -> None:
    expected = sum(n * size for n, size in saved_shapes(model, 6))
    assert planner.layer_activations(model, 6).total_bytes == expected
    assert planner.activation_bytes(model, 6, keep="everything") == model.layers * expected
    boundary = 6 * model.hidden * 2
    rebuilt = (model.layers - 1) * boundary + expected
    assert planner.activation_bytes(model, 6) == rebuilt


def test_an_lse_stays_in_float32_whatever_the_other_elements_are() -> None:
    for size in (1, 4):
        layer = planner.layer_activations(SMALL, 6, element_bytes=size)
        assert layer.lse_bytes == 6 * SMALL.q_heads * 4
        assert layer.boundary_bytes == 6 * SMALL.hidden * size


def test_context_parallelism_divides_what_tokens_bring_and_no_state() -> None:
    items = {item.name: item for item in planner.memory_items(SMALL, 12, 4)}
    for name in ("weights", "gradients", "optimizer"):
        assert items[name].rank_bytes == items[name].whole_bytes
        assert not items[name].divided_by_cp
    for name in ("activations", "logits"):
        assert items[name].rank_bytes * 4 == items[name].whole_bytes
        assert items[name].divided_by_cp
    assert sum(items[n].whole_bytes for n in ("weights", "gradients", "optimizer")) == (
        16 * SMALL.parameters
    )
    # two foreign blocks of 3 tokens, keys and values of 2 heads of 5, 2 bytes each
    assert items["ring buffers"].rank_bytes == 2 * 3 * (2 * 2 * 5) * 2


def test_one_rank_has_no_ring_buffers_and_uneven_shards_count_the_longest() -> None:
    alone = planner.memory_items(SMALL, 12, 1)
    assert alone[-1].rank_bytes == 0
    assert all(item.rank_bytes == item.whole_bytes for item in alone)
    uneven = planner.memory_items(SMALL, 13, 4, state_shards=2)
    assert uneven[4].rank_bytes == 4 * SMALL.vocabulary * 4
    assert uneven[0].rank_bytes == 2 * -(-SMALL.parameters // 2)


@pytest.mark.parametrize(
    ("call", "argument", "wanted", "received"),
    [
        (lambda: planner.training_state(0), "parameters", "an integer of at least 1", "0"),
        (lambda: planner.training_state(1, state_shards=0), "state_shards",
         "an integer of at least 1", "0"),
        (lambda: planner.layer_activations(SMALL, 0), "tokens", "an integer of at least 1", "0"),
        (lambda: planner.logits_bytes(1, 0), "vocabulary", "an integer of at least 1", "0"),
        (lambda: planner.logits_bytes(-1, 3), "tokens", "an integer of at least 1", "-1"),
        (lambda: planner.kv_bytes(SMALL, 1, element_bytes=0), "element_bytes",
         "an integer of at least 1", "0"),
        (lambda: planner.activation_bytes(SMALL, 1, keep="some"), "keep",  # type: ignore[arg-type]
         "'everything' or 'boundaries'", "'some'"),
        (lambda: planner.memory_items(SMALL, 3, 4), "cp_size",
         "at most 3 ranks, one token each", "4"),
        (lambda: ModelShape("x", 1, 8, 4, 3, 5, 7, 11), "kv_heads", "a divisor of q_heads = 4",
         "3"),
        (lambda: ModelShape("x", 1, 8, 4, 8, 5, 7, 11), "kv_heads", "a divisor of q_heads = 4",
         "8"),
        (lambda: ModelShape("x", 1, 8, 4, 2, 5, 0, 11), "mlp_hidden", "an integer of at least 1",
         "0"),
    ],
)  # fmt: skip
def test_a_size_that_cannot_be_is_refused(
    call: Any, argument: str, wanted: str, received: str
) -> None:
    with refused(argument, wanted, received):
        call()
