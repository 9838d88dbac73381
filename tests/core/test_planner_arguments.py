"""What the planner says of an argument of the wrong kind, and that numpy numbers change nothing."""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cpcore import planner
from cpcore.planner import Hardware, ModelShape, hardware, model_shape
from tests.support.errors import refused

MODEL, H100 = model_shape("Llama 3.1 8B"), hardware("H100")
HEADS: dict[str, Any] = {"q_heads": 128, "kv_heads": 8, "head_dim": 120, "value_dim": 100}
MOVED: dict[str, Any] = {"element_bytes": 2, "grad_bytes": 4}
SHARDS: dict[str, Any] = {"lengths": [100_000, 120_000, 130_000], "rank": 1, "protocol": "ring"}
# One good call of every function: sizes large enough for 32 bits to overflow.
CALLS: dict[str, dict[str, Any]] = {
    "activation_bytes": {"model": MODEL, "tokens": 131_072, "keep": "everything",
                         "element_bytes": 2},
    "all_to_all_traffic": {"tokens": 131_072, "degree": 64, **HEADS, **MOVED},
    "attention_flops": {"pairs": 2 * 10**9, "q_heads": 128, "head_dim": 128, "value_dim": 96,
                        "backward": True},
    "attention_time": {"plan": "mixed", "model": MODEL, "machine": H100, "seq_len": 131_072,
                       "cp_size": 64, "layout": "zigzag", "causal": True, "utilization": 1.0,
                       "degree": 8},
    "attention_traffic": {**SHARDS, "kv_heads": 100, "head_dim": 120, "value_dim": 100, **MOVED},
    "boundary_bytes": {"model": MODEL, "tokens": 131_072, "element_bytes": 2},
    "buffer_bytes": {"plan": "mixed", "model": MODEL, "seq_len": 131_072, "cp_size": 64,
                     "degree": 8},
    "causal_pairs": {"seq_len": 131_072},
    "conditions": {"model": MODEL, "machine": H100, "seq_len": 131_072, "cp_size": 3,
                   "state_shards": 8, "tensor_size": 2, "utilization": 1.0, "keep": "boundaries"},
    "decode_merge_bytes": {"model": MODEL, "cp_size": 120, "state_bytes": 4},
    "decode_read_s": {"model": MODEL, "machine": H100, "cached": 2 * 10**6, "cp_size": 7,
                      "element_bytes": 2},
    "flops_share": {"flops": 10**9, "seconds": 1.0, "devices": 100, "flops_per_s": 1.0},
    "full_pairs": {"seq_len": 131_072},
    "hardware": {"name": "H100"},
    "head_degrees": {"q_heads": 128, "kv_heads": 8},
    "kv_bytes": {"model": MODEL, "tokens": 131_072, "element_bytes": 2},
    "layer_activations": {"model": MODEL, "tokens": 131_072, "element_bytes": 2},
    "logits_bytes": {"tokens": 131_072, "vocabulary": 128_256, "element_bytes": 4},
    "matmul_flops": {"model": MODEL, "tokens": 131_072, "backward": False},
    "memory_items": {"model": MODEL, "seq_len": 131_072, "cp_size": 3, "state_shards": 5,
                     "keep": "boundaries"},
    "mixed_traffic": {"tokens": 131_072, "degree": 64, "ring_size": 100, **HEADS, **MOVED},
    "model_shape": {"name": "Llama 3.1 8B"},
    "pass_kv_bytes": {"model": MODEL, "new": 131_072, "cached": 2 * 10**6, "cp_size": 7,
                      "element_bytes": 2},
    "pass_q_bytes": {"model": MODEL, "new": 131_072, "cp_size": 7, "element_bytes": 2,
                     "state_bytes": 4, "returned": True},
    "pass_q_share": {"model": MODEL, "returned": True},
    "plain_ring_limit": {"cp_size": 100},
    "rank_pairs": {"layout": "contiguous", "seq_len": 131_072, "cp_size": 4, "rank": 2},
    "residency": {**SHARDS, **HEADS, **MOVED, "state_bytes": 4},
    "ring_efficiency": {"layout": "striped", "seq_len": 131_072, "cp_size": 4},
    "ring_steps": {"model": MODEL, "seq_len": 131_072, "cp_size": 2, "flops_per_s": 2.0**40,
                   "bytes_per_s": 2.0**30, "layout": "zigzag", "causal": True, "backward": True,
                   "element_bytes": 2, "grad_bytes": 4, "latency_s": 1.0},
    "shard_lengths": {"seq_len": 131_072, "cp_size": 101},
    "slowest_pairs": {"layout": "contiguous", "seq_len": 262_144, "cp_size": 2, "step": 1,
                      "causal": False},
    "smallest_hidden_chunk": {"flops_per_s": 2.0**40, "bytes_per_s": 2.0**30, "group": 1,
                              "element_bytes": 2, "visible_share": 0.5},
    "smallest_hidden_chunk_backward": {"flops_per_s": 2.0**40, "bytes_per_s": 2.0**30, "group": 1,
                                       "element_bytes": 2, "grad_bytes": 4, "visible_share": 0.5},
    "split_heads": {"q_heads": 128, "kv_heads": 8, "degree": 64},
    "step_pairs": {"layout": "contiguous", "seq_len": 262_144, "cp_size": 2, "rank": 1, "step": 1},
    "training_state": {"parameters": 8 * 10**9, "state_shards": 3},
    "window_pairs": {"seq_len": 131_072, "window": 100_000},
}  # fmt: skip
WRONG: tuple[Any, ...] = (
    None, "star", b"x", [], {}, object(), 3 + 1j, math.nan, math.inf, -1, -0.5, np.float32("nan"),
    np.array([1, 2]), np.array(3), 10**400,
)  # fmt: skip
MAY_BE_NONE = {"value_dim", "grad_bytes", "state_bytes"}  # the same as another argument


