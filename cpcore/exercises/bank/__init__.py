"""All exercises in the order of the book."""

from cpcore.exercises.bank import (
    beyond,
    block_back,
    blocks,
    capstone,
    chunk_loop,
    chunk_stats,
    costs,
    dropout,
    hops,
    losses,
    merge_stats,
    neutral,
    orders,
    packed,
    pairs,
    ring_back,
)
from cpcore.exercises.exercise import Exercise

FAMILIES = (
    chunk_stats,
    merge_stats,
    chunk_loop,
    neutral,
    pairs,
    beyond,
    blocks,
    hops,
    packed,
    block_back,
    ring_back,
    dropout,
    losses,
    orders,
    costs,
    capstone,
)
CHAPTER_OF_LAST = {"causal_ring"}  # stands at the end, whatever chapter it rests on


def _in_order() -> list[Exercise]:
    """By chapter, within a chapter as listed above; the capstone last."""
    every = [exercise for family in FAMILIES for exercise in family.EXERCISES]
    return sorted(every, key=lambda each: (each.name in CHAPTER_OF_LAST, each.chapter))


catalogue: dict[str, Exercise] = {exercise.name: exercise for exercise in _in_order()}
