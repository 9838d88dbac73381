"""Context parallelism when a model answers: what moves in prefill and in decoding.

Owns pass-KV, pass-Q and the merge of decoding, in bytes per rank and layer, and when which is
smaller. Leaves out training (`traffic`). `cached` tokens have keys and values spread evenly over
the ranks already; `new` ones are computed now. Bytes are the average over the ranks.

Source: Yang et al. 2024, Context Parallelism for Scalable Million-Token Inference
    (arXiv:2411.01783).
"""

from __future__ import annotations

from cpcore.checks import truth, whole_number
from cpcore.planner.arguments import positive
from cpcore.planner.shapes import Hardware, ModelShape, known_machine, known_model


def pass_kv_bytes(
    model: ModelShape, new: int, cached: int, cp_size: int, *, element_bytes: int = 2
) -> float:
    """Bytes that a rank sends when keys and values travel, old ones and new ones.

    R - 1 blocks of (new + cached) / R tokens: the ring of training, with the cache in the block.

    Raises: ValueError for sizes below 1 or a negative cache.
    """
    now, before, ranks = _sizes(model, new, cached, cp_size)
    element = whole_number("element_bytes", element_bytes, 1)
    return (ranks - 1) * (now + before) / ranks * model.kv_width * element


def pass_q_bytes(
    model: ModelShape,
    new: int,
    cp_size: int,
    *,
    element_bytes: int = 2,
    state_bytes: int = 4,
    returned: bool = True,
) -> float:
    """Bytes that a rank sends when queries travel and partial answers come home.

    The cache stays where it is and does not enter. Each of R - 1 foreign ranks answers every query
    with (output, lse): the output in `element_bytes`, the lse in `state_bytes`. returned = False
    counts the queries alone.

    Raises: ValueError for sizes below 1.
    """
    now, _, ranks = _sizes(model, new, 0, cp_size)
    element = whole_number("element_bytes", element_bytes, 1)
    queries = model.q_width * element
    answer = model.q_width * element + model.q_heads * whole_number("state_bytes", state_bytes, 1)
    home = answer if truth("returned", returned) else 0
    return (ranks - 1) * now / ranks * (queries + home)


def pass_q_share(model: ModelShape, *, returned: bool = True) -> float:
    """The share new / (new + cached) below which pass-Q moves fewer bytes, 16-bit elements.

    Queries alone: new·Hq·D < (new + cached)·2·Hkv·D, so share < 2·Hkv/Hq = 2/g. The answers that
    come home, (output, lse), halve it.
    """
    queries = pass_q_bytes(model, 2, 2, returned=returned)  # of one token, over one hop
    return min(1.0, pass_kv_bytes(model, 2, 0, 2) / queries)


def decode_merge_bytes(model: ModelShape, cp_size: int, *, state_bytes: int = 4) -> int:
    """Bytes that a rank sends for one new token in one layer: its partial (output, lse).

    Every rank attends over its own part of the cache; R - 1 others get the summary, and all merge
    by lse. No length of the sequence enters.

    Raises: ValueError for sizes below 1.
    """
    known_model(model)
    others = whole_number("cp_size", cp_size, 1) - 1
    size = whole_number("state_bytes", state_bytes, 1)
    return others * (model.q_width + model.q_heads) * size


def decode_read_s(
    model: ModelShape, machine: Hardware, cached: int, cp_size: int, *, element_bytes: int = 2
) -> float:
    """Seconds in which a rank reads its part of the cache of all layers once, at full speed.

    A new token does about one multiply-add per element read, so memory sets the pace.

    Raises: ValueError for sizes below 1 or a negative cache.
    """
    _, before, ranks = _sizes(model, 1, cached, cp_size)
    known_machine(machine)
    part = -(-before // ranks) * model.layers * model.kv_width
    return part * whole_number("element_bytes", element_bytes, 1) / machine.memory_bytes_per_s


def flops_share(flops: float, seconds: float, devices: int, flops_per_s: float) -> float:
    """The share of `devices` · `flops_per_s` that a run of `flops` in `seconds` has used.

    Raises: ValueError for numbers that are not above 0.
    """
    work = positive("flops", flops)
    able = positive("seconds", seconds) * whole_number("devices", devices, 1)
    return work / (able * positive("flops_per_s", flops_per_s))


def _sizes(model: ModelShape, new: int, cached: int, cp_size: int) -> tuple[int, int, int]:
    known_model(model)
    now, before = whole_number("new", new, 1), whole_number("cached", cached, 0)
    return now, before, whole_number("cp_size", cp_size, 1)
