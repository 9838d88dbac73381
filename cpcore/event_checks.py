"""Checks of a stream of events before it is played or counted.

Owns what can be said of the events alone: their kind, their ranks, their keys, their phases.
Leaves out whether the messages fit together, which `exchange` finds while it delivers them.
"""

from collections.abc import Iterable
from typing import get_args

import numpy as np

from cpcore.checks import expected
from cpcore.layouts import Layout
from cpcore.masks import Verdict
from cpcore.schedule import Event, Phase

PHASES, VERDICTS = get_args(Phase), get_args(Verdict)
WHOLE = (int, np.integer)
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
    if not isinstance(events, Iterable):
        raise expected("events", "an iterable of Event", type(events).__name__)
    checked, ranks, lengths = [], range(layout.cp_size), layout.lengths
    for event in events:
        if not isinstance(event, Event):
            raise expected("events", "an iterable of Event", f"one of {type(event).__name__}")
        _check_kinds(event)
        if event.rank not in ranks or event.owner not in ranks:
            raise expected("events", f"ranks below {layout.cp_size}", event)
        _check_sides(event, layout.cp_size)
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
        if not isinstance(getattr(event, name), WHOLE):
            raise expected("events", f"an integer as {name}", event)
    if event.phase not in PHASES or event.verdict not in VERDICTS:
        raise expected("events", "a phase and a verdict that exist", event)
    if event.stream != ("grad_kv" if event.phase == "return" else "kv"):
        raise expected("events", "the stream of their phase", event)


def _check_sides(event: Event, cp_size: int) -> None:
    """Raise unless a side with a peer names a rank, and one without a peer moves nothing."""
    sides = (event.send_to, event.sent_tokens), (event.recv_from, event.received_tokens)
    for peer, tokens in sides:
        if peer is not None and not (isinstance(peer, WHOLE) and 0 <= peer < cp_size):
            raise expected("events", f"peers below {cp_size}, or None", event)
        if tokens < 0 or (peer is None and tokens):
            raise expected("events", "tokens of at least 0, and 0 without a peer", event)


def check_lost_return(fault: object, events: Iterable[Event]) -> None:
    """Raise unless some event of the return carries what the fault ('lost_return', …) loses."""
    if isinstance(fault, tuple):
        returned = {(event.rank, event.owner) for event in events if event.phase == "return"}
        if fault[1:] not in returned:
            raise expected("fault", "(rank, owner) of a return that the events hold", repr(fault))
