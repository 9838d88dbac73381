"""Facts of the schedule explorer: one instant of the event stream, for every rank.

Every number is read from the events of `schedule`; nothing is worked out a second time here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from cpcore.layouts import Layout, contiguous, striped, zigzag
from cpcore.masks import Visibility
from cpcore.schedule import Event, Phase, schedule

SEQ_LEN = 48  # 2R divides it for R = 2, 3, 4, 8, so that zigzag is cut into equal pieces
WINDOW = 12
DOCUMENTS = (8, 24, 16)  # lengths of the packed documents
LAYOUTS = {"contiguous": contiguous, "zigzag": zigzag, "striped": striped}
RANKS = (2, 3, 4, 8)
RULES = {
    "causal": Visibility(),
    "full": Visibility(causal=False),
    "window": Visibility(window=WINDOW),
    "packed": Visibility(documents=np.repeat(np.arange(len(DOCUMENTS)), DOCUMENTS)),
}
LAST = 2 * max(RANKS) - 1  # backward: R steps of replay, R - 1 of return, and the end


@dataclass(frozen=True)
class Stage:
    """The events of one phase at one step, one per rank."""

    phase: Phase
    step: int
    events: tuple[Event, ...]

    @property
    def pairs(self) -> tuple[int, ...]:
        """Visible pairs that each rank computes."""
        return tuple(event.pairs for event in self.events)

    @property
    def slowest(self) -> int:
        """The most pairs of any rank: the others wait for it."""
        return max(self.pairs)


@dataclass(frozen=True)
class Facts:
    """What the picture and the tables show; `stages` ends with the current one."""

    layout: Layout
    direction: str
    stages: tuple[Stage, ...]
    blocks: dict[tuple[int, int], Event]  # (rank, owner) -> its event in this direction
    peak: int  # the most pairs in one turn of this schedule: the length of the longest bar
    finished: bool

    @property
    def ranks(self) -> range:
        """Every rank."""
        return range(self.layout.cp_size)

    @property
    def now(self) -> Stage:
        """The current stage; once finished, the last one."""
        return self.stages[-1]

    @property
    def computed(self) -> int:
        """Steps of compute that are over: the diagonals of the grid that are done."""
        done = self.stages if self.finished else self.stages[:-1]
        return sum(stage.phase != "return" for stage in done)

    @property
    def so_far(self) -> tuple[int, ...]:
        """Pairs of each rank, with those of the current step."""
        return tuple(sum(stage.pairs[rank] for stage in self.stages) for rank in self.ranks)

    @property
    def sent(self) -> tuple[int, ...]:
        """Tokens that each rank has sent, with those of the current step."""
        return tuple(sum(s.events[r].sent_tokens for s in self.stages) for r in self.ranks)

    @property
    def elapsed(self) -> int:
        """What the slowest ranks of all steps did, added up: the time of the ring in pairs."""
        return sum(stage.slowest for stage in self.stages)


@cache
def stages_of(layout: str, ranks: int, visibility: str, direction: str) -> tuple[Stage, ...]:
    """Every stage of one direction, in order."""
    cut = LAYOUTS[layout](SEQ_LEN, ranks)
    by_stage: dict[tuple[Phase, int], list[Event]] = {}
    for event in schedule(cut, RULES[visibility]):
        if (event.phase == "forward") == (direction == "forward"):
            by_stage.setdefault((event.phase, event.step), []).append(event)
    return tuple(Stage(*key, tuple(events)) for key, events in by_stage.items())


def facts(layout: str, ranks: str, visibility: str, direction: str, step: int) -> Facts:
    """The state after `step` stages and during the next; past the last one it is finished."""
    every = stages_of(layout, int(ranks), visibility, direction)
    compute = [e for stage in every if stage.phase != "return" for e in stage.events]
    return Facts(
        LAYOUTS[layout](SEQ_LEN, int(ranks)),
        direction,
        every[: step + 1],
        {(event.rank, event.owner): event for event in compute},
        max(event.pairs for event in compute),
        step >= len(every),
    )
