"""Is the calculator's table true? Every number again from the sizes, in plain arithmetic.

Sizes and speeds are read from the presets; pairs come from a sum over ring steps written down
here, bytes from counting tokens and heads. Nothing of the planner's formulas is called.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

from cpcore.planner import HARDWARE, MODELS, Hardware, ModelShape

UTILIZATION, SHARED_BY = 0.6, 64


@cache
def busiest_pairs(plan: str, tokens: int, ranks: int) -> tuple[int, ...]:
    """Most visible pairs of any rank at each step: contiguous, else an early and a late half."""
    c = tokens // ranks
    own = sum(range(1, c + 1))
    foreign = c * c if plan == "ring" else 2 * (c // 2) * (c // 2)
    return (own, *[foreign] * (ranks - 1))


def trading(plan: str, model: ModelShape, machine: Hardware, ranks: int) -> int:
    """Ranks that trade heads."""
    if plan == "all_to_all":
        return ranks
    if plan != "mixed":
        return 1
    return max(
        n for n in range(1, machine.node_size + 1)
        if ranks % n == 0 and model.q_heads % n == 0 and model.kv_heads % n == 0
    )  # fmt: skip


def seconds(
    plan: str, model: ModelShape, machine: Hardware, tokens: int, ranks: int
) -> dict[str, float] | None:
    """Times in ms, bytes sent and buffers; None where the heads forbid the plan."""
    traders = trading(plan, model, machine, ranks)
    heads, kv_heads = model.q_heads / traders, max(1, model.kv_heads / traders)
    if model.q_heads % traders or (model.kv_heads % traders and traders % model.kv_heads):
        return None
    own, stations = tokens // ranks, ranks // traders
    per_ms = UTILIZATION * machine.peak_flops_per_s / 1e3
    inner, outer = machine.node_bytes_per_s / 1e3, machine.network_bytes_per_s / 1e3
    wide = ranks > machine.node_size
    link = outer if wide else inner
    per_head = 2 * model.head_dim * 2  # a key and a value, or a query and an output, 2 bytes each
    # trade: every token's heads that a peer computes go there; its share of the output comes back
    out_and_back = own * (traders - 1) * (heads * per_head + kv_heads * per_head)
    far = traders > machine.node_size
    share = (traders - machine.node_size) / (traders - 1) if far else 1
    trade = out_and_back * share / (outer if far else inner)
    block = own * traders * kv_heads * per_head
    pair = 4 * model.head_dim * heads / per_ms
    found = {"hop": block / link, "sent": out_and_back + (stations - 1) * block}
    useful = tokens * (tokens + 1) / 2 / stations * pair
    if plan == "all_gather":
        work, exposed = useful, (ranks - 1) * block / link
        held = (ranks - 1) * block
    else:
        steps = busiest_pairs(plan, tokens, stations)
        work = math.fsum(steps) * pair
        exposed = trade + sum(max(0.0, found["hop"] - n * pair) for n in steps[:-1])
        if stations > 1:
            found["step"] = steps[1] * pair
        held = own * traders * heads * per_head + block if traders > 1 else 0
        held += 2 * block if stations > 1 else 0
    return found | {
        "useful": useful, "waiting": work - useful, "exposed": exposed, "total": work + exposed,
        "held": held,
    }  # fmt: skip


def check_calculator(state: dict[str, Any], caption: str, fragment: str) -> None:
    """Calculator: every line of the bill, every time, and the sentence."""
    from tests.support.explorables import tables

    memory, layer = tables(fragment)
    model, machine = MODELS[state["model"]], HARDWARE[state["machine"]]
    tokens, ranks = int(state["seq_len"]), int(state["ranks"])
    own = tokens // ranks
    times = seconds(state["plan"], model, machine, tokens, ranks)
    weights = -(-model.parameters // SHARED_BY)

    def saved(n: int) -> int:
        """Inputs of all layers, and one layer's inside: norms, residual, heads, MLP, lse."""
        heads = 2 * model.q_heads + 2 * model.kv_heads
        inside = 3 * model.hidden + heads * model.head_dim + 3 * model.mlp_hidden
        return n * (2 * model.layers * model.hidden + 2 * inside + 4 * model.q_heads)

    bill = {
        "weights": (2 * model.parameters, 2 * weights),
        "gradients": (2 * model.parameters, 2 * weights),
        "optimizer": (12 * model.parameters, 12 * weights),
        "activations": (saved(tokens), saved(own)),
        "logits": (4 * tokens * model.vocabulary, 4 * own * model.vocabulary),
        "buffers of one layer": (0, times["held"] if times else 0),
    }
    assert list(memory) == list(bill)
    for name, (whole, mine) in bill.items():
        row = memory[name]
        close(row["whole sequence"], whole / 2**30)
        close(row["fullest rank"], mine / 2**30)
        divided = name in ("activations", "logits")
        assert row["divided by context ranks"] == ("yes" if divided else "no")
    full = sum(mine for _, mine in bill.values())
    shown = {name: cell["value"] for name, cell in layer.items()}
    assert shown["tokens of a rank"] == f"{own:,}"
    assert shown["ranks that trade heads"] == str(trading(state["plan"], model, machine, ranks))
    work = 4 * (tokens * (tokens + 1) // 2) * model.q_heads * model.head_dim
    close(shown["attention of one layer, all ranks, TFLOP"], work / 1e12)
    link = machine.network_bytes_per_s if ranks > machine.node_size else machine.node_bytes_per_s
    seen = 1 if state["plan"] == "ring" else 2  # half of a balanced block is visible
    shard = UTILIZATION * machine.peak_flops_per_s * seen * model.kv_heads / model.q_heads / link
    needed = math.ceil(shard / trading(state["plan"], model, machine, ranks))
    if times is not None and "step" in times:
        assert shown["tokens of a rank that hide a hop"] == f"{needed:,}"
        assert ("hides behind" in caption) == (own >= needed)
    else:
        assert shown["tokens of a rank that hide a hop"] == "no hop"
    assert ("it fits" in caption) == (full <= machine.memory_bytes)
    close(re.findall(r"holds ([\d.,e-]+) of", caption)[0], full / 2**30)
    if times is None:
        assert "impossible" in caption
        assert shown["sent by a rank, MB"] == "none"
        assert not [name for name in shown if name.endswith("ms")]
        return
    _check_times(shown, times, caption)


def _check_times(shown: dict[str, str], times: dict[str, float], caption: str) -> None:
    close(shown["sent by a rank, MB"], times["sent"] / 1e6)
    close(shown["useful compute, ms"], times["useful"])
    close(shown["waiting for the busiest rank, ms"], times["waiting"], floor=1e-9)
    close(shown["exposed transfer, ms"], times["exposed"])
    close(shown["total, ms"], times["total"])
    close(re.findall(r"takes ([\d.,e-]+) ms", caption)[0], times["total"])
    useful = int(re.findall(r"(\d+) % of it", caption)[0])
    assert abs(useful - 100 * times["useful"] / times["total"]) <= 0.51
    if "step" in times:
        close(shown["one step: compute, ms"], times["step"])
        close(shown["one step: transfer, ms"], times["hop"])
        assert ("hides behind" in caption) == (times["hop"] <= times["step"])
    else:
        assert "one step: compute, ms" not in shown
        assert "nothing hides" in caption
    limit = re.findall(r"The limit is (\w+)\.", caption)[0]
    share = times["useful"] / times["total"]
    loss = "imbalance" if times["waiting"] > times["exposed"] else "communication"
    assert abs(share - 0.9) < 1e-9 or limit == ("compute" if share >= 0.9 else loss)


def close(text: str, expected: float, floor: float = 0.0) -> None:
    """Shown with three digits."""
    shown = float(text.replace(",", ""))
    assert abs(shown - expected) <= 0.0051 * abs(expected) + floor, f"{text}, {expected}"
