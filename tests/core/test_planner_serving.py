"""Prefill and decoding, the four conditions, and the presets with their sources."""

import json
from pathlib import Path
from typing import Any

import pytest
from pybtex.database import parse_file

from cpcore import planner
from cpcore.planner import Hardware, ModelShape, hardware, model_shape
from tests.support.errors import refused

BOOK = Path(__file__).resolve().parents[2] / "book"
SOURCES = json.loads((BOOK / "data" / "preset_sources.json").read_text(encoding="utf-8"))
MODEL = ModelShape("small", 2, 24, 6, 2, 4, 7, 11)
MACHINE = Hardware("box", 1000.0, 10**6, 50.0, 4, 40.0, 10.0)
BIG = model_shape("Llama 3.1 405B")


def test_pass_kv_sends_the_cache_around_and_pass_q_leaves_it() -> None:
    """4 ranks, 8 new tokens after 40: three hops of 12 tokens' keys, or of 2 tokens' queries."""
    assert planner.pass_kv_bytes(MODEL, 8, 40, 4) == 3 * 12 * (2 * 2 * 4) * 2
    queries = 3 * 2 * (6 * 4) * 2
    assert planner.pass_q_bytes(MODEL, 8, 4, returned=False) == queries
    answers = 3 * 2 * (6 * 4 * 2 + 6 * 4)
    assert planner.pass_q_bytes(MODEL, 8, 4) == queries + answers


@pytest.mark.parametrize("returned", [True, False])
@pytest.mark.parametrize("model", [MODEL, BIG], ids=lambda m: m.name)
def test_pass_q_wins_exactly_below_its_share(model: ModelShape, returned: bool) -> None:
    total = 10**6
    share = planner.pass_q_share(model, returned=returned)
    for new in (1, int(0.99 * share * total), min(total, int(1.01 * share * total)), total):
        kv = planner.pass_kv_bytes(model, new, total - new, 8)
        q = planner.pass_q_bytes(model, new, 8, returned=returned)
        assert (q < kv) == (new / total < share)


def test_queries_alone_win_below_twice_the_inverse_group() -> None:
    assert planner.pass_q_share(BIG, returned=False) == 2 / BIG.group == 0.125
    assert planner.pass_q_share(model_shape("Llama 2 7B"), returned=False) == 1.0


def test_a_decoded_token_sends_one_summary_of_each_query_head() -> None:
    """6 heads, an output of 4 and one lse each, 4 bytes, to 3 others."""
    assert planner.decode_merge_bytes(MODEL, 4) == 3 * 6 * (4 + 1) * 4
    assert planner.decode_merge_bytes(MODEL, 1) == 0


def test_reading_the_cache_is_shared_by_the_ranks() -> None:
    one = planner.decode_read_s(MODEL, MACHINE, 40, 1)
    assert one == planner.kv_bytes(MODEL, 40) / 50.0
    assert planner.decode_read_s(MODEL, MACHINE, 40, 4) == one / 4
    eleven = planner.kv_bytes(MODEL, 11) / 50.0  # the longest of four shards of 41
    assert planner.decode_read_s(MODEL, MACHINE, 41, 4) == eleven


def test_a_share_of_the_peak_is_work_over_time_and_devices() -> None:
    assert planner.flops_share(600, 3.0, 2, 200.0) == 0.5


def test_a_million_tokens_of_prefill_agree_with_the_published_share_of_the_peak() -> None:
    """77 s on 128 H100 at 63 % (arXiv:2411.01783) is about 795 TFLOP/s of peak, not 989."""
    work = planner.matmul_flops(BIG, 10**6) + BIG.layers * planner.attention_flops(
        planner.causal_pairs(10**6), BIG.q_heads, BIG.head_dim
    )
    by_hand = 2 * 405.85e9 * 1e6 + 126 * 4 * (1e12 / 2) * 16_384
    assert work == pytest.approx(by_hand, rel=0.01)
    share = planner.flops_share(work, 77, 128, 989e12)
    assert 0.49 < share < 0.52
    assert 780e12 < share * 989e12 / 0.63 < 810e12


def test_four_conditions_hold_where_a_long_sample_does_not_fit() -> None:
    """Llama 3.1 8B, 131,072 tokens, H100, state shared by 8."""
    model, machine = model_shape("Llama 3.1 8B"), hardware("H100")
    found = planner.conditions(model, machine, 131_072, 8, state_shards=8)
    assert [row.holds for row in found] == [True] * 4
    state = 2 * 8_030_261_248
    layer = planner.layer_activations(model, 131_072)
    saved = 31 * layer.boundary_bytes + layer.total_bytes + 131_072 * 128_256 * 4
    assert (found[0].have, found[0].need) == (saved, state)
    assert (found[1].have, found[1].need) == (state + saved, 80e9)
    assert found[2].have == found[1].have
    assert (found[3].have, found[3].need) == (16_384, 1099)


