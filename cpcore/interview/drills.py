"""Estimate drills: a question with published shapes and machines, made from a seed.

Owns the list of kinds and the draw. The kinds are in `drill_memory`, `drill_time` and `drill_work`;
how an answer is read and compared is in `judge`. A seed gives the same drill on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from cpcore.checks import expected, whole_number
from cpcore.interview.drill_base import Drill
from cpcore.interview.drill_memory import buffers, cache, inputs, logits, state
from cpcore.interview.drill_time import chunk, hop, overlap, trade
from cpcore.interview.drill_work import efficiency, pairs

KINDS: dict[str, Callable[[random.Random], Drill]] = {
    "bytes of an all-to-all": trade,
    "bytes per step": hop,
    "cache per rank": cache,
    "efficiency": efficiency,
    "hidden or not": overlap,
    "layer inputs per rank": inputs,
    "logits per rank": logits,
    "pairs per rank": pairs,
    "ring buffers per rank": buffers,
    "smallest chunk": chunk,
    "state per rank": state,
}


def drill(seed: int, kind: str | None = None) -> Drill:
    """The drill of this seed; without a `kind`, the seed decides that too.

    Raises: ValueError for a negative seed or an unknown kind.

    >>> drill(1) == drill(1), drill(1).kind in KINDS
    (True, True)
    """
    draw = random.Random(whole_number("seed", seed, 0))
    if kind is None:
        kind = draw.choice(sorted(KINDS))
    if kind not in KINDS:
        raise expected("kind", f"one of {', '.join(sorted(KINDS))}", repr(kind))
    return KINDS[kind](draw)


def prepared(count: int) -> tuple[Drill, ...]:
    """`count` drills, the kinds in turn, no prompt twice.

    Raises: ValueError for a count that the draws do not yield.
    """
    found: dict[str, Drill] = {}
    for seed in range(20 * whole_number("count", count, 1)):
        if len(found) < count:
            one = drill(seed, list(KINDS)[seed % len(KINDS)])
            found.setdefault(one.prompt, one)
    if len(found) < count:
        raise expected("count", f"at most {len(found)}", count)
    return tuple(found.values())
