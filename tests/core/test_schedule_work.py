"""How much each rank computes at each step: known numbers, and schedules beyond any mask."""

import tracemalloc
from collections import defaultdict

import numpy as np
import pytest

from cpcore import Layout, Visibility, contiguous, per_document, schedule, striped, zigzag
from tests.support.random_runs import CELLS, drawn
from tests.support.relation import double_loop


def pairs_by_step(layout: Layout, rule: Visibility) -> list[list[int]]:
    """[step][rank]: visible pairs."""
    table: dict[int, list[int]] = defaultdict(list)
    for event in schedule(layout, rule, backward=False):
        table[event.step].append(event.pairs)
    return list(table.values())


@pytest.mark.parametrize(
    ("layout", "per_rank", "slowest"),
    [
        (contiguous(64, 4), [136, 392, 648, 904], [136, 256, 256, 256]),
        (striped(64, 4), [496, 512, 528, 544], [136, 136, 136, 136]),
        (zigzag(64, 4), [520, 520, 520, 520], [136, 128, 128, 128]),
    ],
    ids=["contiguous", "striped", "zigzag"],
)
def test_causal_pairs_of_64_tokens_on_4_ranks(
    layout: Layout, per_rank: list[int], slowest: list[int]
) -> None:
    steps = pairs_by_step(layout, Visibility())
    assert np.sum(steps, axis=0).tolist() == per_rank
    assert np.max(steps, axis=1).tolist() == slowest
    assert sum(per_rank) == 64 * 65 // 2


def test_zigzag_per_document_gives_both_ranks_the_same_work_at_each_step() -> None:
    layout = per_document([0, 4, 12, 20], 2)
    assert layout.owned[0].tolist() == [0, 3, 4, 5, 10, 11, 12, 13, 18, 19]
    assert layout.owned[1].tolist() == [1, 2, 6, 7, 8, 9, 14, 15, 16, 17]
    rule = Visibility(documents=np.repeat([0, 1, 2], [4, 8, 8]))
    assert pairs_by_step(layout, rule) == [[23, 23], [18, 18]]


def test_verdict_and_pairs_of_every_random_event_are_those_of_the_mask() -> None:
    verdicts = set()
    for seed in range(1, 6 * len(CELLS), 5):
        drawing = drawn(seed)
        owned = drawing.layout.owned
        every = range(drawing.layout.seq_len)
        seen = double_loop(
            every, every, {"causal": False} if drawing.rule is None else drawing.rule
        )
        for e in drawing.events:
            block = seen[np.ix_(owned[e.rank], owned[e.owner][e.key_start : e.key_stop])]
            pairs = 0 if e.phase == "return" else int(block.sum())
            full = bool(pairs) and bool(block.all())
            assert (e.verdict, e.pairs) == (
                "full" if full else "partial" if pairs else "empty",
                pairs,
            )
            verdicts.add(e.verdict)
    assert verdicts == {"full", "partial", "empty"}


def test_a_million_tokens_on_256_ranks_need_no_array_as_large_as_a_block() -> None:
    """A block of two shards has 2**24 pairs, 16 MiB as bool; the whole mask would have 1 TiB."""
    layout = zigzag(2**20, 256)
    tracemalloc.start()
    pairs = events = 0
    for event in schedule(layout, Visibility(), backward=False):
        pairs, events = pairs + event.pairs, events + 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert events == 256 * 256
    assert pairs == 2**20 * (2**20 + 1) // 2
    assert peak < 2**24, "the verdicts of 2**16 blocks, kept for the replay, and little else"
