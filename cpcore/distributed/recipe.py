"""What decides a training run, and what is refused before any process starts.

Owns the names: layouts, protocols, dtypes with their tolerance, and the four wrong ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cpcore.checks import expected, real_number, whole_number
from cpcore.distributed.arguments import check_heads, check_protocol
from cpcore.distributed.corpus import check_length
from cpcore.distributed.model import Shape
from cpcore.layouts import Layout, contiguous, striped, zigzag

LAYOUTS: dict[str, Callable[[int, int], Layout]]
LAYOUTS = {"zigzag": zigzag, "contiguous": contiguous, "striped": striped}
# How far weights may differ: rounding of 30 steps, a margin of a thousand in each dtype.
CLOSE = {"float64": 1e-10, "float32": 1e-3}
# name -> what is wrong; each is right on one rank
SWITCHES = {
    "local_positions": "rotary counts from 0 on every rank",
    "shift_after_shard": "labels are shifted within each shard",
    "mean_of_means": "every rank divides by its own count",
    "lost_return": "one return of dK and dV arrives as 0",
}


class Recipe(NamedTuple):
    """All that decides the weights of a run, apart from the number of ranks."""

    steps: int = 30
    seq_len: int = 256
    seed: int = 0
    dtype: str = "float64"
    layout: str = "zigzag"
    protocol: str = "ring"
    learning_rate: float = 0.05
    momentum: float = 0.9
    shape: Shape = Shape()


def check(recipe: Recipe, ranks: list[int], switches: list[str]) -> None:
    """Raise ValueError for what would fail later, or not at all, in a process."""
    if recipe.layout not in LAYOUTS:
        raise expected("layout", f"one of {', '.join(LAYOUTS)}", repr(recipe.layout))
    whole_number("steps", recipe.steps, 1)
    whole_number("seed", recipe.seed, 0)
    check_length(recipe.seq_len)
    real_number("learning_rate", recipe.learning_rate)
    real_number("momentum", recipe.momentum)
    if recipe.dtype not in CLOSE:
        raise expected("dtype", f"one of {', '.join(CLOSE)}", repr(recipe.dtype))
    check_protocol(recipe.protocol)
    if not ranks:
        raise expected("ranks", "integers of at least 1", ranks)
    for size in ranks:
        whole_number("ranks", size, 1)
        if recipe.protocol == "all_to_all":
            check_heads(recipe.shape.q_heads, recipe.shape.kv_heads, size)
    for switch in switches:
        if switch not in SWITCHES:
            raise expected("switches", f"one of {', '.join(SWITCHES)}", repr(switch))
    if recipe.protocol == "all_to_all" and "lost_return" in switches:
        raise expected("switches", "no lost_return by heads, where no share returns", switches)
    if switches and max(ranks) == 1:
        raise expected("ranks", "at least 2 for the switches: one rank hides them all", ranks)