def named_in(error: ValueError) -> str:
    """The argument that an error of the one form names."""
    found = re.fullmatch(r"(\w+): expected .+, received .+", str(error), flags=re.DOTALL)
    assert found, str(error)
    return found[1]


def test_the_calls_above_are_those_of_every_public_function() -> None:
    functions = [name for name in planner.__all__ if inspect.isfunction(getattr(planner, name))]
    assert sorted(CALLS) == sorted(functions)
    for name, call in CALLS.items():
        assert set(inspect.signature(getattr(planner, name)).parameters) == set(call), name


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_the_wrong_kind_is_refused_by_name(name: str) -> None:
    call: Callable[..., object] = getattr(planner, name)
    for argument, good in CALLS[name].items():
        flags = (0, 1, 1.0) if isinstance(good, bool) else ()
        for wrong in (*WRONG, *flags, not good if argument == "name" else True):
            if isinstance(good, bool) and wrong is True:
                continue
            if wrong is None and argument in MAY_BE_NONE:
                continue
            with pytest.raises(ValueError, match="expected") as caught:
                call(**(CALLS[name] | {argument: wrong}))
            assert named_in(caught.value) == argument


def alike(value: object) -> Iterator[object]:
    """The same argument in numpy's types."""
    if isinstance(value, list):
        yield [np.int32(n) for n in value]
    elif isinstance(value, bool):
        yield np.bool_(value)
    elif isinstance(value, int):
        kinds = (np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64)
        yield from (kind(value) for kind in kinds if value <= np.iinfo(kind).max)
    elif isinstance(value, float):
        yield from (np.float32(value), np.float64(value))


def kinds_in(result: object) -> set[str]:
    """Modules of all types in a result: numpy's must not come out."""
    if isinstance(result, tuple):
        return set().union(*map(kinds_in, result))
    return {type(result).__module__}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CALLS)
def test_numpy_numbers_give_what_python_numbers_give(name: str) -> None:
    """A numpy integer of 32 bits once gave 65,536 causal pairs for 131,072 tokens."""
    call: Callable[..., object] = getattr(planner, name)
    expected = call(**CALLS[name])
    assert "numpy" not in kinds_in(expected)
    for argument, good in CALLS[name].items():
        for same in alike(good):
            found = call(**(CALLS[name] | {argument: same}))
            assert found == expected, (argument, type(same))
            assert "numpy" not in kinds_in(found), (argument, type(same))


def test_shapes_and_machines_keep_python_numbers() -> None:
    shape = ModelShape("x", *map(np.int32, (32, 4096, 32, 8, 128, 14_336, 128_256)))
    assert shape.parameters == MODEL.parameters
    box = Hardware("x", np.float32(2.0**40), np.int32(80), 2, np.int64(8), 4, np.float64(1))  # type: ignore[arg-type]
    assert kinds_in((shape.parameters, box.peak_flops_per_s, box.node_size)) == {"builtins"}
    with refused("name", "a string", "5"):
        ModelShape(5, 32, 4096, 32, 8, 128, 14_336, 128_256)  # type: ignore[arg-type]
    with refused("memory_bytes", "an integer of at least 1", "80.5"):
        Hardware("x", 1.0, 80.5, 1.0, 8, 1.0, 1.0)  # type: ignore[arg-type]
    with refused("network_bytes_per_s", "a finite number above 0", "0"):
        Hardware("x", 1.0, 80, 1.0, 8, 1.0, 0)