def test_conditions_fail_one_by_one() -> None:
    model, machine = model_shape("Llama 3.1 8B"), hardware("H100")

    def hold(seq_len: int, ranks: int, **more: Any) -> list[bool]:
        return [row.holds for row in planner.conditions(model, machine, seq_len, ranks, **more)]

    assert hold(8192, 8, state_shards=64) == [True, False, False, False]
    assert hold(8192, 2) == [False, True, True, True]
    assert hold(65_536, 8, state_shards=8, tensor_size=8)[1:3] == [False, False]
    assert hold(131_072, 8, state_shards=8, tensor_size=8) == [True, True, False, True]
    assert hold(131_072, 16, state_shards=8) == [True, True, True, False]  # over the network


def test_tensor_parallelism_leaves_boundaries_residuals_and_norm_outputs_whole() -> None:
    model, machine = model_shape("Llama 3.1 8B"), hardware("H100")
    layer = planner.layer_activations(model, 1024)
    whole = layer.boundary_bytes + layer.residual_bytes + layer.norm_outputs_bytes
    inner = layer.total_bytes - whole
    state = planner.training_state(model.parameters).total_bytes
    logits = planner.logits_bytes(1024, model.vocabulary)
    kept = planner.conditions(model, machine, 1024, 2, tensor_size=4, keep="everything")[2]
    assert kept.have == state + 32 * whole + (32 * inner + logits) / 4
    rebuilt = planner.conditions(model, machine, 1024, 2, tensor_size=4)[2]
    assert rebuilt.have == state + 31 * layer.boundary_bytes + whole + (inner + logits) / 4


def test_every_preset_has_a_dated_source_and_nothing_else_has() -> None:
    entries = parse_file(str(BOOK / "references.bib")).entries
    assert set(SOURCES["models"]) == set(planner.MODELS)
    assert set(SOURCES["hardware"]) == set(planner.HARDWARE)
    for source in (*SOURCES["models"].values(), *SOURCES["hardware"].values()):
        assert source["reference"] in entries
        assert source["read"].startswith("20")
        assert source["where"]


def test_mlp_widths_follow_the_published_rule() -> None:
    """8/3 of the width, times a factor, rounded up to a multiple."""
    rule = {"Llama 2 7B": (1.0, 256), "Llama 3.1 8B": (1.3, 1024), "Llama 3.1 70B": (1.3, 4096),
            "Llama 3.1 405B": (1.2, 4096)}  # fmt: skip
    for name, (factor, multiple) in rule.items():
        model = model_shape(name)
        inner = int(factor * int(2 * 4 * model.hidden / 3))
        assert model.mlp_hidden == multiple * -(-inner // multiple)
        assert model.q_width == model.hidden


def test_a_ring_over_more_than_a_node_runs_at_the_speed_of_the_network() -> None:
    assert [MACHINE.link_bytes_per_s(n) for n in (1, 4, 5, 64)] == [40.0, 40.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("call", "argument", "wanted", "received"),
    [
        (lambda: model_shape("Llama"), "name",
         "one of Llama 2 7B, Llama 3.1 8B, Llama 3.1 70B, Llama 3.1 405B", "'Llama'"),
        (lambda: hardware("H"), "name", "one of A100, H100, H200, B200, TPU v5p", "'H'"),
        (lambda: MACHINE.link_bytes_per_s(0), "ranks", "an integer of at least 1", "0"),
        (lambda: Hardware("x", 0.0, 1, 1.0, 1, 1.0, 1.0), "peak_flops_per_s",
         "a finite number above 0", "0.0"),
        (lambda: Hardware("x", 1.0, 1, 1.0, 0, 1.0, 1.0), "node_size",
         "an integer of at least 1", "0"),
        (lambda: Hardware("x", 1.0, 0, 1.0, 1, 1.0, 1.0), "memory_bytes",
         "an integer of at least 1", "0"),
        (lambda: planner.pass_kv_bytes(MODEL, 0, 1, 1), "new", "an integer of at least 1", "0"),
        (lambda: planner.pass_kv_bytes(MODEL, 1, -1, 1), "cached", "an integer of at least 0",
         "-1"),
        (lambda: planner.pass_kv_bytes(MODEL, 1, 1, 0), "cp_size", "an integer of at least 1",
         "0"),
        (lambda: planner.pass_q_bytes(MODEL, 4, 2, state_bytes=0), "state_bytes",
         "an integer of at least 1", "0"),
        (lambda: planner.decode_merge_bytes(MODEL, 0), "cp_size", "an integer of at least 1",
         "0"),
        (lambda: planner.decode_read_s(MODEL, MACHINE, -1, 1), "cached",
         "an integer of at least 0", "-1"),
        (lambda: planner.flops_share(0, 1.0, 1, 1.0), "flops", "a finite number above 0", "0"),
        (lambda: planner.flops_share(1, 0.0, 1, 1.0), "seconds", "a finite number above 0",
         "0.0"),
        (lambda: planner.conditions(MODEL, MACHINE, 2, 3), "cp_size",
         "at most 2 ranks, one token each", "3"),
        (lambda: planner.conditions(MODEL, MACHINE, 8, 2, utilization=2.0), "utilization",
         "at most 1", "2.0"),
        (lambda: planner.conditions(MODEL, MACHINE, 8, 2, tensor_size=0), "tensor_size",
         "an integer of at least 1", "0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(call: Any, argument: str, wanted: str, received: str) -> None:
    with refused(argument, wanted, received):
        call()
