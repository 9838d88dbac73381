"""Schedule explorer: who computes which score block at each step, and what travels.

The facts come from the events by way of `schedule_facts`; `schedule_panels` draws them; this
module puts the words and the tables to the picture.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from cpcore.schedule import Event
from cpcore.ui.controls import Choice, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.schedule_facts import DOCUMENTS, LAST, RANKS, SEQ_LEN, WINDOW, Facts, facts
from cpcore.ui.schedule_panels import grid_panel, ring_panel
from cpcore.ui.svg import details, num, table

CONTROLS = (
    Choice(
        "layout",
        "Layout",
        (("contiguous", "contiguous"), ("zigzag", "zigzag"), ("striped", "striped")),
    ),
    Choice("ranks", "Ranks", tuple((str(n), str(n)) for n in RANKS), initial="4"),
    Choice(
        "visibility",
        "Visibility",
        (
            ("causal", "causal"),
            ("full", "full"),
            ("window", f"causal, window of {WINDOW}"),
            ("packed", f"causal, documents of {', '.join(map(str, DOCUMENTS))}"),
        ),
    ),
    Choice("direction", "Direction", (("forward", "forward"), ("backward", "backward"))),
    Step("step", "Step", LAST),
)


def draw(**values: Any) -> tuple[str, ...]:
    """Caption, ring, grid and tables of one state."""
    known = facts(**values)
    return (f"<p>{_caption(known)}</p>", ring_panel(known), grid_panel(known), _tables(known))


def _caption(known: Facts) -> str:
    """What happens in this step, in one sentence."""
    stage, count = known.now, len(known.ranks)
    if known.finished:
        mean = sum(known.so_far) / count
        back = ", and every gradient is home" if known.direction == "backward" else ""
        return (
            f"Finished{back}: the slowest ranks took {known.elapsed} pairs one after the other; "
            f"evenly shared work would have taken {num(mean)}."
        )
    if stage.phase == "return":
        return (
            f"Return, step {stage.step} of {count - 1}: no pairs; every rank adds its share to "
            "the gradient it holds for the owner shown and passes the sum on clockwise."
        )
    verb, place = "meets" if stage.phase == "forward" else "replays", "its own shard"
    if stage.step:
        place = f"the shard from {stage.step} place{'s' * (stage.step > 1)} behind it"
    skipping = sum(event.verdict == "empty" for event in stage.events)
    skips = f", {skipping} of them skipping it" if skipping else ""
    hand = ", and hands it on all the same" if skipping and stage.events[0].sent_tokens else ""
    return (
        f"{stage.phase.capitalize()}, step {stage.step} of {count - 1}: each of {count} ranks "
        f"{verb} {place}{skips}{hand}; {_pace(known)}."
    )


def _pace(known: Facts) -> str:
    """Who waits for whom."""
    stage = known.now
    waits = sum(stage.slowest - pairs for pairs in stage.pairs)
    if not waits:
        return f"all compute {stage.slowest} pairs, so none waits"
    slow = [rank for rank, pairs in enumerate(stage.pairs) if pairs == stage.slowest]
    who = f"rank {slow[0]} is" if len(slow) == 1 else f"{len(slow)} ranks are"
    return f"{who} slowest with {stage.slowest} pairs, and the others wait {waits} in all"


def _tables(known: Facts) -> str:
    """The step by rank, the whole so far, and the plan that all steps of this state share."""
    return details(_by_rank(known), _whole(known), _plan(known))


def _by_rank(known: Facts) -> str:
    rows = []
    for event in known.now.events:
        held, work = f"shard {event.owner}", _word(event)
        out, into = event.send_to, event.recv_from
        pairs, wait = event.pairs, known.now.slowest - event.pairs
        if known.finished:
            held, work, out, into, pairs, wait = "none", "none", None, None, 0, 0
        elif event.phase == "return":
            held, work = f"gradient {event.owner}", "none"
        peers = ["none" if peer is None else str(peer) for peer in (out, into)]
        totals = map(str, (known.so_far[event.rank], known.sent[event.rank]))
        rows.append([str(event.rank), held, work, str(pairs), str(wait), *peers, *totals])
    heads = ("rank", "has", "computes", "pairs", "waits", "sends to", "receives from")
    return table([*heads, "pairs so far", "tokens sent so far"], rows)


def _word(event: Event) -> str:
    """What the rank does with the block."""
    return "skip" if event.verdict == "empty" else event.verdict


def _whole(known: Facts) -> str:
    """The ring as a whole: its pace is that of its slowest ranks."""
    total, size = sum(known.so_far), len(known.ranks)
    lost = size * known.elapsed - total
    heads = ["so far", "pairs of all ranks", "slowest ranks, step by step", "waiting of all ranks"]
    return table(heads, [["ring", str(total), str(known.elapsed), str(lost)]])


def _plan(known: Facts) -> str:
    """Who owns what, and every block's verdict with the step at which its rank meets it."""
    rows = []
    for rank in known.ranks:
        cells = []
        for owner in known.ranks:
            event = known.blocks[rank, owner]
            cells.append(f"{_word(event)}, step {event.step}")
        rows.append([f"queries of {rank}", _owned(known, rank), *cells])
    return table(["block", "owns", *(f"keys of {owner}" for owner in known.ranks)], rows)


def _owned(known: Facts, rank: int) -> str:
    """Positions as runs, such as 0-5, or as the first ones of a stride."""
    spots = [int(p) for p in known.layout.owned[rank]]
    if all(b - a > 1 for a, b in pairwise(spots)):
        return f"{spots[0]}, {spots[1]} \N{HORIZONTAL ELLIPSIS} {spots[-1]}"
    starts = [p for p in spots if p - 1 not in spots]
    stops = [p for p in spots if p + 1 not in spots]
    return ", ".join(f"{a}\N{EN DASH}{b}" for a, b in zip(starts, stops, strict=True))


schedule_explorer = Explorable(
    name="schedule-explorer",
    title="Schedule explorer",
    summary=(
        f"{SEQ_LEN} positions on a ring; clockwise is the direction of sending. A square is a "
        "shard of keys and values in its owner's color, a ring the gradient of one. A step takes "
        "as long as its slowest rank."
    ),
    controls=CONTROLS,
    drawing=draw,
)