@pytest.mark.parametrize(
    ("call", "argument", "wanted", "received"),
    [
        (lambda: planner.causal_pairs(-1), "seq_len", "an integer of at least 0", "-1"),
        (lambda: planner.kv_bytes("8B", 1), "model", "a ModelShape", "'8B'"),  # type: ignore[arg-type]
        (lambda: planner.decode_read_s(MODEL, "H100", 1, 1), "machine",  # type: ignore[arg-type]
         "a Hardware", "'H100'"),
        (lambda: planner.rank_pairs("zigzag", 8, 0, 0), "cp_size", "an integer of at least 1",
         "0"),
        (lambda: planner.slowest_pairs("zigzag", 8, 2, 2, causal=False), "step",
         "below cp_size = 2", "2"),
        (lambda: planner.smallest_hidden_chunk(10**400, 1.0), "flops_per_s",
         "a finite number above 0", "a larger one"),
        (lambda: planner.smallest_hidden_chunk(1e300, 1e-9), "bytes_per_s",
         "a link that some number of tokens can hide", "1e-09"),
        (lambda: planner.ring_steps(MODEL, 8, 2, flops_per_s=1.0, bytes_per_s=1.0,
                                    latency_s=-1.0),
         "latency_s", "a finite number of at least 0", "-1.0"),
        (lambda: planner.matmul_flops(MODEL, 1, backward="yes"), "backward",  # type: ignore[arg-type]
         "True or False", "'yes'"),
        (lambda: planner.buffer_bytes("ring", MODEL, 66, 4), "seq_len", "a multiple of 4", "66"),
        (lambda: planner.buffer_bytes("ring", MODEL, 64, 4, degree=2), "degree",
         "None, for ring takes none", "2"),
    ],
)  # fmt: skip
def test_the_words_of_a_refusal(call: Any, argument: str, wanted: str, received: str) -> None:
    with refused(argument, wanted, received):
        call()


@pytest.mark.parametrize("machine", planner.HARDWARE.values(), ids=lambda m: m.name)
def test_a_threshold_is_exact_whatever_part_of_the_peak_is_sustained(machine: Hardware) -> None:
    """0.55 · 989e12 in floats is a hair more than 543.95e12; that hair must not cost a token."""
    for percent in range(5, 101, 5):
        for link in (machine.node_bytes_per_s, machine.network_bytes_per_s):
            exact = Fraction(machine.peak_flops_per_s) * percent / 100 / Fraction(link)
            speed = machine.peak_flops_per_s * (percent / 100)
            for group in (1, 4, 16):
                found = planner.smallest_hidden_chunk(speed, link, group=group, visible_share=0.5)
                assert found == math.ceil(2 * exact / group)
                back = planner.smallest_hidden_chunk_backward(
                    speed, link, group=group, grad_bytes=4
                )
                assert back == math.ceil(Fraction(6, 5) * exact / group)


def test_a_threshold_that_rounding_has_missed_hides_its_hop() -> None:
    """21,758 tokens a rank are exactly enough at 55 % of an H100's peak over its network."""
    speed, link = 989e12 * 0.55, 50e9
    assert planner.smallest_hidden_chunk(speed, link, visible_share=0.5) == 21_758
    _, second, *_ = planner.ring_steps(
        model_shape("Llama 2 7B"), 16 * 21_758, 16, flops_per_s=speed, bytes_per_s=link
    )
    assert second.hidden
    assert second.exposed_s == 0
    assert not planner.Step(1.0, 1.0 + 1e-9).hidden


def test_the_last_rank_is_one_of_the_busiest_at_every_step() -> None:
    for layout in planner.LAYOUTS:
        for ranks in range(1, 8):
            for step in range(ranks):
                pairs = [planner.step_pairs(layout, 12 * ranks, ranks, r, step)
                         for r in range(ranks)]  # fmt: skip
                assert planner.slowest_pairs(layout, 12 * ranks, ranks, step) == max(pairs)


def test_the_work_of_a_whole_training_run_has_a_share_too() -> None:
    """More flops than 64 bits hold: 6 · 405e9 · 15.6e12 on 16,384 devices at 400e12 for a day."""
    assert planner.flops_share(6 * 405 * 10**9 * 10**13, 1e6, 16_384, 1e15) == pytest.approx(
        6 * 405e9 * 1e13 / (1e6 * 16_384 * 1e15)
    )


def test_tensor_ranks_fill_the_node_before_context_ranks() -> None:
    """8 context ranks share a node of 8; with 2 tensor ranks each they do not."""
    alone, crowded = (
        planner.conditions(MODEL, H100, 131_072, 8, state_shards=8, tensor_size=size)[3]
        for size in (1, 2)
    )
    assert alone.need == planner.smallest_hidden_chunk(989e12, 450e9, group=4, visible_share=0.5)
    assert crowded.need == planner.smallest_hidden_chunk(989e12, 50e9, group=4, visible_share=0.5)
