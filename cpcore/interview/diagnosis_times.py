"""Evidence on slow runs: pairs counted by the schedule, seconds by the planner.

A cause is a setting of the same 8B model on 8 or 16 H100s; a check compares two of its numbers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from cpcore import planner
from cpcore.checks import expected
from cpcore.interview.diagnosis_base import Check, Evidence
from cpcore.layouts import contiguous, zigzag
from cpcore.masks import Visibility
from cpcore.schedule import schedule

STORY = (
    "Causal training of the 8B model with context parallelism is slower than hoped. The profile of "
    "most ranks shows long stretches in the communication stream. Choose checks one by one."
)
CHECKS = (
    Check("pairs that each rank computes in all", 1),
    Check("pairs of the ranks at each single step", 2),
    Check("bytes that a rank sends, against 2·Hkv·D elements a token", 1),
    Check("the speed of each hop, link by link", 2),
    Check("a step takes the longer of compute and hop, or their sum", 3),
    Check("run again with links of twice the speed", 5),
    Check("run again with twice the tokens on each rank", 5),
)


class Setting(NamedTuple):
    """What decides the time of a step."""

    layout: str = "zigzag"
    cp_size: int = 8
    seq_len: int = 131_072
    repeated: bool = False  # key/value heads repeated to all query heads before the exchange
    overlapped: bool = True
    documents: int = 1


CAUSES = {
    "contiguous shards": Setting(layout="contiguous"),
    "zigzag over packed documents": Setting(documents=4),
    "the ring leaves the node with short shards": Setting(cp_size=64),
    "key/value heads repeated before the exchange": Setting(repeated=True, seq_len=8192),
    "receives posted after the compute": Setting(overlapped=False, seq_len=16_384),
    "shards too short inside the node": Setting(seq_len=4096),
}


@cache
def evidence() -> Evidence:
    """Every cause under every check."""
    return Evidence("slow runs", STORY, CHECKS, {name: _row(s) for name, s in CAUSES.items()})


def pairs_by_step(cause: str) -> np.ndarray:
    """(steps, ranks): the visible pairs behind a timeline of this cause.

    Raises: ValueError for a cause that is not in the table.
    """
    if cause not in CAUSES:
        raise expected("cause", f"one of {', '.join(CAUSES)}", repr(cause))
    return _pairs(CAUSES[cause])


def _row(setting: Setting) -> tuple[str, ...]:
    table = _pairs(setting)
    totals, spread = table.sum(axis=0), table.max(axis=1) - table.min(axis=1)
    even = "even" if totals.max() <= 1.02 * totals.min() else "uneven"
    level = "even at every step" if spread.max() <= 0.1 * table.max() else "uneven within a step"
    usual = "as expected" if not setting.repeated else "a multiple, the group"
    sums = "the longer of the two" if setting.overlapped else "their sum"
    machine = planner.hardware("H100")
    alike = machine.link_bytes_per_s(setting.cp_size) == machine.link_bytes_per_s(1)
    links = "all alike" if alike else "some far slower than others"
    now = _seconds(setting)
    faster = "much faster" if _seconds(setting, link=2) < 0.85 * now else "hardly faster"
    longer = _seconds(setting._replace(seq_len=2 * setting.seq_len)) / now
    scaled = "takes 4 times as long" if longer > 3.4 else "takes far less than 4 times as long"
    return even, level, usual, links, sums, faster, scaled


def _pairs(setting: Setting) -> np.ndarray:
    """(steps, ranks): visible pairs, counted on a short sequence of the same form."""
    ranks, tokens = min(setting.cp_size, 8), 256
    layout = (contiguous if setting.layout == "contiguous" else zigzag)(tokens, ranks)
    ids = np.repeat(np.arange(setting.documents), tokens // setting.documents)
    table = np.zeros((ranks, ranks), np.int64)
    for event in schedule(layout, Visibility(documents=ids), backward=False):
        table[event.step, event.rank] += event.pairs
    return table


def _seconds(setting: Setting, link: float = 1.0) -> float:
    """One layer's forward attention, on the busiest rank of every step."""
    model, machine = planner.model_shape("Llama 3.1 8B"), planner.hardware("H100")
    if setting.repeated:
        model = replace(model, kv_heads=model.q_heads)
    steps = planner.ring_steps(
        model, setting.seq_len, setting.cp_size,
        flops_per_s=0.6 * machine.peak_flops_per_s,
        bytes_per_s=link * machine.link_bytes_per_s(setting.cp_size), layout=setting.layout,
    )  # fmt: skip
    return sum(
        max(s.compute_s, s.transfer_s) if setting.overlapped else s.compute_s + s.transfer_s
        for s in steps
    )
