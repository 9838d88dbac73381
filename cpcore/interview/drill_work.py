"""Estimate drills on work: visible pairs of a rank, and the efficiency of a contiguous ring."""

from __future__ import annotations

import random

from cpcore import planner
from cpcore.interview.drill_base import Drill
from cpcore.interview.judge import Slip


def pairs(draw: random.Random) -> Drill:
    """Visible pairs of one rank of a contiguous causal ring."""
    seq_len, cp_size = draw.choice((64, 128, 256, 512)), draw.choice((2, 4, 8))
    rank, c = draw.randrange(cp_size), seq_len // cp_size
    value = planner.rank_pairs("contiguous", seq_len, cp_size, rank)
    return Drill(
        "pairs per rank",
        f"{seq_len} positions, causal, contiguous shards on {cp_size} ranks. How many visible "
        f"(query, key) pairs does rank {rank} compute, all steps together?",
        value,
        "pairs",
        (
            f"c = {seq_len} / {cp_size} = {c}.",
            f"Its own triangle: {c} · {c + 1} / 2 = {c * (c + 1) // 2} pairs.",
            f"Earlier shards in full: {rank} · {c}² = {rank * c * c} pairs.",
            f"Together {value:,} pairs.",
        ),
        (
            Slip(planner.causal_pairs(seq_len) / value, "That is all ranks together."),
            Slip(c * seq_len / value, "Nothing is masked in that count."),
            Slip(planner.causal_pairs(seq_len) / cp_size / value, "The average of all ranks."),
        ),
        {"seq_len": seq_len, "cp_size": cp_size, "rank": rank},
        factor=1.05,  # the last of eight ranks masks little
    )


def efficiency(draw: random.Random) -> Drill:
    """Share of useful compute in a causal ring over contiguous shards."""
    cp_size, c = draw.choice((2, 3, 4, 6, 8, 12, 16, 24, 32)), draw.choice((1024, 4096, 8192))
    value = planner.ring_efficiency("contiguous", cp_size * c, cp_size)
    return Drill(
        "efficiency",
        f"A causal ring over contiguous shards, {cp_size} ranks of {c:,} tokens. What share of "
        "its time is useful compute, if only pairs are counted?",
        value,
        "%",
        (
            "Step 0: every rank has a triangle, c²/2. At every other step the last rank has a "
            "whole block, c², and all wait for it.",
            f"The run takes (1/2 + {cp_size - 1})·c²; an even share of the work is R·c²/2.",
            f"R/(2R − 1) = {cp_size}/{2 * cp_size - 1} = {100 * value:.1f} %.",
        ),
        (
            Slip(1 / value, "Balanced shards have that; these are contiguous."),
            Slip(0.5 / value, "Half is the limit for many ranks."),
        ),
        {"seq_len": cp_size * c, "cp_size": cp_size},
        factor=1.015,  # 32 ranks reach nearly half
    )
