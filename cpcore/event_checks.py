"""Checks of a stream of events before it is played or counted.

Owns what can be said of the events alone: their kind, their ranks, their keys, their phases.
Leaves out whether the messages fit together, which `exchange` finds while it delivers them.
"""

from collections.abc import Iterable
from typing import get_args

import numpy as np

from cpcore.checks import LARGEST, expected, is_whole, shown
from cpcore.layouts import Layout
from cpcore.masks import Verdict
from cpcore.schedule import Event, Phase

PHASES, VERDICTS = get_args(Phase), get_args(Verdict)
COUNTS = (
    *("step", "rank", "owner", "key_start", "key_stop"),
    *("pairs", "sent_tokens", "received_tokens"),
)


def check_events(
    events: Iterable[Event], layout: Layout, phases: Iterable[str] = ()
) -> list[Event]:
    """The events as a list: each names ranks of the layout, and keys that its owner has.

    Tokens without a peer are refused: no message would move them, yet they would be counted.

    phases: those that must occur. Other phases may be there too and a part of a phase is enough:
    what is missing from one shows in its result.

    Raises: ValueError for anything else.
    """
    if not isinstance(layout, Layout):
        raise expected("layout", "a Layout", type(layout).__name__)
    if isinstance(events, np.ndarray) or not isinstance(events, Iterable):
        raise expected("events", "an iterable of Event", type(events).__name__)
    checked, ranks, lengths = [], range(layout.cp_size), layout.lengths
    for event in events:
        if not isinstance(event, Event):
            raise expected("events", "an iterable of Event", f"one of {type(event).__name__}")
        _check_kinds(event)
        if event.rank not in ranks or event.owner not in ranks:
            raise expected("events", f"ranks below {layout.cp_size}", event)
        _check_sides(event, layout.cp_size, max(lengths))
        if not 0 <= event.key_start <= event.key_stop <= lengths[event.owner]:
            raise expected("events", f"keys within the owner's {lengths[event.owner]}", event)
        checked.append(event)
    for phase in phases:
        if all(event.phase != phase for event in checked):
            raise expected("events", f"events of phase {phase!r}", "none")
    return checked


def _check_kinds(event: Event) -> None:
    """Raise unless every field is of its kind, whatever its value."""
    for name in COUNTS:
        if not is_whole(getattr(event, name)):
            raise expected("events", f"an integer as {name}", event)
    if not (0 <= event.step <= LARGEST and 0 <= event.pairs <= LARGEST):
        raise expected("events", f"step and pairs from 0 to {LARGEST}", event)
    if not (_is_one_of(PHASES, event.phase) and _is_one_of(VERDICTS, event.verdict)):
        raise expected("events", "a phase and a verdict that exist", event)
    if not _is_one_of(("grad_kv" if event.phase == "return" else "kv",), event.stream):
        raise expected("events", "the stream of their phase", event)
    if not isinstance(event.collective, bool | np.bool_):
        raise expected("events", "True or False as collective", event)


def _is_one_of(names: tuple[str, ...], value: object) -> bool:
    """Whether the value is one of the names; an array would answer entry by entry."""
    return isinstance(value, str) and value in names


def _check_sides(event: Event, cp_size: int, longest: int) -> None:
    """Raise unless a side names a rank and moves at most a shard, or has no peer and 0 tokens."""
    sides = (event.send_to, event.sent_tokens), (event.recv_from, event.received_tokens)
    for peer, tokens in sides:
        if peer is not None and not (is_whole(peer) and 0 <= peer < cp_size):
            raise expected("events", f"peers below {cp_size}, or None", event)
        if tokens < 0 or (peer is None and tokens):
            raise expected("events", "tokens of at least 0, and 0 without a peer", event)
        if tokens > longest:
            raise expected("events", f"tokens of at most {longest}, the longest shard", event)


def check_lost_return(fault: object, events: Iterable[Event]) -> None:
    """Raise unless some event of the return carries what the fault ('lost_return', …) loses."""
    if isinstance(fault, tuple):
        returned = {(event.rank, event.owner) for event in events if event.phase == "return"}
        if fault[1:] not in returned:
            raise expected("fault", "(rank, owner) of a return that the events hold", shown(fault))
