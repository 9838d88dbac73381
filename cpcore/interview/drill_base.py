"""What an estimate drill is, and what all kinds of it draw from: published shapes and lengths."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cpcore import planner
from cpcore.interview.judge import Slip, Verdict, judge

LENGTHS = (32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)
RANKS = (4, 8, 16, 32, 64)
SUSTAINED = 0.6  # share of the peak: what a good attention kernel reaches


@dataclass(frozen=True)
class Drill:
    """One estimate: `value` in base units, shown in `unit`, accepted within `factor`.

    sizes: what it was made of, for a second computation. steps: the worked solution.
    """

    kind: str
    prompt: str
    value: float
    unit: str
    steps: tuple[str, ...]
    slips: tuple[Slip, ...]
    sizes: Mapping[str, Any]
    factor: float = 1.5

    def judge(self, answer: str) -> Verdict:
        """Whether "number unit" is right, and what a wrong one may have confused."""
        return judge(answer, self.value, self.unit, factor=self.factor, slips=self.slips)

    def solution(self) -> str:
        """The worked solution, a step a line."""
        return "\n".join(f"{i}. {step}" for i, step in enumerate(self.steps, start=1))

    def __str__(self) -> str:
        return self.prompt


def setting(draw: random.Random) -> tuple[planner.ModelShape, int, int]:
    """A model, a length and a number of ranks that leave every rank at least 1,024 tokens."""
    model = draw.choice(list(planner.MODELS.values()))
    seq_len, cp_size = draw.choice(LENGTHS), draw.choice(RANKS)
    return model, seq_len, min(cp_size, seq_len // 1024)


def told(model: planner.ModelShape) -> str:
    """A model and the sizes that attention needs."""
    return (
        f"{model.name} ({model.layers} layers, width {model.hidden:,}, {model.q_heads} query and "
        f"{model.kv_heads} key/value heads of width {model.head_dim})"
    )


def cut(seq_len: int, cp_size: int) -> str:
    """The first step of most solutions."""
    return f"c = {seq_len:,} / {cp_size} = {seq_len // cp_size:,} tokens."


def group_slips(model: planner.ModelShape, reason: str) -> tuple[Slip, ...]:
    """The slip of forgetting the group, where there is one."""
    return (Slip(model.group, reason),) if model.group > 1 else ()
