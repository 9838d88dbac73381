"""Is the memory bill's table true? Every number again from the sizes, in plain arithmetic.

Sizes and speeds are read from the presets; nothing of the planner's formulas is called.
"""

from __future__ import annotations

import math
import re
from typing import Any

from cpcore.planner import HARDWARE, MODELS, ModelShape

GIB = 2**30
H100 = HARDWARE["H100"]


def saved(model: ModelShape, tokens: int) -> tuple[int, int]:
    """Inputs of all layers, and the rest of one layer: norms, residual, heads, MLP, lse."""
    heads = 2 * model.q_heads + 2 * model.kv_heads
    inside = 3 * model.hidden + heads * model.head_dim + 3 * model.mlp_hidden
    return tokens * 2 * model.layers * model.hidden, tokens * (2 * inside + 4 * model.q_heads)


def bill(model: ModelShape, tokens: int, shards: int, foreign: int) -> dict[str, int]:
    """Every line for a rank that holds `tokens`, with buffers for `foreign` chunks as long."""
    mine = math.ceil(model.parameters / shards)
    key_and_value = 2 * model.kv_heads * model.head_dim * 2
    return {
        "weights": 2 * mine,
        "gradients": 2 * mine,
        "optimizer": 12 * mine,
        "activations": sum(saved(model, tokens)),
        "logits": 4 * tokens * model.vocabulary,
        "ring buffers": foreign * tokens * key_and_value,
    }


def needs(model: ModelShape, tokens: int, shards: int, ranks: int, tensor: int) -> list[Any]:
    """(have, need) of the four conditions: GiB, GiB, GiB, tokens."""
    lines = bill(model, tokens, shards, 0)
    state = lines["weights"] + lines["gradients"] + lines["optimizer"]
    brought = lines["activations"] + lines["logits"]
    whole = saved(model, tokens)[0] + 3 * tokens * model.hidden * 2
    left = state + whole + (brought - whole) / tensor
    link = H100.node_bytes_per_s if ranks * tensor <= 8 else H100.network_bytes_per_s
    chunk = math.ceil(2 * H100.peak_flops_per_s * model.kv_heads / (model.q_heads * link))
    room = H100.memory_bytes / GIB
    return [
        (brought / GIB, state / GIB), ((state + brought) / GIB, room), (left / GIB, room),
        (tokens // ranks, chunk),
    ]  # fmt: skip


def check_bill(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Bill explorer: every line without and with the cut, four conditions, the decision."""
    from tests.support.explorables import tables

    lines, conditions = tables(fragment)
    model, tokens, ranks = MODELS[state["model"]], int(state["seq_len"]), int(state["ranks"])
    shards, tensor = int(state["shards"]), int(state["tensor"])
    bills = {
        "no cut": bill(model, tokens, shards, 0),
        f"cut over {ranks}": bill(model, tokens // ranks, shards, 2),
    }
    for column, wanted in bills.items():
        total = sum(wanted.values())
        for name, size in (wanted | {"total": total}).items():
            assert lines[name][column] == f"{size / GIB:.2f}"
        assert lines["fits"][column] == ("yes" if total <= H100.memory_bytes else "no")
    assert [*lines][:-2] == [*bills["no cut"]]
    assert ("it fits" in caption) == (lines["fits"][f"cut over {ranks}"] == "yes")
    close(re.findall(r"holds ([\d.,]+) of", caption)[0], total / GIB)
    pairs = needs(model, tokens, shards, ranks, tensor)
    for row, (have, need) in zip(conditions.values(), pairs, strict=True):
        close(row["have"].split()[0], have)
        close(row["need"].split()[0], need)
        assert row["holds"] == ("yes" if have >= need else "no")
    numbers = [name[0] for name, row in conditions.items() if row["holds"] == "no"]
    said = re.findall(r"conditions? ([\d, ]+) do", caption)
    assert said == ([", ".join(numbers)] if numbers else [])
    assert ("use it" in caption) == (not numbers and "it fits" in caption)


def close(text: str, expected: float) -> None:
    """Shown with three digits, or in full."""
    shown = float(text.replace(",", ""))
    assert abs(shown - expected) <= 0.0051 * abs(expected), f"{text}, {expected}"
